// Searches against a naive oracle: after each step of a random history, commits, transactions that
// are given up, gathering, power cuts and reopenings, a search finds exactly the documents that a
// walk over all texts finds.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// The documents there are, searched by looking at every token of each.
private struct NaiveIndex {
  var texts: [String: String] = [:]
  private let tokenizer = Tokenizer()

  private func terms(_ text: String) -> [[UInt8]] {
    let list = tokenizer.tokens(of: text)
    return list.tokens.indices.map { list.term($0) }
  }

  /// The ids of documents that `isMatch` finds in their terms.
  func ids(where isMatch: ([[UInt8]]) -> Bool) -> Set<String> {
    Set(texts.filter { isMatch(terms($0.value)) }.keys)
  }

  func has(_ word: String) -> ([[UInt8]]) -> Bool {
    let wanted = terms(word)
    return { found in wanted.contains { found.contains($0) } }
  }

  func hasPhrase(_ phrase: String) -> ([[UInt8]]) -> Bool {
    let wanted = terms(phrase)
    return { found in
      guard found.count >= wanted.count else { return false }
      return (0...(found.count - wanted.count)).contains { start in
        found[start..<(start + wanted.count)].elementsEqual(wanted)
      }
    }
  }

  func hasBeginning(_ beginning: String) -> ([[UInt8]]) -> Bool {
    let wanted = Array(beginning.utf8)
    return { found in found.contains { $0.starts(with: wanted) } }
  }

  func hasNear(_ left: String, _ right: String, _ distance: Int) -> ([[UInt8]]) -> Bool {
    let (first, second) = (terms(left)[0], terms(right)[0])
    return { found in
      found.indices.contains { one in
        found[one] == first
          && found.indices.contains { found[$0] == second && abs($0 - one) <= distance }
      }
    }
  }
}

@Suite struct SearchHistoryTests {
  private static let words = [
    "온돌방", "아궁이", "구들", "마루", "lamp", "lantern", "Laterne", "Äpfel", "温泉", "熱い", "2026",
    "온돌", "방바닥",
  ]

  private func text(_ random: inout SeededRandom) -> String {
    (0..<Int.random(in: 0...8, using: &random)).map { _ in
      Self.words.randomElement(using: &random) ?? ""
    }.joined(separator: " ")
  }

  private func compare(
    _ database: Database, _ naive: NaiveIndex, _ seed: UInt64, _ random: inout SeededRandom
  ) async throws {
    let first = Self.words.randomElement(using: &random) ?? ""
    let second = Self.words.randomElement(using: &random) ?? ""
    let (one, two) = (naive.has(first), naive.has(second))
    let phrase = naive.hasPhrase("\(first) \(second)")
    // A demanded word of several pairs is a phrase of them.
    let (wholeOne, wholeTwo) = (naive.hasPhrase(first), naive.hasPhrase(second))
    let (plain, other) = ("lamp", "lantern")
    let near = naive.hasNear(plain, other, 2)
    let questions: [(String, ([[UInt8]]) -> Bool)] = [
      (first, one),
      ("\(first) \(second)", { one($0) || two($0) }),
      ("+\(first) +\(second)", { wholeOne($0) && wholeTwo($0) }),
      ("\(first) -\(second)", { one($0) && !wholeTwo($0) }),
      ("\"\(first) \(second)\"", phrase),
      ("la*", naive.hasBeginning("la")),
      ("NEAR(\(plain) \(other), 2)", near),
    ]
    for (question, isMatch) in questions {
      let search = database.collection("notes").query.search(question, in: "text")
      let found = try await search.getMatches().map(\.document.documentID)
      #expect(found.count == Set(found).count, "seed \(seed): \(question)")
      #expect(Set(found) == naive.ids(where: isMatch), "seed \(seed): \(question)")
    }
  }

  private struct Rollback: Error {}

  @Test(arguments: Seeds.first(60))
  func `A search finds what a walk over all texts finds`(seed: UInt64) async throws {
    let device = SimulatedDevice(seed: seed)
    var random = SeededRandom(seed: seed)
    var database = try await Database.open(at: "db", on: device)
    var naive = NaiveIndex()
    let declaresFirst = Bool.random(using: &random)
    if declaresFirst {
      try await database.collection("notes").createSearchIndex(on: ["text"])
    }
    for step in 0..<Int.random(in: 5...30, using: &random) {
      let notes = database.collection("notes")
      if step == 4, !declaresFirst { try await notes.createSearchIndex(on: ["text"]) }
      switch Int.random(in: 0..<12, using: &random) {
      case 0..<5:
        let batch = database.batch()
        for _ in 0..<Int.random(in: 1...12, using: &random) {
          let id = "n\(Int.random(in: 0..<20, using: &random))"
          if Int.random(in: 0..<4, using: &random) == 0 {
            batch.deleteDocument(notes.document(id))
            naive.texts[id] = nil
          } else {
            let text = text(&random)
            try batch.setData(["text": text, "n": step], forDocument: notes.document(id))
            naive.texts[id] = text
          }
        }
        try await batch.commit()
      case 5..<7:
        let id = "n\(Int.random(in: 0..<20, using: &random))"
        let text = text(&random)
        do {
          try await database.runTransaction { transaction in
            try transaction.setData(["text": text], forDocument: notes.document(id))
            throw Rollback()
          }
        } catch is Rollback {}
      case 7..<9: try await database.gatherSearchIndexes(of: "notes")
      case 9:
        device.powerCut()
        database = try await Database.open(at: "db", on: device)
      case 10:
        device.kill()
        database = try await Database.open(at: "db", on: device)
      default:
        try await database.close()
        database = try await Database.open(at: "db", on: device)
      }
      if step >= 4 || declaresFirst { try await compare(database, naive, seed, &random) }
    }
    try await database.close()
  }

  @Test func `Documents that are gathered in the background are found all the time`() async throws {
    let database = try await Database.inMemory()
    let notes = database.collection("notes")
    try await notes.createSearchIndex(on: ["text"])
    for start in stride(from: 0, to: 3_000, by: 100) {
      let batch = database.batch()
      for number in start..<start + 100 {
        try batch.setData(
          ["text": "common word\(number)"], forDocument: notes.document("\(number)"))
      }
      try await batch.commit()
      let found = try await notes.query.search("common", in: "text").count()
      #expect(found == start + 100)
    }
    for number in stride(from: 0, to: 3_000, by: 3) {
      try await notes.document("\(number)").setData(["text": "rare word\(number)"])
    }
    #expect(try await notes.query.search("common", in: "text").count() == 2_000)
    #expect(try await notes.query.search("rare", in: "text").count() == 1_000)
    try await database.gatherSearchIndexes(of: "notes")
    #expect(try await notes.query.search("common", in: "text").count() == 2_000)
    let one = try await notes.query.search("word2997", in: "text").getMatches()
    #expect(one.map(\.document.documentID) == ["2997"])
    try await database.close()
  }
}
