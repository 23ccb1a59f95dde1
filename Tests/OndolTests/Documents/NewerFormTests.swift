// Where values are stored beside a collection's documents, and how versions that do not know them
// are told: conditions of indexes, of groups too, and what commits say for the change feed. Cursors
// are texts that apps keep; the tree takes no decimal in any way.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

private let tenth = DecimalValue("0.1").map { Value.decimal($0) } ?? .null
private let grid = Value.array([.array([1]), .array([])])

/// What the versions without decimals make of the kind of an index: they know 7 of the second byte.
private func isNewer(_ kind: [UInt8]) throws -> Bool {
  var reader = ByteReader(kind.bytes)
  for _ in 0..<(try reader.count(atMost: 10)) {
    guard try reader.byte() <= 1 else { return true }
    _ = try reader.texts()
  }
  guard try reader.byte() & 64 != 0 else { return false }
  return try reader.byte() > 7
}

private func bytes(of kind: IndexKind) -> [UInt8] {
  var bytes: [UInt8] = []
  bytes.append(kind)
  return bytes
}

private func partial(_ operands: [Value]) -> IndexKind {
  var kind = IndexKind([IndexField(["a"], descending: false)])
  kind.condition = .any([
    .field(FieldFilter(field: .field(["b"]), condition: .less(1))),
    .all([.field(FieldFilter(field: .field(["a"]), condition: .isIn(operands)))]),
  ])
  return kind
}

@Suite struct `Values that older versions do not know` {
  // MARK: - Conditions

  @Test(arguments: [
    [tenth], [1, tenth], [.array([.array([tenth])])], [.map(["x": tenth])],
  ])
  func `A condition with a decimal says that it is newer, before it is read`(
    operands: [Value]
  ) throws {
    let kind = partial(operands)
    var written = bytes(of: kind)
    #expect(try isNewer(written))
    var reader = ByteReader(written.bytes)
    #expect(try reader.indexKind() == kind)
    let isAtEnd = reader.isAtEnd
    #expect(isAtEnd)
    // A later version's mark is refused as newer by this one.
    let place = try #require(written.firstIndex(of: 8 | 64)) + 1
    written[place] = 16
    let error = #expect(throws: MalformedBytes.self) {
      var reader = ByteReader(written.bytes)
      _ = try reader.indexKind()
    }
    #expect(error?.isOfNewerVersion == true)
  }

  @Test func `A condition without one keeps its bytes, and one of a decimal of 1 is read`() throws {
    #expect(try !isNewer(bytes(of: partial([1, 0.5, grid]))))
    // In keys it is the integer.
    let one = Value.decimal(DecimalValue(Int64(1)))
    let written = bytes(of: partial([one, 2]))
    #expect(try isNewer(written))
    var reader = ByteReader(written.bytes)
    #expect(try reader.indexKind() == partial([1, 2]))
  }

  @Test func `Indexes of a collection and of a group have the mark in their rows`() async throws {
    let database = try await Database.underTest()
    try await database.document("c/d").setData(["a": 1])
    let condition = Filter.whereField("a", isGreaterThan: tenth)
    try await database.collection("c").createIndex(on: ["b"], where: condition)
    try await database.collectionGroup("c").createIndex(on: ["a"], where: condition)
    let rows = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    let group = try #require(try rows.row(CatalogKey.group("c")))
    #expect(group.first == 1)
    #expect(try isNewer(Array(group.dropFirst())))
    let family = try #require(try await database.family("c"))
    let entry = try #require(family.collections[CollectionPattern(["c"])])
    #expect(entry.allIndexes.count == 2)
    for index in entry.allIndexes { #expect(try isNewer(bytes(of: index.kind))) }
    // The documents have none, and need no mark.
    #expect(entry.symbols.forms.isEmpty)
    // A collection that joins the group has the index, and it serves.
    try await database.document("u/x/c/e").setData(["a": tenth])
    try await database.document("u/x/c/f").setData(["a": 2])
    let found = database.collectionGroup("c").whereField("a", isGreaterThan: tenth)
    #expect(try await found.getDocuments().documents.map(\.documentID) == ["d", "f"])
    #expect(try await database.verify(depth: .full).isEmpty)
    try await database.close()
  }
}
