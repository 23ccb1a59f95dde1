// Listening to searches, compared with repeating them after each commit: if a listener receives
// nothing, a repeated search would have found the same; if it receives something, the search finds
// exactly that.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct SearchListeningTests {
  private static let words = [
    "온돌방", "아궁이", "구들", "lamp", "lantern", "lava", "温泉", "방", "lamps", "heated",
  ]

  private func text(_ random: inout SeededRandom) -> String {
    (0..<Int.random(in: 0...5, using: &random)).map { _ in
      Self.words.randomElement(using: &random) ?? ""
    }.joined(separator: " ")
  }

  private static let questions = [
    "온돌", "lamp 구들", "+lamp +lantern", "lamp -구들", "la*", "\"온돌방 아궁이\"", "방",
    "NEAR(lamp lava, 2)", "+온돌방은 lamp", "온돌*", "...", "heating", "lanterns*",
  ]

  /// A reader's view of the matches.
  private func picture(_ matches: [SearchMatch]) -> [String] {
    matches.map { match in
      let text: String? = match.document["text"]
      let number: Int? = match.document["n"]
      return "\(match.document.documentID) \(text ?? "-") \(number ?? -1)"
    }
  }

  @Test(arguments: Seeds.first(30))
  func `Listeners see what a new search finds`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let database = try await Database.underTest()
    let notes = database.collection("notes")
    try await notes.createSearchIndex(
      on: ["text", "title"], tokenization: seed % 3 == 0 ? .english : .plain)
    var searches: [SearchQuery] = []
    for question in Self.questions {
      searches.append(notes.query.search(question, in: "text", "title"))
      searches.append(
        notes.whereField("n", isGreaterThan: 1).limit(to: 3).search(question, in: "text"))
      searches.append(
        notes.order(by: "n").search(question, in: "text", matching: .all))
    }
    var listeners = searches.map { $0.snapshots.makeAsyncIterator() }
    var shown: [[String]] = []
    for place in listeners.indices {
      shown.append(picture(try await listeners[place].next() ?? []))
    }
    for step in 0..<Int.random(in: 5...25, using: &random) {
      let batch = database.batch()
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let note = notes.document("n\(Int.random(in: 0..<6, using: &random))")
        switch Int.random(in: 0..<4, using: &random) {
        case 0: batch.deleteDocument(note)
        case 1: try batch.setData(["n": step % 4], forDocument: note, merge: true)
        default:
          try batch.setData(
            ["text": text(&random), "title": text(&random), "n": step % 4], forDocument: note)
        }
      }
      try await batch.commit()
      if step % 7 == 3 { try await database.gatherSearchIndexes(of: "notes") }
      for place in listeners.indices {
        if let next = try await listeners[place].poll() { shown[place] = picture(next) }
        let found = picture(try await searches[place].getMatches())
        // Scores drift with documents that do not match a search, and with them the order and the
        // part within a limit. The members of a result without a limit stay the same.
        if place % 3 == 0 {
          #expect(Set(shown[place]) == Set(found), "seed \(seed), step \(step): \(place)")
        } else if place % 3 == 2 {
          #expect(shown[place] == found, "seed \(seed), step \(step): \(place)")
        } else {
          #expect(shown[place].count == found.count, "seed \(seed), step \(step): \(place)")
        }
      }
    }
    try await database.close()
  }

  @Test func `A commit without its words does not wake a search`() async throws {
    let database = try await Database.underTest()
    let notes = database.collection("notes")
    try await notes.createSearchIndex(on: ["text"])
    try await notes.document("a").setData(["text": "온돌방"])
    let search = notes.query.search("온돌", in: "text")
    var listener = search.snapshots.makeAsyncIterator()
    #expect(try await listener.next()?.map(\.document.documentID) == ["a"])
    try await notes.document("b").setData(["text": "마루"])
    #expect(database.observers.pendingCount == 0)
    try await notes.document("c").setData(["text": "새 온돌"])
    // A store reports commits a moment later.
    #expect(TestedStore.current != .memory || database.observers.pendingCount == 1)
    #expect(try await Set(listener.next()?.map(\.document.documentID) ?? []) == ["a", "c"])
    try await notes.document("a").updateData(["text": "마루"])
    #expect(try await listener.next()?.map(\.document.documentID) == ["c"])
    try await database.close()
  }
}
