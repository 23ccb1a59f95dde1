// Values outside of a collection's documents, and how they are marked for versions that do not know
// them: conditions of indexes, also of groups, and annotations for the change feed. Cursors are
// texts that apps keep. The tree accepts no decimal in any way.

import OndolTestKit
import Testing

@testable import Ondol
@testable import OndolEngine

private let tenth = DecimalValue("0.1").map { Value.decimal($0) } ?? .null
private let grid = Value.array([.array([1]), .array([])])

/// The reaction of versions without decimals to the kind of an index: they know 7 of the second
/// byte.
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
    // This version refuses a later version's mark as newer.
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

  // MARK: - Changes

  private static let point = CommitPoint(sequence: SequenceNumber(rawValue: 1), time: 0)

  /// The annotations of the commits after the token, each in one record.
  private static func records(
    _ database: Database, since token: ChangeToken
  ) async throws -> [[UInt8]] {
    var history = try database.history(since: token)
    var records: [[UInt8]] = []
    while true {
      let commits = try await history.someCommits()
      if commits.isEmpty { return records }
      records += commits.flatMap(\.annotations)
    }
  }

  @Test func `The change feed's records name the forms of their documents`() async throws {
    let world = SimulatedWorld(seed: 1)
    var options = Database.Options(changeRetention: .init())
    options.encryption = .key(TestedEncryption.key)
    let database = try await Database.open(
      at: "/db", options: options, environment: world.environment)
    let keyed = database.collection("keyed")
    try await keyed.createWithOwnKey()
    let token = try database.changeToken()
    let document = database.document("c/d")
    try await document.setData(["a": 1])
    try await document.setData(["a": tenth])
    try await document.setData(["a": 2])
    try await document.setData(["a": grid])
    let batch = database.batch()
    try batch.setData(["a": 3], forDocument: document)
    try batch.setData(["k": tenth], forDocument: keyed.document("e"))
    try await batch.commit()
    let records = try await Self.records(database, since: token)
    // The form, and the documents before or after the commit.
    #expect(records.map { $0.prefix(1) }.prefix(4) == [[1], [5], [5], [5]])
    #expect(records[1][1] == 2 && records[2][1] == 2 && records[3][1] == 1)
    #expect(Set(records[4...].map { Array($0.prefix(2)) }) == [[6, 1], [6, 2]])
    var told: [Value?] = []
    for try await change in database.changes(since: token) {
      told += change.documents.map { $0.after.data()["a"] ?? $0.after.data()["k"] }
      if told.count == 6 { break }
    }
    #expect(told == [1, tenth, 2, grid, 3, tenth])
    try await database.close()
  }

  @Test func `A record of a later version is refused as that`() async throws {
    let database = try await Database.underTest()
    for record: [UInt8] in [[7], [5, 0x40]] {
      let error = #expect(throws: MalformedBytes.self) {
        _ = try ChangeRecord.read(record, in: database)
      }
      #expect(error?.isOfNewerVersion == true)
    }
    let commit = LoggedCommit(point: Self.point, annotations: [[7]])
    let error = #expect(throws: DatabaseError.self) { try DatabaseChange(commit, in: database) }
    #expect(error?.code == .unimplemented && error?.message.contains("newer version") == true)
    let damaged = LoggedCommit(point: Self.point, annotations: [[1, 9]])
    let other = #expect(throws: DatabaseError.self) { try DatabaseChange(damaged, in: database) }
    #expect(other?.code == .dataLoss)
    try await database.close()
  }

  // MARK: - Elsewhere

  @Test func `A cursor keeps them, however deep they are`() async throws {
    let items = try await Database.underTest().collection("items")
    let deep = (0..<100).reduce(Value.integer(1)) { inner, _ in .array([inner]) }
    for (number, value) in [tenth, grid, deep].enumerated() {
      try await items.document("d\(number)").setData(["a": value])
      try await items.document("e\(number)").setData(["a": value])
    }
    let all = try await items.order(by: "a").getDocuments().documents.map(\.documentID)
    for count in 1..<6 {
      let page = try await items.order(by: "a").limit(to: count).getDocuments()
      let text = try #require(page.cursor).description
      let cursor = try #require(QueryCursor(text))
      let rest = try await items.order(by: "a").start(after: cursor).getDocuments()
      #expect(page.documents.map(\.documentID) + rest.documents.map(\.documentID) == all)
    }
    try await items.database.close()
  }

  @Test func `The tree refuses decimals in every way of writing`() async throws {
    let database = try await Database.underTest()
    let place = database.tree.child("a")
    try await place.setValue(["n": 1])
    let inMap: [String: (any FieldContent)?] = ["x": [1, tenth] as [Value]]
    let ways: [() async throws -> Void] = [
      { try await place.setValue(tenth) }, { try await place.setValue(inMap) },
      { try await place.updateChildValues(["n": tenth]) },
      { try await place.setPriority(tenth) },
      { try await place.setValue(1, andPriority: tenth) },
      { try await place.setValue([".value": 1, ".priority": tenth]) },
      { try await place.setValue([".sv": ["increment": tenth] as [String: Value]]) },
      { try await place.onCloseSetValue(tenth) },
      { try await place.onCloseUpdateChildValues(["n": tenth]) },
    ]
    for (number, way) in ways.enumerated() {
      let error = await #expect(throws: DatabaseError.self, "way \(number)") { try await way() }
      #expect(error?.code == .invalidArgument, "way \(number)")
    }
    #expect(try await place.getData().value == ["n": 1])
    try await database.close()
  }
}
