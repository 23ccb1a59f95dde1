// Documents of an earlier schema. An app that changes what its documents look like says so, with a
// number and a function that turns a document of an earlier number into today's. From then on a
// document of an earlier schema is upgraded whenever it is met, by a read for the reader, by a
// write for good; and in the background all of them are rewritten, with ordinary commits.
//
// A document does not store its schema. The catalog stores from which commit on documents have
// which, and a document knows the commit that wrote it. An upgrade is resumed after a crash simply
// by looking for documents that are still older.

internal import Logging
internal import OndolEngine

/// Turns the fields of a document of an earlier schema into today's.
typealias SchemaUpgrade = @Sendable (inout [String: Value], Int) throws -> Void

/// Which documents of a pattern have which schema.
struct SchemaHistory: Sendable, Hashable {
  /// The documents written by commits after `since`, up to the next epoch.
  struct Epoch: Sendable, Hashable {
    var version: Int
    /// Zero until the commit that begins the epoch is known.
    var since: UInt64
  }

  /// What documents before all epochs have.
  var base = 0
  /// Empty once every document has the same.
  var epochs: [Epoch] = []

  var current: Int { epochs.last?.version ?? base }

  /// The schema of a document that commit `version` wrote.
  func schema(of version: Version) -> Int {
    epochs.last { version.rawValue > $0.since }?.version ?? base
  }
}

/// An upgrade under way, as it concerns readers.
struct PendingUpgrade: Sendable {
  let history: SchemaHistory
  let upgrade: SchemaUpgrade

  /// The document as today's schema has it.
  func apply(
    _ contents: DocumentSnapshot.Contents, at path: @autoclosure () -> DocumentPath
  ) throws(DatabaseError) -> DocumentSnapshot.Contents {
    let schema = history.schema(of: contents.stamps.version)
    guard schema < history.current else { return contents }
    var fields = contents.fields
    do {
      try upgrade(&fields, schema)
    } catch {
      throw DatabaseError(
        .failedPrecondition, "the document could not be upgraded from schema \(schema): \(error)",
        path: "\(path())")
    }
    return DocumentSnapshot.Contents(stamps: contents.stamps, fields: fields)
  }
}

extension CollectionReference {
  /// Says that documents have schema `version` from now on, and how one of an earlier schema
  /// becomes one of this. Documents written before the first call have schema 0. Call it whenever
  /// the database was opened, before documents are used.
  ///
  /// From then on reads, queries and writes see documents upgraded, and in the background all are
  /// rewritten, with ordinary commits; an upgrade that a crash interrupts goes on at the next call.
  /// Until a document is rewritten, the conditions and orders of queries see its fields as they are
  /// stored.
  ///
  /// The schema belongs to this collection and those with the same names below other documents.
  ///
  /// - Parameters:
  ///   - version: 0 or more, and more than that of the app before. The same number again goes on
  ///     with an upgrade under way.
  ///   - upgrade: changes the fields of a document of the schema it is given. It must not depend on
  ///     anything else. What it throws, reads of that document throw.
  /// - Throws: `.failedPrecondition` when documents have a later schema already; otherwise as a
  ///   write.
  /// - Complexity: O(1); the rewriting afterwards O(documents), a hundred at a time.
  public func setSchema(
    version: Int,
    _ upgrade: @escaping @Sendable (inout [String: Value], Int) throws -> Void
  ) async throws(DatabaseError) {
    let pattern = CollectionPattern(try place.get())
    database.catalog.register(upgrade, for: pattern)
    let history = try await database.changeCatalog(of: pattern.root) {
      (edit) throws(DatabaseError) in try edit.beginSchema(version, of: pattern)
    }
    // What listeners have seen was not upgraded.
    if !history.epochs.isEmpty { database.observers.invalidate(below: pattern.root) }
    guard !history.epochs.isEmpty, !database.engine.isReadOnly else { return }
    let rewrite = SchemaRewrite(pattern: pattern)
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
    try setSchema(history, of: pattern)
    return history
  }
}

/// Rewrites the documents of one pattern that have an earlier schema.
struct SchemaRewrite: Sendable {
  let pattern: CollectionPattern

  /// Documents rewritten for one look at them.
  private static let batchCount = 100
  /// Documents looked at together: as long as that others may wait who must read from disk, too.
  private static let lookedAtTogether = 1_000

  func run(in database: Database) async {
    do throws(DatabaseError) {
      var through: [UInt8]?
      repeat {
        if Task.isCancelled { return }
        let (writes, last) = try await next(behind: through, in: database)
        for write in writes {
          do throws(DatabaseError) {
            _ = try await database.commit([write], durability: .memory)
          } catch {
            // Written meanwhile, and so upgraded.
            guard error.code == .aborted else { throw error }
          }
        }
        through = last
      } while through != nil
      try await database.changeCatalog(of: pattern.root) { (edit) throws(DatabaseError) in
        let history = try edit.collection(pattern).schema
        try edit.setSchema(SchemaHistory(base: history.current), of: pattern)
      }
    } catch {
      guard error.code != .failedPrecondition || error.path != nil else { return }
      database.options.logger.error(
        "documents could not be upgraded", metadata: ["error": "\(error)"])
    }
  }

  /// Writes for some documents behind a key that have an earlier schema, and the last key looked
  /// at; nil at the end.
  private func next(
    behind through: [UInt8]?, in database: Database
  ) async throws(DatabaseError) -> (writes: [DocumentWrite], last: [UInt8]?) {
    try await database.read(try database.engineSnapshot()) {
      (rows) throws(DatabaseError) -> (writes: [DocumentWrite], last: [UInt8]?) in
      guard let entry = try rows.catalog.family(pattern.root, in: rows)?.collections[pattern],
        let pending = rows.catalog.pendingUpgrade(of: pattern, entry)
      else { return ([], nil) }
      let prefix = entry.keyspace.prefix
      let range = KeyRange(
        lower: through.map { $0 + [0] } ?? prefix, upper: prefix + [KeyCoding.afterAll])
      var walk = RangeWalk(rows, [range])
      var last: [UInt8]?
      var writes: [DocumentWrite] = []
      var count = 0
      while try walk.next() {
        if writes.count == Self.batchCount || count == Self.lookedAtTogether {
          return (writes, last)
        }
        count += 1
        last = walk.cursor.key.array
        let ids = try DocumentKey.ids(
          in: walk.cursor.key, ancestorCount: pattern.ancestorCount)
        let path = DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] })
        let row = try walk.value.array
        let contents: DocumentSnapshot.Contents
        do throws(MalformedBytes) {
          contents = try .init(row: row, symbols: entry.symbols)
        } catch {
          throw DatabaseError(error, documentAt: path)
        }
        let version = contents.stamps.version
        guard pending.history.schema(of: version) < pending.history.current else { continue }
        let fields = try pending.apply(contents, at: path).fields
        writes.append(
          DocumentWrite(
            path: path,
            intent: WriteIntent(change: .replace(fields: fields), precondition: .version(version))))
      }
      return (writes, nil)
    }
  }
}

// MARK: - As bytes

extension SchemaHistory {
  var bytes: (value: [UInt8], stamps: [(offset: Int, form: StampForm)]) {
    var value: [UInt8] = []
    var stamps: [(offset: Int, form: StampForm)] = []
    value.appendVarint(UInt64(base))
    value.appendVarint(epochs.count)
    for epoch in epochs {
      value.appendVarint(UInt64(epoch.version))
      if epoch.since == 0 { stamps.append((value.count, .sequence)) }
      value.append(bits: epoch.since, width: 8)
    }
    return (value, stamps)
  }

  init(_ bytes: RawSpan) throws(MalformedBytes) {
    var reader = ByteReader(bytes)
    base = try reader.count(atMost: .max)
    for _ in 0..<(try reader.count(atMost: 1_000)) {
      let version = try reader.count(atMost: .max)
      epochs.append(Epoch(version: version, since: try reader.littleEndian()))
    }
  }

  /// Fills in the commit that begins the last epoch.
  mutating func resolve(_ sequence: SequenceNumber) {
    for index in epochs.indices where epochs[index].since == 0 {
      epochs[index].since = sequence.rawValue
    }
  }
}
