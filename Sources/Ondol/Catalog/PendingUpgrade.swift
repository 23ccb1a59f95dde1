// What the app says of schemas, and what follows from it for a read: a document that an earlier
// schema wrote is shown as today's has it. The upgraded document is made into a row with the names
// of its fields in it, so that whoever looks at rows (conditions, orders, aggregates, selections)
// looks at an upgraded one as at any other. Between stages 3 and 4 of the read path; and in stage 1
// of the write path, which derives from what reads show.

internal import OndolEngine

/// Turns the fields of a document of an earlier schema into today's.
typealias SchemaUpgrade = @Sendable (inout [String: Value], Int) throws -> Void

/// What the app has said of schemas since it opened the database.
final class DeclaredSchemas: Sendable {
  struct Schema: Sendable {
    var version: Int
    var upgrade: SchemaUpgrade
  }

  /// What is left after all documents of a pattern were looked at, and upgraded where that went.
  struct Leftovers: Sendable {
    var history: SchemaHistory
    /// Snapshots of commits before this may have others.
    var since: SequenceNumber
    /// The keys of the documents that could not be upgraded, in order.
    var keys: [[UInt8]]
  }

  private struct State: Sendable {
    /// Those declared of a pattern, the last one last: an older snapshot has an earlier one.
    var schemas: [CollectionPattern: [Schema]] = [:]
    var leftovers: [CollectionPattern: Leftovers] = [:]
  }

  private let state = Guarded(State())

  /// Notes what the app says of a pattern; answers with what it has said of the same version.
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

  /// Takes back what the app has said and what was refused.
  func withdraw(_ version: Int, of pattern: CollectionPattern, for former: Schema?) {
    state.withLock { state in
      let others = (state.schemas[pattern] ?? []).filter { $0.version != version }
      state.schemas[pattern] = former.map { others + [$0] } ?? others
    }
  }

  /// Has what the app says of collections be said of them under their other name, too.
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

  /// The schema of what the app writes; nil when it has said nothing.
  func version(of pattern: CollectionPattern) -> Int? {
    state.withLock { $0.schemas[pattern]?.last?.version }
  }

  /// Notes that the documents of a pattern have been looked at, and which are left.
  func note(_ leftovers: Leftovers, of pattern: CollectionPattern) {
    state.withLock { $0.leftovers[pattern] = leftovers }
  }

  /// How documents of the pattern are upgraded in a snapshot of `sequence`; nil when none has an
  /// earlier schema, or the app has not said how.
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

/// An upgrade under way, as it concerns readers.
struct PendingUpgrade: Sendable {
  let history: SchemaHistory
  let upgrade: SchemaUpgrade
  /// The keys of the documents that could not be upgraded, when all others have been: then indexes
  /// hold what they should. Nil while there may be documents that are still to be upgraded.
  var leftovers: [[UInt8]]?

  /// Whether a document of this commit has an earlier schema.
  func concerns(_ version: Version) -> Bool { history.schema(of: version) < history.current }

  /// The document as today's schema has it.
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

  /// The row of the upgraded document, with its names in it.
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
  /// A document that has an earlier schema and cannot be brought to today's.
  static func unreadable(_ path: String, schema: Int, reason: String) -> DatabaseError {
    var error = DatabaseError(
      .failedPrecondition,
      "the document could not be upgraded from schema \(schema): \(reason); replace or delete it,"
        + " or declare an upgrade that can", path: path)
    error.isUnreadable = true
    return error
  }
}
