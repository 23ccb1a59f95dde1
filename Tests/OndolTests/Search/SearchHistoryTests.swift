// Searches compared with a naive oracle: after each step of a random history, with commits,
// discarded transactions, gathering, power cuts and reopens, a search finds exactly the documents
// that a walk over all texts finds.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

/// The existing documents, searched by looking at every token of each.
private struct NaiveIndex {
  var texts: [String: String] = [:]
  let tokenizer: Tokenizer

  private func terms(_ text: String) -> [[UInt8]] {
    let list = tokenizer.tokens(of: text)
    return list.tokens.indices.map { list.term($0) }
  }

  /// The ids of documents whose terms satisfy `isMatch`.
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

/// An app's own tokenizer: the parts between blanks, cut to three characters.
private struct Abbreviations: SearchTokenizer {
  let name = "three-letters"
  let version = 1

  func tokens(of text: String) -> [SearchToken] {
    text.split(separator: " ").map { word in
      SearchToken(word.prefix(3).lowercased(), at: word.startIndex..<word.endIndex, in: text)
    }
  }
}

/// A database that goes through a history: on a device that crashes, or on the store that the
/// suites run on.
private struct HistoryWorld {
  private let device: SimulatedDevice?
  private(set) var database: Database
  private static let options = Database.Options(tokenizers: [Abbreviations()])

  init(seed: UInt64) async throws {
    device = TestedStore.current == .memory ? SimulatedDevice(seed: seed) : nil
    if let device {
      database = try await Database.open(at: "db", options: Self.options, on: device)
    } else {
      database = try await Database.underTest(options: Self.options)
    }
  }

  /// An event that happens to a device and not to a store.
  mutating func interrupt(_ happen: (SimulatedDevice) async throws -> Void) async throws {
    guard let device else { return }
    try await happen(device)
    database = try await Database.open(at: "db", options: Self.options, on: device)
  }
}

@Suite struct SearchHistoryTests {
  private static let words = [
    "온돌방", "아궁이", "구들", "마루", "lamp", "lantern", "Laterne", "Äpfel", "温泉", "熱い", "2026",
    "온돌", "방바닥", "lamps", "heating", "heated",
  ]

  private static let histories: [(SearchTokenization, UInt64)] =
    Seeds.first(60).map { (.plain, $0) } + Seeds.first(30).map { (.english, $0) }
    + Seeds.first(30).map { (.custom(named: "three-letters"), $0) }

  private static func tokenizer(_ tokenization: SearchTokenization) -> Tokenizer {
    switch tokenization {
    case .plain: Tokenizer()
    case .english: .english
    case .custom: Tokenizer(Abbreviations())
    }
  }

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
    // A required word of several pairs is a phrase of them.
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

  @Test(arguments: histories)
  func `A search finds what a walk over all texts finds`(
    tokenization: SearchTokenization, seed: UInt64
  ) async throws {
    var world = try await HistoryWorld(seed: seed)
    var random = SeededRandom(seed: seed)
    var naive = NaiveIndex(tokenizer: Self.tokenizer(tokenization))
    let declaresFirst = Bool.random(using: &random)
    if declaresFirst {
      try await world.database.collection("notes").createSearchIndex(
        on: ["text"], tokenization: tokenization)
    }
    for step in 0..<Int.random(in: 5...30, using: &random) {
      let database = world.database
      let notes = database.collection("notes")
      if step == 4, !declaresFirst {
        try await notes.createSearchIndex(on: ["text"], tokenization: tokenization)
      }
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
      case 9: try await world.interrupt { $0.powerCut() }
      case 10: try await world.interrupt { $0.kill() }
      default: try await world.interrupt { _ in try await database.close() }
      }
      if step >= 4 || declaresFirst { try await compare(world.database, naive, seed, &random) }
    }
    #expect(try await world.database.verify().isEmpty, "seed \(seed)")
    try await world.database.close()
  }

  @Test func `A transaction that outlasts its generation is found all the same`() async throws {
    let database = try await Database.underTest()
    let notes = database.collection("notes")
    try await notes.createSearchIndex(on: ["text"])
    try await notes.document("early").setData(["text": "lamp"])
    var attempts = 0
    try await database.runTransaction { transaction in
      attempts += 1
      try transaction.setData(["text": "a late lamp"], forDocument: notes.document("late"))
      guard attempts == 1 else { return }
      // Gathers everything, and closes the generation of the transaction.
      await Task.detached {
        try? await database.gatherSearchIndexes(of: "notes")
        _ = try? await notes.document("between").setData(["text": "lamp"])
        try? await database.gatherSearchIndexes(of: "notes")
      }.value
    }
    #expect(TestedStore.current.repeatsForConflictsAlone ? attempts == 2 : attempts >= 2)
    #expect(try await notes.query.search("lamp", in: "text").count() == 3)
    #expect(try await database.verify().isEmpty)
    try await database.close()
  }

  @Test func `Documents that are gathered in the background are found all the time`() async throws {
    let database = try await Database.underTest()
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
