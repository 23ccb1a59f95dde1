// Arrays directly in arrays, and maps and arrays nested to the greatest depth: everything that
// works with values works with these. Their collection is marked in the catalog, for versions that
// do not know them.

import Foundation
import OndolEngine
import OndolJSON
import OndolTestKit
import Testing

@testable import Ondol

private struct Shape: Codable, Equatable, Sendable {
  var rings: [[[Double]]]
  var series: [[String: [Double]]]
  var sets: Set<[Int]>
  var optional: [[Int]?]
  var octets: [[UInt8]]
}

/// Alternating arrays and maps around a value, to a depth.
private func nested(_ depth: Int, around value: Value = 1) -> Value {
  (0..<depth).reduce(value) { inner, level in
    level % 2 == 0 ? .array([inner, 7]) : .map(["m": inner])
  }
}

@Suite struct `Nested values` {
  @Test func `Codable types with arrays in arrays come back as they were`() async throws {
    let database = try await Database.underTest()
    let shapes = database.collection("shapes")
    let shape = Shape(
      rings: [[[0, 0], [1, 0.5]], [], [[]]], series: [["a": [1, 2]], [:]],
      sets: [[1], [1, 2], []], optional: [[1], nil, []], octets: [[1, 2], []])
    // The second goes straight to its row, with the knowledge from the first.
    for id in ["first", "second"] {
      try await shapes.document(id).setData(from: shape)
      let read = try await shapes.document(id).getDocument()
      #expect(try read.data(as: Shape.self) == shape)
      #expect(read["octets"] == .array([.bytes([1, 2]), .bytes([])]))
    }
    let batch = database.batch()
    for number in 0..<50 {
      try batch.setData(from: shape, forDocument: shapes.document("\(number)"))
    }
    try await batch.commit()
    for document in try await shapes.getDocuments().documents {
      #expect(try document.data(as: Shape.self) == shape)
    }
    try await database.close()
  }

  @Test func `Fields, conditions, orders and indexes take them`() async throws {
    let database = try await Database.underTest()
    let grids = database.collection("grids")
    for id in ["a", "b", "c"] {
      try await grids.document(id).setData(["g": [[id], [[1, 2], []]], "n": [[1], [id]]])
    }
    for isIndexed in [false, true] {
      if isIndexed {
        try await grids.createIndex(on: ["g"])
        try await grids.createIndex(on: ["g[]"])
      }
      let contained = grids.whereField("g", arrayContains: ["b"])
      #expect(try await contained.getDocuments().documents.map(\.documentID) == ["b"])
      let any = grids.whereField("g", arrayContainsAny: [["a"], ["c"], ["x"]])
      #expect(try await any.getDocuments().documents.map(\.documentID) == ["a", "c"])
      let inner = grids.whereField("g", arrayContains: [[1, 2.0], [Int]()])
      #expect(try await inner.getDocuments().count == 3)
      let equal = grids.whereField("g", isEqualTo: Value.array([["c"], [[1, 2], []]]))
      #expect(try await equal.getDocuments().documents.map(\.documentID) == ["c"])
      let greater = grids.whereField("g", isGreaterThan: Value.array([["a"], [[1, 2], [0]]]))
      #expect(try await greater.getDocuments().documents.map(\.documentID) == ["b", "c"])
      let ordered = grids.order(by: "g", descending: true)
      #expect(try await ordered.getDocuments().documents.map(\.documentID) == ["c", "b", "a"])
      #expect(try await contained.explain().description.contains("scan") == !isIndexed)
    }
    try await database.close()
  }

  @Test func `Unions and removals take arrays as elements`() async throws {
    let database = try await Database.underTest()
    let document = database.document("c/d")
    try await document.setData(["a": [[1], [2, 3]]])
    try await document.updateData(["a": FieldValue.arrayUnion([[2.0, 3], [4], [[5]]])])
    #expect(try await document.getDocument()["a"] == [[1], [2, 3], [4], [[5]]])
    try await document.updateData(["a": FieldValue.arrayRemove([[1], [[5.0]]])])
    #expect(try await document.getDocument()["a"] == [[2, 3], [4]])
    try await database.close()
  }

  @Test func `A hundred are stored, found, changed and written as text; one more is refused`()
    async throws
  {
    let database = try await Database.underTest()
    let deep = database.collection("deep")
    try await deep.createIndex(on: ["v"])
    let value = nested(100)
    try await deep.document("a").setData(["v": value])
    try await deep.document("a").updateData(["w": 1])
    let read = try await deep.document("a").getDocument()
    #expect(read.data() == ["v": value, "w": 1])
    #expect(try await deep.whereField("v", isEqualTo: value).getDocuments().count == 1)
    #expect(
      try await deep.whereField("v", isEqualTo: nested(100, around: 2)).getDocuments().count == 0)
    let line = JSONWriter.line(value)
    #expect(try JSONReader.read(Array(line.utf8)) == value)
    let error = await #expect(throws: DatabaseError.self) {
      try await deep.document("b").setData(["v": nested(101)])
    }
    #expect(error?.code == .invalidArgument && error?.field?.hasPrefix("v") == true)
    // A map whose names begin with the mark of typed values has one more object around it.
    let marked = (0..<100).reduce(Value.integer(1)) { inner, _ in .map(["$m": inner]) }
    #expect(try JSONReader.read(Array(JSONWriter.line(marked).utf8)) == marked)
    try await database.close()
  }

  @Test func `The catalog says which collections have them, and only these`() async throws {
    let database = try await Database.underTest()
    try await database.document("plain/d").setData(["a": [1], "m": nested(20)])
    try await database.document("later/d").setData(["a": [1]])
    func row(_ root: String) async throws -> (key: [UInt8], value: [UInt8]?) {
      let family = try #require(try await database.family(root))
      let entry = try #require(family.collections[CollectionPattern([root])])
      let key = CatalogKey.forms(entry.keyspace)
      let rows = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
      let value = try rows.row(key)
      #expect(entry.symbols.forms.isEmpty == (value == nil))
      #expect(try rows.row(CatalogKey.mirrored(key)) == value)
      return (key, value)
    }
    #expect(try await row("plain").value == nil)
    #expect(try await row("later").value == nil)
    try await database.document("later/d").updateData(["b": [[1]]])
    #expect(try await row("later").value == [1])
    try await database.document("deep/d").setData(["m": nested(21)])
    #expect(try await row("deep").value == [1])
    #expect(try await database.verify().isEmpty)
    // The reaction of an earlier version to the row.
    let key = try await row("later").key
    let error = #expect(throws: MalformedBytes.self) { try CatalogKey.parse(key.bytes) }
    #expect(error?.isOfNewerVersion == true)
    // And this version's reaction to a later one's.
    let other = #expect(throws: MalformedBytes.self) { try ValueForms([0x40].bytes) }
    #expect(other.map { DatabaseError(catalog: $0).code } == .unimplemented)
    try await database.close()
  }

  @Test func `They need no large stack`() async throws {
    // The stack size of threads on other systems than Linux.
    let failure = await withCheckedContinuation {
      (continuation: CheckedContinuation<String?, Never>) in
      let thread = Thread {
        do {
          try Self.useAll(nested(100))
          continuation.resume(returning: nil)
        } catch {
          continuation.resume(returning: "\(error)")
        }
      }
      thread.stackSize = 512 << 10
      thread.start()
    }
    #expect(failure == nil)
  }

  private static func useAll(_ value: Value) throws {
    var symbols = SymbolTable()
    let row = try ValueEncoder.document(["v": value], createTime: .minimum, symbols: &symbols)
    let view = try DocumentView(row.bytes.bytes)
    try view.check(symbols)
    #expect(try view.fields(symbols)["v"] == value)
    _ = try WriteCompiler.set(["v": FieldInput(value)])
    var writer = KeyWriter()
    writer.append(value)
    var reader = KeyReader(writer.bytes.bytes)
    #expect(try reader.component() == .value(value))
    #expect(try JSONReader.read(Array(JSONWriter.line(value, .canonical).utf8)) == value)
    #expect(Set([value, value]).count == 1)
    #expect(value.isIdentical(to: value) && value.memoryBytes > 0 && !value.description.isEmpty)
    let tape = RowEncoder(symbols, RefusedTypes()).row(of: ["v": value])
    #expect(tape?.row.fields == ["v": value])
  }
}
