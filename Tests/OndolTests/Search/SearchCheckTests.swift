// Whether a check finds the differences between an index of words and the documents, and whether
// indexes of words survive recovery.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct SearchCheckTests {
  /// Damage to the rows of an index.
  enum Damage: String, CaseIterable, Sendable {
    case freshRow, missingFreshRow, missingPlace, placeElsewhere, extraPlace, document, chunk
    case missingChunk, extraDocument
  }

  private struct NoSuchRow: Error {}

  /// Documents in two runs, some of them deleted since, and others that are not gathered.
  private func notes() async throws -> CollectionReference {
    let database = try await Database.underTest()
    let notes = database.collection("notes")
    try await notes.createSearchIndex(on: ["title", "body"])
    for round in 0..<3 {
      for number in 0..<40 {
        try await notes.document("n\(round * 30 + number)").setData([
          "title": "note \(number)", "body": "온돌방 lamp number\(number) of round\(round)",
        ])
      }
      if round < 2 { try await database.gatherSearchIndexes(of: "notes") }
    }
    // The upkeep's changes to the rows are done.
    try await database.settleSearchIndexes(of: "notes")
    try await notes.document("n5").delete()
    return notes
  }

  private func rows(
    _ database: Database
  ) throws -> (index: IndexDefinition, keys: SearchKeys, rows: Ondol.Rows) {
    let rows = Ondol.Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    let entry = try #require(try rows.entry(of: CollectionPattern(["notes"])))
    let index = try #require(entry.searches.first)
    return (index, index.searchKeys, rows)
  }

  private func first(_ lower: [UInt8], _ upper: [UInt8], _ rows: Ondol.Rows) throws -> (
    key: [UInt8], value: [UInt8]
  ) {
    var walk = RangeWalk(rows, [KeyRange(lower: lower, upper: upper)])
    guard try walk.next() else { throw NoSuchRow() }
    return (walk.cursor.key.array, try walk.value.array)
  }

  @Test(arguments: Damage.allCases)
  func `Damage to the rows of an index of words is found`(damage: Damage) async throws {
    let notes = try await notes()
    let database = notes.database
    #expect(try await database.verify().isEmpty)
    let (_, keys, rows) = try rows(database)
    var batch = Batch()
    let fresh = try first(keys.fresh(0), keys.runs(from: 0), rows)
    let chunk = try first(keys.runs(from: 0), keys.document(0), rows)
    let document = try first(keys.document(0), keys.place([]), rows)
    let place = try first(keys.place([]), keys.state, rows)
    switch damage {
    case .freshRow:
      var value = fresh.value
      value[value.count - 1] ^= 1
      batch.put(fresh.key, value)
    case .missingFreshRow: batch.delete(fresh.key)
    case .missingPlace: batch.delete(place.key)
    case .placeElsewhere: batch.put(place.key, SearchedPlace.gathered(1_000_000).bytes)
    case .extraPlace: batch.put(place.key + [1], place.value)
    case .document:
      var stored = try SearchedDocument(document.value.bytes)
      stored.lengths[0] += 1
      batch.put(document.key, stored.bytes)
    case .chunk:
      // One more occurrence of the last term.
      var reader = ChunkReader(chunk.value)
      while try reader.next() {}
      var value = chunk.value
      value[reader.entry.documents.upperBound - 1] ^= 1
      batch.put(chunk.key, value)
    case .missingChunk: batch.delete(chunk.key)
    case .extraDocument: batch.put(keys.document(1_000_000), document.value)
    }
    _ = try await database.engine.commit(batch, durability: .memory)
    let findings = try await database.verify()
    #expect(!findings.isEmpty, "\(damage)")
    #expect(findings.allSatisfy { $0.kind == .index && "\($0)".contains("title,body search") })
    // A rebuilt index is whole.
    _ = try await database.rebuildIndexes(of: CollectionPath("notes"), named: nil) { _ in }
    #expect(try await database.verify().isEmpty)
    #expect(try await notes.query.search("온돌", in: "body").count() == 99)
    try await database.close()
  }

  @Test func `An index of words comes back from recovery`() async throws {
    let world = Environment.memory()
    let database = try await Database.open(at: "db", environment: world)
    let notes = database.collection("notes")
    try await notes.createSearchIndex(on: ["body"], weights: ["body": 2])
    for number in 0..<30 {
      try await notes.document("n\(number)").setData(["body": "온돌 number\(number)"])
    }
    try await database.close()
    _ = try await Database.salvage(from: "db", to: "saved", environment: world)
    let saved = try await Database.open(at: "saved", environment: world)
    while try await saved.collection("notes").listIndexes().contains(where: { $0.state != .ready })
    {
      await Task.yield()
    }
    #expect(try await saved.collection("notes").listIndexes().map(\.name) == ["body^2 search"])
    let found = try await saved.collection("notes").query.search("number7", in: "body").getMatches()
    #expect(found.map(\.document.documentID) == ["n7"])
    #expect(try await saved.verify().isEmpty)
    try await saved.close()
  }

  @Test func `The rows of an index of words are its documents`() async throws {
    let notes = try await notes()
    let page = try await notes.database.listIndex(
      "title,body search", of: "notes", bounds: (nil, nil), from: nil, limit: 1_000)
    let rows = try #require(page).rows
    #expect(rows.count == 99 && rows[0].document == "notes/n0")
    guard case .value(.integer(2)) = rows[0].components[0] else {
      Issue.record("the title has two words, and not \(rows[0].components[0])")
      return
    }
    #expect(try await notes.listIndexes().first?.isSearch == true)
    #expect(try await notes.listIndexes().first?.entries == 99)
    try await notes.database.close()
  }
}
