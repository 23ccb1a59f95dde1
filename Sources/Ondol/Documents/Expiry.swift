// Documents that end at a moment one of their fields says. From that moment on no read returns
// them, whether their row is still there or not: every read compares the field with the clock. The
// rows are removed soon after by ordinary deletes, so that indexes shrink and listeners hear of it.
//
// Removal is a timer for the earliest moment known: set after a database was opened, when a field
// is declared, and by writes. When it goes off, what is over is deleted, some hundred documents a
// commit, and it is set for the next moment.

internal import Logging
internal import OndolEngine

extension CollectionEntry {
  /// Whether a document's time is over.
  func isOver(_ contents: DocumentSnapshot.Contents, at now: Int64) -> Bool {
    guard let timeToLive, case .timestamp(let end) = contents.value(at: timeToLive) else {
      return false
    }
    return end.microsecondsSince1970 <= now
  }

  /// The moment a document with these fields ends. A moment not known yet is the commit's.
  func end(of fields: [String: Value]?, now: Int64) -> Int64? {
    guard let timeToLive, let fields,
      case .timestamp(let end) = lookUp(timeToLive[...], in: fields)
    else { return nil }
    return end.isPending ? now : end.microsecondsSince1970
  }
}

extension CollectionReference {
  /// Makes `field` say when documents end: one whose field is a timestamp is no more from that
  /// moment on. No read, query or snapshot returns it; it is removed in the background soon after,
  /// in an ordinary commit. A document whose field is missing or something else stays. Collections
  /// below a document stay.
  ///
  /// Firestore's policy is the same, but returns documents for up to a day after their end.
  ///
  /// The rule belongs to this collection and those with the same names below other documents, and
  /// is kept with the database. It comes with an ascending index on the field.
  ///
  /// - Parameter field: a field or a path into maps; nil takes the rule back.
  /// - Throws: `.invalidArgument` when the field is no path; otherwise as `createIndex(on:)`.
  /// - Complexity: as `createIndex(on:)`.
  public func setTimeToLive(field: FieldPath?) async throws(DatabaseError) {
    let pattern = CollectionPattern(try place.get())
    let names = try field?.names()
    if let field { try await createIndex(on: ["\(field)"]) }
    try await database.changeCatalog(of: pattern.root) { (edit) throws(DatabaseError) in
      try edit.setTimeToLive(names, of: pattern)
    }
    if names != nil { database.reap(by: database.now()) }
  }
}

extension Database {
  /// Documents removed in one commit.
  private static let reapedTogether = 200
  /// Microseconds until the next attempt after a failure.
  private static let pauseAfterFailure: Int64 = 1_000_000

  /// Has the timer go off at `time` at the latest. Who only reads leaves it to the writer.
  func reap(by time: Int64) {
    if engine.isReadOnly { return }
    let isSooner = nextReaping.withLock { next in
      if let next, next <= time { return false }
      next = time
      return true
    }
    guard isSooner else { return }
    // Weak, so that a timer for next year does not keep a database that was let go.
    engine.startInBackground { [weak self, environment] in
      while environment.now() < time {
        if Task.isCancelled { return }
        await environment.sleep(time - environment.now())
      }
      await self?.reap(dueAt: time)
    }
  }

  private func reap(dueAt time: Int64) async {
    let isMine = nextReaping.withLock { next in
      guard next == time else { return false }
      next = nil
      return true
    }
    guard isMine, !Task.isCancelled else { return }
    do throws(DatabaseError) {
      while let found = try await findEnded() {
        if !found.isOver.isEmpty { _ = try await commit(found.isOver, durability: nil) }
        guard found.hasMore else {
          if let next = found.next { reap(by: next) }
          return
        }
      }
    } catch {
      guard error.code != .cancelled, error.code != .failedPrecondition else { return }
      options.logger.error(
        "documents whose time is over could not be removed", metadata: ["error": "\(error)"])
      reap(by: now() + Self.pauseAfterFailure)
    }
  }

  private struct Ended: Sendable {
    var isOver: [DocumentWrite] = []
    var hasMore = false
    var next: Int64?
  }

  /// Deletes of some documents whose time is over, and the moment the next one ends; nil when no
  /// collection's documents end.
  private func findEnded() async throws(DatabaseError) -> Ended? {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) -> Ended? in
      var ended: Ended?
      for family in try rows.catalog.families(in: rows) {
        for (pattern, entry) in family.collections {
          guard let field = entry.timeToLive,
            let index = entry.indexes.first(where: { $0.kind == IndexKind([IndexField(field)]) })
          else { continue }
          var found = ended ?? Ended()
          try Self.find(pattern, index.keyspace, rows, &found)
          ended = found
        }
      }
      return ended
    }
  }

  /// Walks an index: below each ancestor the earliest moments come first.
  private static func find(
    _ pattern: CollectionPattern, _ keyspace: Keyspace, _ rows: Rows, _ ended: inout Ended
  ) throws(DatabaseError) {
    let now = rows.catalog.clock()
    var lower = keyspace.prefix
    let upper = keyspace.prefix + [KeyCoding.afterAll]
    while true {
      var walk = RangeWalk(rows, [KeyRange(lower: lower, upper: upper)])
      var behind: [UInt8]?
      while behind == nil, try walk.next() {
        guard ended.isOver.count < reapedTogether else {
          ended.hasMore = true
          return
        }
        let entry = try EndEntry(walk.cursor.key, pattern)
        guard let end = entry.end, end <= now else {
          if let end = entry.end { ended.next = min(ended.next ?? end, end) }
          // Values that sort before timestamps, or behind them.
          let isBefore = entry.end == nil && walk.cursor.key.compare(entry.firstMoment.bytes) < 0
          behind = isBefore ? entry.firstMoment : entry.ancestors + [KeyCoding.afterAll]
          break
        }
        ended.isOver.append(
          DocumentWrite(
            path: entry.path, intent: WriteIntent(change: .delete, precondition: .isOver)))
      }
      guard let next = behind else { return }
      lower = next
    }
  }
}

/// A row of the index on the field that says when documents end.
private struct EndEntry {
  var path: DocumentPath
  /// What all rows below the same ancestors begin with.
  var ancestors: [UInt8]
  /// Nil when the field is no timestamp.
  var end: Int64?

  /// Before the rows of all timestamps below the same ancestors.
  var firstMoment: [UInt8] {
    var writer = KeyWriter(ancestors)
    writer.append(.timestamp(.minimum))
    return writer.bytes
  }

  init(_ key: RawSpan, _ pattern: CollectionPattern) throws(DatabaseError) {
    do throws(MalformedBytes) {
      var reader = KeyReader(key)
      try reader.skip(raw: 4)
      var ids: [String] = []
      for _ in 0..<pattern.ancestorCount { ids.append(try reader.id()) }
      ancestors = key.extracting(first: reader.offset).array
      if case .value(.timestamp(let moment)) = try reader.component() {
        end = moment.microsecondsSince1970
      }
      ids.append(try reader.id())
      path = DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] })
    } catch {
      throw DatabaseError(.dataLoss, "a row of an index is damaged: \(error.reason)")
    }
  }
}
