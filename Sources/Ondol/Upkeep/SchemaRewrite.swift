// Rewrites documents of an earlier schema, in the background and with ordinary commits. Only
// versions reveal it, because the written documents equal what reads have shown. It walks all
// documents of a pattern once. Documents that it could not rewrite remain, and queries report them.
// When none remain, the catalog forgets that there were earlier schemas.

internal import Logging
internal import OndolEngine

/// Rewrites the documents of one pattern that have an earlier schema.
struct SchemaRewrite: Sendable {
  let pattern: CollectionPattern
  let progress: @Sendable (SchemaProgress) -> Void

  /// What could not be rewritten.
  private struct Remainder {
    /// The keys of documents that cannot be upgraded.
    var unreadable: [[UInt8]] = []
    /// Other documents, which can be upgraded but not stored.
    var refusal: DatabaseError?
  }

  func run(in database: Database) async {
    do throws(DatabaseError) {
      try await database.latches.acquire(.schema(pattern))
    } catch {
      // The task was cancelled or the database closed: the next open continues.
      return
    }
    defer { database.latches.release(.schema(pattern)) }
    do throws(DatabaseError) {
      try await rewriteAll(in: database)
    } catch {
      guard error.code != .cancelled, error.code != .failedPrecondition || error.path != nil else {
        return
      }
      note(error, in: database)
    }
  }

  private func rewriteAll(in database: Database) async throws(DatabaseError) {
    guard let entry = try await database.family(pattern.root)?.collections[pattern],
      !entry.schema.epochs.isEmpty
    else { return }
    var state = SchemaProgress()
    var remainder = Remainder()
    var through: [UInt8]?
    repeat {
      try refuseWhenCancelled()
      let step = try await next(behind: through, in: database)
      let failures = try await rewrite(step.outdated, entry.keyspace, in: database, &remainder)
      state.documents += step.count
      state.rewritten += step.outdated.count - failures
      state.failures += failures
      through = step.last
      if through != nil { progress(state) }
    } while through != nil
    try await end(entry, remainder, in: database)
    state.isComplete = true
    progress(state)
  }

  /// Forgets the earlier schemas, or records what remains of them.
  private func end(
    _ entry: CollectionEntry, _ remainder: Remainder, in database: Database
  ) async throws(DatabaseError) {
    if let refusal = remainder.refusal { return note(refusal, in: database) }
    guard remainder.unreadable.isEmpty else {
      let snapshot = try database.engineSnapshot()
      database.catalog.schemas.note(
        .init(
          history: entry.schema, since: snapshot.sequence,
          keys: remainder.unreadable.sorted { $0.bytes.compare($1.bytes) < 0 }), of: pattern)
      return database.options.logger.error(
        "documents could not be upgraded, and stay as they are",
        metadata: ["collection": "\(pattern)", "documents": "\(remainder.unreadable.count)"])
    }
    try await database.changeCatalog(of: pattern.root) { (edit) throws(DatabaseError) in
      // Since then, another schema may have been declared, or the collection dropped.
      guard let now = edit.family.collections[pattern], now.keyspace == entry.keyspace,
        now.schema == entry.schema
      else { return }
      try edit.setSchema(
        SchemaHistory(base: now.schema.current), of: pattern, changesReading: false)
    }
  }

  private func note(_ error: DatabaseError, in database: Database) {
    database.options.logger.error(
      "documents could not be upgraded",
      metadata: ["collection": "\(pattern)", "error": "\(error)"])
  }

  // MARK: - Steps

  /// Checks some documents after a key.
  private func next(
    behind through: [UInt8]?, in database: Database
  ) async throws(DatabaseError) -> DocumentStretch {
    try await database.read(try database.engineSnapshot()) { (rows) throws(DatabaseError) in
      guard let entry = try rows.entry(of: pattern),
        let pending = rows.pendingUpgrade(of: pattern, entry)
      else { return DocumentStretch() }
      return try DocumentStretch(
        of: pattern, entry, behind: through, in: rows, where: pending.concerns)
    }
  }

  /// Rewrites documents, all in one commit, or each separately when one of them cannot be stored.
  /// Returns how many remain.
  private func rewrite(
    _ paths: [DocumentPath], _ keyspace: Keyspace, in database: Database,
    _ remainder: inout Remainder
  ) async throws(DatabaseError) -> Int {
    guard !paths.isEmpty else { return 0 }
    let intent = WriteIntent(change: .patch(fields: [:], mask: []), precondition: .isOutdated)
    do throws(DatabaseError) {
      let commit = try await database.commit(
        paths.map { DocumentWrite(path: $0, intent: intent) }, durability: .memory)
      let left = commit.documents.filter { $0.isUnreadable && !$0.isOver }
      remainder.unreadable += left.map { DocumentKey.key(keyspace, $0.path) }
      return left.count
    } catch {
      guard error.isOfDocument else { throw error }
      guard paths.count > 1 else {
        remainder.refusal = error.at(path: "\(paths[0])")
        return 1
      }
    }
    var failures = 0
    for path in paths { failures += try await rewrite([path], keyspace, in: database, &remainder) }
    return failures
  }
}
