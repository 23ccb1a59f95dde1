// Null in unique indexes: as a missing field or as a value, by the index's option, in random
// histories compared with a model, and in databases from before the option.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite("Null in unique indexes")
struct UniqueNullTests {
  // MARK: - Against a model

  /// A unique index of the histories.
  private struct Rule: Hashable {
    var fields: [String]
    var nullsDistinct: Bool

    /// The value that a document claims; nil if it may agree with others.
    func claim(_ fields: [String: Value]) -> [Value]? {
      var values: [Value] = []
      for name in self.fields.map({ $0.filter { $0 != "-" } }) {
        guard let value = fields[name] else { return nil }
        if nullsDistinct, value == .null { return nil }
        values.append(value)
      }
      return values
    }

    func isBroken(by documents: [String: [String: Value]]) -> Bool {
      let collections = Dictionary(grouping: documents) { $0.key.prefix { $0 != "#" } }
      return collections.values.contains { members in
        let claims = members.compactMap { claim($0.value) }
        return Set(claims).count < claims.count
      }
    }
  }

  private static let rules = [
    Rule(fields: ["a"], nullsDistinct: true), Rule(fields: ["a"], nullsDistinct: false),
    Rule(fields: ["-a"], nullsDistinct: true), Rule(fields: ["a", "-b"], nullsDistinct: true),
    Rule(fields: ["b", "a"], nullsDistinct: false), Rule(fields: ["-b"], nullsDistinct: true),
  ]

  /// A database, and its expected contents: fields by "collection#id".
  private struct History {
    var database: Database
    var random: SeededRandom
    var rules: [Rule] = []
    var documents: [String: [String: Value]] = [:]
    var refusals = 0

    static let collections = ["c", "p/x/c", "p/y/c"]

    func reference(_ key: String) -> DocumentReference {
      let parts = key.split(separator: "#")
      return database.collection(String(parts[0])).document(String(parts[1]))
    }

    mutating func value() -> Value {
      random.chance(1, in: 10)
        ? random.pick([random.decimal(), random.grid()])
        : random.pick([.null, .null, .null, 1, 2, 3, "x", true])
    }

    mutating func fields() -> [String: Value] {
      var fields: [String: Value] = ["n": .integer(Int64(random.below(1_000)))]
      for name in ["a", "b"] where !random.chance(1, in: 4) { fields[name] = value() }
      return fields
    }

    mutating func write() async throws {
      var after = documents
      let batch = database.batch()
      for _ in 0..<(1 + random.below(4)) {
        let key = "\(Self.collections[random.below(3)])#d\(random.below(9))"
        if random.chance(1, in: 5) {
          after[key] = nil
          batch.deleteDocument(reference(key))
        } else {
          let fields = fields()
          after[key] = fields
          try batch.setData(fields, forDocument: reference(key))
        }
      }
      let expected = rules.first { $0.isBroken(by: after) }
      do {
        try await batch.commit()
        #expect(expected == nil, "what \(expected?.fields ?? []) refuses was written")
        documents = after
      } catch {
        #expect(error.code == .alreadyExists && expected != nil, "\(error)")
        refusals += 1
      }
    }

    mutating func createIndex() async throws {
      let rule = UniqueNullTests.rules[random.below(UniqueNullTests.rules.count)]
      let isBroken = rule.isBroken(by: documents)
      do {
        for path in ["c", "p/any/c"] {
          let name = try await database.collection(path).createIndex(
            on: rule.fields, unique: true, nullsDistinct: rule.nullsDistinct)
          let listed = try await database.collection(path).listIndexes().first { $0.name == name }
          #expect(listed?.isUnique == true)
          #expect(listed?.nullsDistinct == rule.nullsDistinct)
        }
        #expect(!isBroken, "\(rule) was made")
        if !rules.contains(rule) { rules.append(rule) }
      } catch {
        #expect(error.code == .alreadyExists && isBroken, "\(rule): \(error)")
        // The index of the other pattern may exist.
        for path in ["c", "p/any/c"] {
          let suffix = rule.nullsDistinct ? "" : " nulls not distinct"
          try await database.collection(path).dropIndex(
            named: rule.fields.joined(separator: ",") + " unique" + suffix)
        }
        rules.removeAll { $0 == rule }
      }
    }

    func compare() async throws {
      for path in Self.collections {
        let collection = database.collection(path)
        let prefix = "\(path)#"
        let members = documents.filter { $0.key.hasPrefix(prefix) }
        func expect(
          _ query: Query, _ isFound: ([String: Value]) -> Bool
        ) async throws {
          let found = try await query.getDocuments().documents.map(\.documentID)
          let expected = members.filter { isFound($0.value) }.keys.map {
            String($0.dropFirst(prefix.count))
          }
          #expect(found.sorted() == expected.sorted(), "\(query)")
          #expect(try await query.count.getAggregation().count == expected.count, "\(query)")
        }
        for value: Value in [.null, 1, "x"] {
          try await expect(collection.whereField("a", isEqualTo: value)) { $0["a"] == value }
          try await expect(collection.whereField("b", isEqualTo: value)) { $0["b"] == value }
          try await expect(collection.whereField("a", in: [value, 2])) {
            $0["a"] == value || $0["a"] == 2
          }
          for other: Value in [.null, 2] {
            let both = collection.whereField("a", isEqualTo: value)
              .whereField("b", isEqualTo: other)
            try await expect(both) { $0["a"] == value && $0["b"] == other }
            try await expect(both.order(by: .documentID(), descending: true).limit(to: 100)) {
              $0["a"] == value && $0["b"] == other
            }
          }
        }
        let ordered = try await collection.order(by: "a").order(by: "b").getDocuments().documents
        let places = ordered.map { document in
          [document.data()["a"] ?? .null, document.data()["b"] ?? .null]
        }
        #expect(
          places.elementsEqual(places.sorted { ValueOrder.compare(.array($0), .array($1)) < 0 }))
        #expect(ordered.count == members.count { $0.value["a"] != nil && $0.value["b"] != nil })
        try await auditIndexes(of: collection)
      }
    }
  }

  @Test(arguments: Seeds.first(24))
  func `Writes, queries and openings agree with a model`(seed: UInt64) async throws {
    let world = SimulatedWorld(seed: seed)
    func open() async throws -> Database {
      try await Database.open(at: "/db", environment: world.environment)
    }
    var history = History(database: try await open(), random: SeededRandom(seed: seed))
    for _ in 0..<60 {
      switch history.random.below(12) {
      case 0, 1: try await history.createIndex()
      case 2:
        try await history.database.close()
        history.database = try await open()
      case 3: try await history.database.engine.flush()
      default: try await history.write()
      }
      try await history.compare()
    }
    #expect(try await history.database.verify(depth: .full).isEmpty, "seed \(seed)")
    try await history.database.close()
  }

  // MARK: - Two kinds of index

  @Test func `Both kinds of one field are two indexes, and each is refused by its own rule`()
    async throws
  {
    let database = try await Database.underTest()
    let users = database.collection("users")
    let distinct = try await users.createIndex(on: ["email"], unique: true)
    try await users.document("a").setData(["email": Value.null])
    try await users.document("b").setData(["email": Value.null])
    await #expect(throws: DatabaseError.self) {
      try await users.createIndex(on: ["email"], unique: true, nullsDistinct: false)
    }
    try await users.document("b").delete()
    let strict = try await users.createIndex(on: ["email"], unique: true, nullsDistinct: false)
    #expect([distinct, strict] == ["email unique", "email unique nulls not distinct"])
    let error = await #expect(throws: DatabaseError.self) {
      try await users.document("b").setData(["email": Value.null])
    }
    #expect(error?.code == .alreadyExists && error?.message.contains("users/a") == true)
    try await users.dropIndex(named: strict)
    try await users.document("b").setData(["email": Value.null])
    #expect(try await users.listIndexes().map(\.name) == [distinct])
  }

  @Test func `A plan does not take a null for one document`() async throws {
    let database = try await Database.underTest()
    let items = database.collection("items")
    try await items.createIndex(on: ["code"], unique: true)
    try await items.createIndex(on: ["kind"])
    let batch = database.batch()
    for number in 0..<400 {
      try batch.setData(
        ["code": number < 10 ? Value.integer(Int64(number)) : Value.null, "kind": number % 100],
        forDocument: items.document("i\(number)"))
    }
    try await batch.commit()
    let query = items.whereField("code", isEqualTo: Value.null).whereField("kind", isEqualTo: 7)
    // Both indexes are walked, whatever queries for values have found in the unique one.
    for number in 0..<10 {
      #expect(try await items.whereField("code", isEqualTo: number).getDocuments().count == 1)
      let plan = try await query.explain(analyze: true)
      #expect(plan.documentsReturned == 3)
      #expect(plan.documentsExamined ?? 400 < 10)
    }
    let all = items.whereField("code", isEqualTo: Value.null)
    #expect(try await all.explain().indexName == "code unique")
    #expect(try await all.getDocuments().count == 390)
  }

  // MARK: - As bytes

  @Test func `The kind is a flag, which earlier versions do not know`() throws {
    let field = IndexField(["a"])
    func bytes(_ kind: IndexKind) -> [UInt8] {
      var bytes: [UInt8] = []
      bytes.append(kind)
      return bytes
    }
    let before = bytes(IndexKind([field], isUnique: true, nullsDistinct: false))
    let now = bytes(IndexKind([field], isUnique: true))
    #expect(before.last == 2 && now.last == 130)
    for kind in [
      IndexKind([field], isUnique: true), IndexKind([field]),
      IndexKind([field], isUnique: true, nullsDistinct: false),
    ] {
      var reader = ByteReader(bytes(kind).bytes)
      let read = try reader.indexKind()
      #expect(read == kind)
    }
    // Distinct nulls of an index that is not unique.
    let other = Array(now.dropLast()) + [128]
    #expect(throws: MalformedBytes.self) {
      var reader = ByteReader(other.bytes)
      _ = try reader.indexKind()
    }
  }

  @Test func `A dump from before names its indexes otherwise`() async throws {
    let world = SimulatedWorld(seed: 1)
    let loading = try await Restoration.begin(at: "/db", environment: world.environment)
    var collection = DumpedCollection(pattern: ["users"])
    let kind = IndexKind([IndexField(["email"])], isUnique: true, nullsDistinct: false)
    collection.indexes = [DumpedIndex(kind)]
    #expect(collection.indexes[0].name == "email unique nulls not distinct")
    collection.indexes[0].name = "email unique"
    try loading.declare(collection)
    collection.pattern = ["users", "x"]
    collection.indexes[0].name = "email"
    #expect(throws: DatabaseError.self) { try loading.declare(collection) }
    await loading.abandon()
  }

  @Test func `In a database from before null is a value still`() async throws {
    let scratch = try ScratchDirectory()
    let golden = GoldenDatabase(name: "nulls")
    let place = scratch.path("nulls")
    try golden.copy(to: place)
    for _ in 0..<2 {
      let database = try await Database.open(at: place)
      let items = database.collection("items")
      #expect(
        try await items.listIndexes().map(\.name).sorted()
          == ["code unique nulls not distinct", "place,-seat unique nulls not distinct"])
      let error = await #expect(throws: DatabaseError.self) {
        try await items.document("new").setData(["code": Value.null])
      }
      #expect(error?.code == .alreadyExists && error?.message.contains("items/i0") == true)
      await #expect(throws: DatabaseError.self) {
        try await items.document("new").setData(["place": Value.null, "seat": Value.null])
      }
      let found = try await items.whereField("code", isEqualTo: Value.null).getDocuments()
      #expect(found.documents.map(\.documentID) == ["i0"])
      #expect(try await database.verify(depth: .full).isEmpty)
      try await database.close()
    }
  }

  @Test func `Salvaged, and dumped and loaded, databases have both kinds`() async throws {
    let scratch = try ScratchDirectory()
    for golden in [GoldenDatabase(name: "nulls"), GoldenDatabase(name: "distinct")] {
      let place = scratch.path(golden.name)
      try golden.copy(to: place)
      let saved = scratch.path("\(golden.name) saved")
      let report = try await Database.salvage(from: place, to: saved)
      #expect(report.losses.isEmpty)
      let dump = scratch.path("\(golden.name) dump")
      let loaded = scratch.path("\(golden.name) loaded")
      #expect(try await scratch.ondol("dump", place, "-o", dump).status == 0)
      #expect(try await scratch.ondol("load", loaded, dump).status == 0)
      for copy in [saved, loaded] {
        let database = try await Database.open(at: copy)
        await database.finishWhatWasBegun()
        let items = database.collection("items")
        for index in try await items.listIndexes() {
          #expect(index.nullsDistinct == (golden.name == "distinct"))
          #expect(index.state == .ready)
        }
        #expect(try await items.listIndexes().count == 2)
        try await auditIndexes(of: items)
        #expect(try await database.verify(depth: .full).isEmpty)
        try await database.close()
      }
    }
  }
}
