// The app's schema declarations, and their effect on reads: a document of an earlier schema is
// shown in the current one. The upgraded document becomes a row with the names of its fields in it,
// so that code that looks at rows (conditions, orders, aggregates, selections) handles it like any
// other. This is between stages 3 and 4 of the read path, and in stage 1 of the write path, which
// derives from what reads show.

internal import OndolEngine

/// Turns the fields of a document of an earlier schema into those of the current one.
typealias SchemaUpgrade = @Sendable (inout [String: Value], Int) throws -> Void

/// The app's schema declarations since it opened the database.
final class DeclaredSchemas: Sendable {
  struct Schema: Sendable {
    var version: Int
    var upgrade: SchemaUpgrade
  }

  /// The documents that remain after all documents of a pattern were checked and upgraded where
  /// possible.
  struct Leftovers: Sendable {
    var history: SchemaHistory
    /// Snapshots of earlier commits may have others.
    var since: SequenceNumber
    /// The keys of the documents that could not be upgraded, in order.
    var keys: [[UInt8]]
  }

  private struct State: Sendable {
    /// Those declared for a pattern, the last one last: an older snapshot has an earlier one.
    var schemas: [CollectionPattern: [Schema]] = [:]
    var leftovers: [CollectionPattern: Leftovers] = [:]
  }

  private let state = Guarded(State())

  /// Declares a schema for a pattern; returns the app's earlier declaration of the same version.
  func declare(_ schema: Schema, of pattern: CollectionPattern) -> Schema? {
    state.withLock { state in
      var schemas = state.schemas[pattern] ?? []
      let former = schemas.first { $0.version == schema.version }
      schemas.removeAll { $0.version == schema.version }
      state.schemas[pattern] = schemas + [schema]
      state.leftovers[pattern] = nil
      return former
    }
  }

  /// Withdraws a declaration that was refused.
  func withdraw(_ version: Int, of pattern: CollectionPattern, for former: Schema?) {
    state.withLock { state in
      let others = (state.schemas[pattern] ?? []).filter { $0.version != version }
      state.schemas[pattern] = former.map { others + [$0] } ?? others
    }
  }

  /// Applies the declarations to renamed collections under their new name as well.
  func rename(_ renaming: CollectionRenaming) {
    state.withLock { state in
      for (pattern, schemas) in state.schemas {
        if let renamed = renaming.renamed(pattern) { state.schemas[renamed] = schemas }
      }
      for (pattern, leftovers) in state.leftovers {
        if let renamed = renaming.renamed(pattern) { state.leftovers[renamed] = leftovers }
      }
    }
  }

  /// The schema of documents that the app writes; nil without a declaration.
  func version(of pattern: CollectionPattern) -> Int? {
    state.withLock { $0.schemas[pattern]?.last?.version }
  }

  /// Records that the documents of a pattern have been checked, and which remain.
  func note(_ leftovers: Leftovers, of pattern: CollectionPattern) {
    state.withLock { $0.leftovers[pattern] = leftovers }
  }

  /// How documents of the pattern are upgraded in a snapshot of `sequence`; nil when none has an
  /// earlier schema, or the app has not declared an upgrade.
  func pendingUpgrade(
    of pattern: CollectionPattern, _ history: SchemaHistory, at sequence: SequenceNumber
  ) -> PendingUpgrade? {
    guard !history.epochs.isEmpty else { return nil }
    return state.withLock { state in
      let declared = state.schemas[pattern]
      guard let schema = declared?.last(where: { $0.version == history.current }) ?? declared?.last
      else { return nil }
      var pending = PendingUpgrade(history: history, upgrade: schema.upgrade)
      if let leftovers = state.leftovers[pattern], leftovers.history == history,
        leftovers.since <= sequence
      {
        pending.leftovers = leftovers.keys
      }
      return pending
    }
  }
}

/// An upgrade under way, from the readers' view.
struct PendingUpgrade: Sendable {
  let history: SchemaHistory
  let upgrade: SchemaUpgrade
  /// The keys of the documents that could not be upgraded, once all others have been: then indexes
  /// have the correct values. Nil while there may be documents that still need an upgrade.
  var leftovers: [[UInt8]]?

  /// Whether a document of this commit has an earlier schema.
  func concerns(_ version: Version) -> Bool { history.schema(of: version) < history.current }

  /// The document in the current schema.
  ///
  /// Throws an error that `isUnreadable` when it cannot be upgraded.
  func apply(
    _ contents: DocumentSnapshot.Contents, at path: @autoclosure () -> DocumentPath
  ) throws(DatabaseError) -> DocumentSnapshot.Contents {
    guard concerns(contents.stamps.version) else { return contents }
    var encoder = ValueEncoder(SymbolTable(limit: 0))
    let row = try row(of: contents.fields, contents.stamps, path(), &encoder)
    do throws(MalformedBytes) {
      return try DocumentSnapshot.Contents(row: row, symbols: SymbolTable(limit: 0))
    } catch {
      throw DatabaseError(error, documentAt: path())
    }
  }

  /// The row of the upgraded document, including its names.
  func row(
    of stored: [String: Value], _ stamps: DocumentStamps, _ path: DocumentPath,
    _ encoder: inout ValueEncoder
  ) throws(DatabaseError) -> [UInt8] {
    let schema = history.schema(of: stamps.version)
    var fields = stored
    do {
      try upgrade(&fields, schema)
      try encoder.encode(fields, createTime: stamps.createTime)
    } catch {
      throw .unreadable("\(path)", schema: schema, reason: "\(error)")
    }
    var row = encoder.bytes
    row.overwriteLittleEndian(stamps.version.rawValue, at: 0)
    row.overwriteLittleEndian(stamps.updateTime.microsecondsSince1970, at: 8)
    return row
  }
}

extension DatabaseError {
  /// The error for a document of an earlier schema that cannot be upgraded.
  static func unreadable(_ path: String, schema: Int, reason: String) -> DatabaseError {
    var error = DatabaseError(
      .failedPrecondition,
      "the document could not be upgraded from schema \(schema): \(reason); replace or delete it,"
        + " or declare an upgrade that can", path: path)
    error.isUnreadable = true
    return error
  }
}
