// How the app declares the schema of its documents.

internal import OndolEngine

extension CollectionReference {
  /// Declares that documents have schema `version` from now on, and how a document of an earlier
  /// schema becomes one of this schema. Documents written before the first call have schema 0. Call
  /// this whenever the database was opened, before documents are used.
  ///
  /// From then on everything sees upgraded documents: reads, conditions and orders of queries,
  /// aggregates, listeners and writes, all from one moment on. In the background, ordinary commits
  /// rewrite the documents. The next call resumes an upgrade that a crash interrupted. Until it is
  /// complete, queries walk the whole collection, because indexes contain the stored values.
  ///
  /// A document that cannot be upgraded stays unchanged and blocks no other. Reading it by its id
  /// throws. Queries omit it, and their snapshots list it in `unreadable`. It can be replaced or
  /// deleted. The upgrade is tried again after the next open.
  ///
  /// The schema applies to this collection and to those with the same names below other documents.
  /// `drop()` keeps it.
  ///
  /// - Parameters:
  ///   - version: 0 or more, and more than that of the app before. The same number again resumes an
  ///     upgrade under way.
  ///   - upgrade: changes the fields of a document of the given schema. It must not depend on
  ///     anything else. Reads of a document throw what it throws.
  ///   - progress: called in the background each time some documents were checked, and at the end.
  /// - Throws: `.failedPrecondition` when documents have a later schema already; otherwise as a
  ///   write.
  /// - Complexity: O(1); the rewriting afterwards O(documents), a hundred at a time.
  public func setSchema(
    version: Int,
    _ upgrade: @escaping @Sendable (inout [String: Value], Int) throws -> Void,
    progress: @escaping @Sendable (SchemaProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    let pattern = CollectionPattern(try place.get())
    try database.refuseInTransaction("setSchema", "\(pattern)")
    let schemas = database.catalog.schemas
    let former = schemas.declare(.init(version: version, upgrade: upgrade), of: pattern)
    let history: SchemaHistory
    do throws(DatabaseError) {
      history = try await database.changeCatalog(of: pattern.root) {
        (edit) throws(DatabaseError) in try edit.beginSchema(version, of: pattern)
      }
    } catch {
      schemas.withdraw(version, of: pattern, for: former)
      throw error
    }
    guard !history.epochs.isEmpty else { return }
    // If the schema had begun before, listeners have seen documents that were not upgraded.
    database.observers.invalidate(below: pattern.root)
    guard !database.engine.isReadOnly else { return }
    let rewrite = SchemaRewrite(pattern: pattern, progress: progress)
    database.engine.startInBackground { [weak database] in
      if let database { await rewrite.run(in: database) }
    }
  }
}

extension CatalogEdit {
  /// Begins an epoch of schema `version`, unless it has begun.
  mutating func beginSchema(
    _ version: Int, of pattern: CollectionPattern
  ) throws(DatabaseError) -> SchemaHistory {
    var history = try collection(pattern).schema
    guard version >= history.current else {
      throw DatabaseError(
        .failedPrecondition,
        "the documents have schema \(history.current) already; open them with that version of the"
          + " app", path: "\(pattern)")
    }
    guard version > history.current, version >= 0 else { return history }
    history.epochs.append(.init(version: version, since: 0))
    try setSchema(history, of: pattern, changesReading: true)
    return history
  }
}
