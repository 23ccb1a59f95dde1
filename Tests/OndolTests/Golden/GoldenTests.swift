// The kept databases are read, checked, written to and read again, and a reader in another
// language, made from the description of the format alone, finds the same contents.

import Foundation
import OndolEngine
import Testing

@testable import Ondol

@Suite struct `Databases that were kept` {
  let scratch: ScratchDirectory

  init() throws {
    scratch = try ScratchDirectory()
  }

  @Test(.enabled(if: GoldenDatabase.makesNew)) func `They are made anew when asked for`()
    async throws
  {
    try await GoldenMaking.makeAll()
  }

  @Test func `All are there`() throws {
    #expect(GoldenDatabase.all.map(\.name) == ["closed", "distinct", "killed", "nulls"])
  }

  @Test(.disabled(if: GoldenDatabase.makesNew), arguments: GoldenDatabase.all)
  func `Everything is in them that was`(golden: GoldenDatabase) async throws {
    let expected = try golden.content()
    let place = scratch.path(golden.name)
    try golden.copy(to: place)
    // Reading changes nothing, and recovers nothing.
    let look = try await Database.open(
      at: place, options: Database.Options(access: .readOnly))
    #expect(try await difference(look, expected).isEmpty)
    try await look.close()
    let findings = try await Database.verify(at: place, depth: .full)
    #expect(findings.filter { $0.severity == .error }.isEmpty, "\(findings)")

    let database = try await Database.open(at: place)
    #expect(try await difference(database, expected).isEmpty)
    // Beside readers, unclosed logs are replaced, and the writer waits for that.
    try await database.synchronize()
    let found = try await database.verify(depth: .full)
    #expect(found.isEmpty, "\(found)")
    try await database.close()
  }

  @Test(.disabled(if: GoldenDatabase.makesNew), arguments: GoldenDatabase.all)
  func `They can be written, and lose nothing by it`(golden: GoldenDatabase) async throws {
    let expected = try golden.content()
    let place = scratch.path(golden.name)
    try golden.copy(to: place)
    var database = try await Database.open(at: place)
    let items = database.collection("items")
    try await items.document("new").setData(["price": 997, "name": "new", "tags": ["t0"]])
    try await database.collection("others").document("a").setData(["b": 1])
    try await database.tree.child("new").setValue(1)
    let blob = try await database.storage.put(Array(repeating: 7, count: 5_000))
    try await database.document("others/b").setData(["blob": blob])
    // The kept indexes have both.
    let found = try await items.whereField("price", isEqualTo: 997).getDocuments()
    #expect(found.documents.map(\.documentID) == ["i1", "new"].suffix(found.documents.count))
    #expect(found.documents.last?.documentID == "new")
    try await database.compact()
    try await database.close()

    database = try await Database.open(at: place)
    let lines = try await Set(GoldenContent.lines(of: database))
    #expect(expected.filter { !lines.contains($0) } == [])
    #expect(lines.count == expected.count + 6)
    #expect(try await database.storage.data(of: blob).count == 5_000)
    #expect(try await database.verify(depth: .full).isEmpty)
    try await database.close()
  }

  /// Lines that only one has, shortened.
  private func difference(_ database: Database, _ expected: [String]) async throws -> [String] {
    let lines = try await GoldenContent.lines(of: database)
    return lines.difference(from: expected).map { "\($0)".prefix(300).description }
  }
}
