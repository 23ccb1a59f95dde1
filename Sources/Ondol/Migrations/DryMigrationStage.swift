// A dry run of migrations: on a snapshot, with the rows of each would-be commit on top. The same
// code derives them, so the same documents fail.

internal import OndolEngine

/// A snapshot with the would-be commits on top.
struct DryMigrationStage: MigrationStage {
  let database: Database
  private var layers: SnapshotLayers
  private var catalog: Catalog
  /// The number that the last commit would have.
  private var sequence: SequenceNumber
  private let moment: Int64

  init(_ database: Database) throws(DatabaseError) {
    self.database = database
    let snapshot = try database.engineSnapshot()
    layers = SnapshotLayers(snapshot)
    catalog = Catalog(copying: database.catalog, adding: [])
    sequence = snapshot.sequence
    moment = database.now()
  }

  func newest() throws(DatabaseError) -> SequenceNumber { sequence }

  func read<R: Sendable>(
    _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    try await database.read(
      layers.snapshot, asOf: moment, with: catalog, canBeCancelled: true, body)
  }

  mutating func write<R: Sendable>(
    _ body: @escaping @Sendable (Transaction) throws(DatabaseError) -> R
  ) async throws -> (result: R, changed: [DocumentPath]) {
    let (result, prepared) = try await read { [database] (rows) throws(DatabaseError) in
      let transaction = Transaction(database, rows)
      let result = try body(transaction)
      return (result, try transaction.finish()(rows).prepared)
    }
    let changed = prepared.documents.filter(\.isChanged).map(\.path)
    add(prepared.batch, prepared.consequences.edits)
    return (result, changed)
  }

  mutating func run(
    _ body: @escaping @Sendable (Transaction) async throws -> Void, with record: MigrationRecord
  ) async throws {
    let rows = Rows(layers.snapshot, catalog, mayBlock: true, asOf: moment)
    let transaction = Transaction(database, rows)
    defer { transaction.end() }
    do {
      try await database.runBody { try await body(transaction) }
      try transaction.add(record.write)
      let prepared = try transaction.finish()(rows).prepared
      add(prepared.batch, prepared.consequences.edits)
      // The contents that it brought are forgotten.
      transaction.abandon(after: DatabaseError(.aborted, "it was a dry run"))
    } catch {
      transaction.abandon(after: error)
      throw error
    }
  }

  mutating func rename(_ renaming: CollectionRenaming) async throws(DatabaseError) {
    let change = try await read { (rows) throws(DatabaseError) in try rows.renaming(renaming) }
    guard var change else { return }
    var batch = Batch()
    change.edit.write(to: &batch)
    add(batch, [change.edit])
    // It must also not be visible under its old name.
    guard var gone = change.forgotten else { return }
    gone.collections = [:]
    catalog = Catalog(copying: catalog, adding: [gone])
  }

  mutating func createIndex(
    _ kind: IndexKind, of pattern: CollectionPattern
  ) async throws(DatabaseError) {
    let index = try await change(pattern) { (edit) throws(DatabaseError) in
      try edit.declareIndex(kind, of: pattern)
    }
    guard index.state != .ready else { return }
    let builder = IndexBuilder(database: database, pattern: pattern, keyspace: index.keyspace)
    while let step = try await read({ (rows) throws(DatabaseError) in
      try builder.nextStep(in: rows)
    }) {
      add(step.batch, [])
    }
    try await change(pattern) { (edit) throws(DatabaseError) in
      var index = index
      index.state = .ready
      edit.put(index, in: pattern)
    }
  }

  mutating func dropIndex(
    _ index: IndexDefinition, of pattern: CollectionPattern
  ) async throws(DatabaseError) {
    try await change(pattern) { (edit) throws(DatabaseError) in edit.drop(index, from: pattern) }
  }

  /// Expired documents are invisible, so this makes no difference.
  mutating func removeEnded() async throws(DatabaseError) {}

  mutating func setTimeToLive(
    _ field: FieldNames, of pattern: CollectionPattern
  ) async throws(DatabaseError) {
    try await change(pattern) { (edit) throws(DatabaseError) in
      _ = try edit.setTimeToLive(field, of: pattern)
    }
  }

  private mutating func change<R: Sendable>(
    _ pattern: CollectionPattern,
    _ change: @escaping @Sendable (inout CatalogEdit) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    let (found, result) = try await read { (rows) throws(DatabaseError) in
      guard let family = try rows.catalog.family(pattern.root, in: rows) else {
        var edit = try CatalogEdit(newFamily: pattern.root, following: nil, in: rows)
        let result = try change(&edit)
        return (edit, result)
      }
      var edit = CatalogEdit(family, in: rows)
      let result = try change(&edit)
      return (edit, result)
    }
    guard found.isChanged else { return result }
    var edit = found
    var batch = Batch()
    edit.write(to: &batch)
    add(batch, [edit])
    return result
  }

  /// Adds a batch on top of all others, as the next commit.
  private mutating func add(_ batch: consuming Batch, _ edits: [CatalogEdit]) {
    sequence = sequence.next
    layers.add(batch, stampedWith: sequence, time: moment)
    catalog = Catalog(
      copying: catalog,
      adding: edits.map { edit in
        var edit = edit
        edit.resolve(sequence)
        return edit.family
      })
  }
}
