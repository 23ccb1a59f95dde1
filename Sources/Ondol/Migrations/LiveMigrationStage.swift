// Carries out migrations with ordinary commits; each step can be interrupted.

internal import OndolEngine

/// The database itself.
struct LiveMigrationStage: MigrationStage {
  let database: Database

  func newest() throws(DatabaseError) -> SequenceNumber {
    try database.engineSnapshot().sequence
  }

  func read<R: Sendable>(
    _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    try await database.read(try database.engineSnapshot(), body)
  }

  mutating func write<R: Sendable>(
    _ body: @escaping @Sendable (Transaction) throws(DatabaseError) -> R
  ) async throws -> (result: R, changed: [DocumentPath]) {
    let database = database
    let (result, commit) = try await database.derive(attempts: .max, durability: .process) {
      snapshot in
      try await database.read(snapshot) { (rows) throws(DatabaseError) in
        let transaction = Transaction(database, rows)
        let result = try body(transaction)
        return (result, try transaction.finish()(rows))
      }
    }
    return (result, commit.documents.filter(\.isChanged).map(\.path))
  }

  mutating func run(
    _ body: @escaping @Sendable (Transaction) async throws -> Void, with record: MigrationRecord
  ) async throws {
    try await database.runTransaction { transaction in
      try await body(transaction)
      try transaction.add(record.write)
    }
  }

  mutating func rename(_ renaming: CollectionRenaming) async throws(DatabaseError) {
    try await database.rename(renaming)
  }

  mutating func createIndex(
    _ kind: IndexKind, of pattern: CollectionPattern
  ) async throws(DatabaseError) {
    try await database.createIndex(kind, of: pattern) { _ in }
  }

  mutating func dropIndex(
    _ index: IndexDefinition, of pattern: CollectionPattern
  ) async throws(DatabaseError) {
    try await database.dropIndex(index.keyspace, of: pattern)
  }

  mutating func removeEnded() async throws(DatabaseError) {
    _ = try await database.removeEnded()
  }

  mutating func setTimeToLive(
    _ field: FieldNames, of pattern: CollectionPattern
  ) async throws(DatabaseError) {
    try await database.setTimeToLive(field, of: pattern)
  }
}
