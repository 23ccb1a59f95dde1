// The operations of a history on whole collections, beside the tasks that write documents. It drops
// collections that others read and creates them again, and declares one version of a schema after
// another. Each is a transaction that appends to a list, and a read shows that list: a collection
// is the first one, gone, or created again, and a document of the schema shows the declared
// versions. A transaction that misses one of them comes before it by its reads, and after it by
// what the other transaction saw at once.

internal import Ondol
internal import OndolEngine

extension DocumentHistory {
  private static let poolCount = 6
  private static let schemaCount = 5
  private static let styledKeys = ["a", "b"]

  /// The transactions that create, drop and recreate a pool.
  private static func changes(ofPool number: Int) -> [Int] {
    (0..<3).map { 900_000 + 10 * number + $0 }
  }

  /// The transactions that declare the versions of the schema.
  private static let schemas = (0..<schemaCount).map { 910_000 + $0 }

  private func pool(_ number: Int) -> CollectionReference { database.collection("pool\(number)") }
  private var styled: CollectionReference { database.collection("styled") }

  static var finalCatalogLists: [String: [Int]] {
    var lists = ["schema": schemas]
    for number in 0..<poolCount { lists["pool\(number)"] = changes(ofPool: number) }
    return lists
  }

  func beginCatalogHistory(_ recorder: TransactionRecorder) async throws {
    for number in 0..<Self.poolCount { try await makePool(number, 0, recorder) }
    for key in Self.styledKeys { try await styled.document(key).setData(["n": 0, "v": 0]) }
  }

  private func makePool(_ number: Int, _ step: Int, _ recorder: TransactionRecorder) async throws {
    let change = Self.changes(ofPool: number)[step]
    try await record(change, recorder) {
      try await pool(number).document("a").setData(["step": step])
      return TransactionRecord(number: change, appends: ["pool\(number)"])
    }
  }

  /// Drops each pool and creates it again, at moments that the seed chooses.
  func dropPools(_ recorder: TransactionRecorder) async throws {
    var random = SeededRandom(seed: SeededRandom.derive(seed, tasks))
    for number in 0..<Self.poolCount {
      for _ in 0..<random.below(3 * rounds) { await Task.yield() }
      let change = Self.changes(ofPool: number)[1]
      try await record(change, recorder) {
        try await pool(number).drop(includingDeclarations: random.chance(1, in: 2))
        return TransactionRecord(number: change, appends: ["pool\(number)"])
      }
      try await look(920_000 + 10 * number, recorder)
      for _ in 0..<random.below(rounds) { await Task.yield() }
      try await makePool(number, 2, recorder)
      try await look(920_001 + 10 * number, recorder)
    }
  }

  /// Declares one version of a schema after another. Documents show each of them.
  func declareSchemas(_ recorder: TransactionRecorder) async throws {
    var random = SeededRandom(seed: SeededRandom.derive(seed, tasks + 1))
    for (number, change) in Self.schemas.enumerated() {
      for _ in 0..<random.below(4 * rounds) { await Task.yield() }
      try await record(change, recorder) {
        try await styled.setSchema(version: number + 1) { fields, _ in
          fields["v"] = .integer(Int64(number + 1))
        }
        return TransactionRecord(number: change, appends: ["schema"])
      }
      try await look(930_000 + number, recorder)
    }
  }

  /// Reads everything in one snapshot.
  private func look(_ number: Int, _ recorder: TransactionRecorder) async throws {
    try await record(number, recorder) {
      let moment = database.snapshot()
      var reads = lists(of: try moment.getDocuments(collection))
      try readCatalogLists(moment, &reads)
      return TransactionRecord(number: number, reads: reads)
    }
  }

  // MARK: - Reading

  func readCatalogLists(
    _ moment: DatabaseSnapshot, _ reads: inout [String: [Int]]
  ) throws {
    for number in 0..<Self.poolCount {
      reads["pool\(number)"] = Self.list(
        ofPool: number, try moment.getDocument(pool(number).document("a")))
    }
    for key in Self.styledKeys {
      let list = try Self.list(ofSchema: try moment.getDocument(styled.document(key)))
      guard reads["schema"] ?? list == list else {
        throw BrokenInvariant("a snapshot shows two versions of a schema")
      }
      reads["schema"] = list
    }
  }

  /// Reads a pool or a document of the schema, by its id or by a query.
  func lookAtCatalog(
    _ choice: Int, _ transaction: Transaction, _ record: inout TransactionRecord
  ) throws {
    let (number, isQuery) = (choice / 2 % (Self.poolCount + 2), choice % 2 == 0)
    guard number < Self.poolCount else {
      let key = Self.styledKeys[number - Self.poolCount]
      let document = styled.document(key)
      let found =
        try isQuery
        ? transaction.getDocuments(styled.whereField("v", isGreaterThanOrEqualTo: 0)).documents
          .first { $0.documentID == key } : transaction.getDocument(document)
      guard let found else { throw BrokenInvariant("a query does not find \(document)") }
      return try note(try Self.list(ofSchema: found), "schema", &record)
    }
    let found =
      try isQuery
      ? transaction.getDocuments(pool(number)).documents.first
      : transaction.getDocument(pool(number).document("a"))
    try note(Self.list(ofPool: number, found), "pool\(number)", &record)
  }

  private static func list(ofPool number: Int, _ document: DocumentSnapshot?) -> [Int] {
    let count = document?["step"].map { (step: Int) in step + 1 } ?? 2
    return Array(changes(ofPool: number).prefix(count))
  }

  private static func list(ofSchema document: DocumentSnapshot) throws -> [Int] {
    guard let version: Int = document["v"] else {
      throw BrokenInvariant("\(document.reference) has lost a field")
    }
    return Array(schemas.prefix(version))
  }

  // MARK: - Writing beside a schema

  /// Increments a counter in a document of the schema: alone, or in a transaction that reads first.
  func changeStyled(_ number: Int, _ recorder: TransactionRecorder) async throws {
    let document = styled.document(Self.styledKeys[number % Self.styledKeys.count])
    if number % 3 == 0 {
      try await document.updateData(["n": FieldValue.increment(1)], durability: .memory)
    } else {
      try await record(number, recorder) {
        try await database.runTransaction(attempts: 1_000, durability: .memory) { transaction in
          let found = try transaction.getDocument(document)
          await Task.yield()
          try transaction.updateData(["n": (found["n"] ?? 0) + 1], forDocument: document)
          return TransactionRecord(
            number: number, reads: ["schema": try Self.list(ofSchema: found)])
        }
      }
    }
    recorder.countUp()
  }

  /// No increment is lost, and finally all versions are shown.
  func checkStyled(_ recorder: TransactionRecorder) async throws {
    let found = try database.snapshot().getDocuments(styled).documents
    let sum = found.reduce(0) { $0 + ($1["n"] ?? 0) }
    guard sum == recorder.countedUp, found.count == Self.styledKeys.count else {
      throw BrokenInvariant("documents of a schema count \(sum), and not \(recorder.countedUp)")
    }
  }
}
