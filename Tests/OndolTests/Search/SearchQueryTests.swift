// The meaning of a search: with other conditions, orders, limits, pages, in transactions and
// groups; scores, highlighting and suggestions.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct SearchQueryTests {
  private func notes(_ texts: [(String, String, Int)]) async throws -> CollectionReference {
    let database = try await Database.underTest()
    let notes = database.collection("notes")
    try await notes.createSearchIndex(on: ["title", "body"], weights: ["title": 3])
    for (id, text, number) in texts {
      try await notes.document(id).setData(["body": text, "title": "note \(id)", "n": number])
    }
    return notes
  }

  private func ids(_ search: SearchQuery) async throws -> [String] {
    try await search.getMatches().map(\.document.documentID)
  }

  @Test func `Conditions, orders, limits and pages are those of the query`() async throws {
    let notes = try await notes([
      ("a", "온돌방에서 잤다", 1), ("b", "온돌방이 따뜻하다 온돌방", 2), ("c", "마루", 3),
      ("d", "온돌 위의 방", 4),
    ])
    #expect(try await Set(ids(notes.query.search("온돌", in: "body"))) == ["a", "b", "d"])
    #expect(
      try await ids(notes.query.search("온돌방은", in: "body", matching: .all)).sorted() == ["a", "b"])
    let some = notes.whereField("n", isGreaterThan: 1)
    #expect(try await Set(ids(some.search("온돌", in: "body"))) == ["b", "d"])
    let ordered = notes.query.order(by: "n", descending: true)
    #expect(try await ids(ordered.search("온돌", in: "body")) == ["d", "b", "a"])
    #expect(try await ids(ordered.limit(to: 1).search("온돌", in: "body")) == ["d"])
    #expect(try await ids(ordered.limit(toLast: 2).search("온돌", in: "body")) == ["b", "a"])
    #expect(try await ids(ordered.start(after: [4]).search("온돌", in: "body")) == ["b", "a"])
    #expect(try await notes.query.search("온돌", in: "body").count() == 3)
    #expect(try await ids(notes.query.search("...", in: "body")) == [])
    let all = notes.query.search("온돌 방", in: "body")
    let whole = try await all.getMatches()
    var pages: [String] = []
    var last: SearchMatch?
    for _ in 0..<5 {
      let page = notes.query.limit(to: 1).search("온돌 방", in: "body")
      let found = try await (last.map { page.start(after: $0) } ?? page).getMatches()
      pages += found.map(\.document.documentID)
      last = found.last ?? last
    }
    #expect(pages == whole.map(\.document.documentID))
    for match in whole {
      #expect(abs(match.terms.reduce(0) { $0 + $1.score } - match.score) < 1e-9)
    }
  }

  @Test func `A title counts for more than a body`() async throws {
    let notes = try await notes([("lamp", "something else", 1), ("other", "a lamp", 2)])
    #expect(try await ids(notes.query.search("lamp", in: "title", "body")) == ["lamp", "other"])
    await #expect(throws: DatabaseError.self) {
      _ = try await notes.query.search("lamp", in: "n").getMatches()
    }
  }

  @Test func `A transaction finds its writes, and nothing finds discarded ones`() async throws {
    let notes = try await notes([("a", "온돌방", 1)])
    let database = notes.database
    let search = notes.query.search("온돌", in: "body")
    let before = database.snapshot()
    try await database.runTransaction { transaction in
      try transaction.setData(["body": "새 온돌"], forDocument: notes.document("b"))
      try transaction.deleteDocument(notes.document("a"))
      let found = try transaction.getMatches(search).map(\.document.documentID)
      #expect(found == ["b"])
    }
    #expect(try await ids(search) == ["b"])
    #expect(try before.getMatches(search).map(\.document.documentID) == ["a"])
  }

  @Test func `A user's words are found in that user's collection and in the group`() async throws {
    let database = try await Database.underTest()
    let mine = database.collection("users/me/notes")
    let yours = database.collection("users/you/notes")
    try await mine.document("x").setData(["body": "warm floor"])
    try await mine.createSearchIndex(on: ["body"])
    try await database.collectionGroup("notes").createSearchIndex(on: ["body"])
    try await yours.document("y").setData(["body": "warm roof"])
    for _ in 0..<2 {
      #expect(try await ids(mine.query.search("warm", in: "body")) == ["x"])
      #expect(try await ids(yours.query.search("warm", in: "body")) == ["y"])
      let group = database.collectionGroup("notes").query.search("warm", in: "body")
      #expect(try await Set(ids(group)) == ["x", "y"])
      try await database.gatherSearchIndexes(of: "users/me/notes")
    }
    let names = try await mine.listIndexes().map(\.name)
    #expect(names.contains("body search"))
    try await mine.dropIndex(named: "body search")
    await #expect(throws: DatabaseError.self) {
      _ = try await mine.query.search("warm", in: "body").getMatches()
    }
  }

  @Test func `Matches have places, and suggestions continuations`() async throws {
    let notes = try await notes([
      ("a", "Unter dem Boden liegt die 온돌방 mit Café und Lampe", 1), ("b", "Lampen und Laternen", 2),
    ])
    let match = try #require(
      await notes.query.search("온돌방 cafe", in: "body").getMatches().first)
    let text = try #require(match.document["body"] as String?)
    #expect(match.ranges(in: "body").map { String(text[$0]) } == ["온돌방", "Café"])
    let snippet = match.snippet(of: "body", length: 20)
    #expect(snippet.text.count <= 20 && snippet.isCutInFront)
    #expect(snippet.ranges.map { String(snippet.text[$0]) }.contains("온돌방"))
    let suggestions = try await notes.query.searchSuggestions(for: "la", in: "body")
    #expect(suggestions.map(\.term) == ["lampe", "lampen", "laternen"])
  }
}
