// Expiry: documents that end at the time in one of their fields. From that time on no read returns
// them, whether their row still exists or not, because every read compares the field with its own
// time. Ordinary deletes remove the rows soon afterwards, so that indexes shrink and listeners are
// notified. A commit that takes unique values from expired documents removes them at once.
//
// A timer for the earliest known time triggers the removal. Opening a database, declaring a field
// and writes set it. When it fires, expired documents are deleted, a few hundred in a commit, and
// the timer is set for the next time. The removal finds them by an index of the times, over all
// collections of a pattern. Nothing else uses this index, and no call can drop it.

internal import Logging
internal import OndolEngine

extension CollectionEntry {
  /// Whether a document has expired.
  func isOver(_ contents: DocumentSnapshot.Contents, at now: Int64) -> Bool {
    guard let timeToLive, case .timestamp(let end) = contents.value(at: timeToLive) else {
      return false
    }
    return end.microsecondsSince1970 <= now
  }

  /// The expiry time of a document with these fields. A pending time is the commit's.
  func end(of fields: [String: Value]?, now: Int64) -> Int64? {
    guard let timeToLive, let fields,
      case .timestamp(let end) = lookUp(timeToLive[...], in: fields)
    else { return nil }
    return end.isPending ? now : end.microsecondsSince1970
  }
}

extension CollectionReference {
  /// Makes `field` hold the expiry of documents: a document whose field is a timestamp ceases to
  /// exist at that time. No read, query or snapshot that begins afterwards returns it. It is
  /// removed in the background soon after, in an ordinary commit that listeners receive. A document
  /// whose field is missing or has another type stays. Collections below a document stay. Its
  /// unique values are free from that time on.
  ///
  /// A `DatabaseSnapshot`, a query and a transaction each use one time: a document that exists for
  /// one of its reads exists for all.
  ///
  /// Firestore's policy is the same, but returns documents for up to a day after their expiry.
  ///
  /// The rule applies to this collection and to those with the same names below other documents,
  /// and is stored with the database; `drop()` keeps it. It comes with an index of its own, which
  /// serves no queries and is not listed.
  ///
  /// - Parameter field: a field or a path into maps; nil removes the rule.
  /// - Throws: `.invalidArgument` when the field is not a valid path; otherwise as
  ///   `createIndex(on:)`.
  /// - Complexity: as `createIndex(on:)`.
  public func setTimeToLive(field: FieldPath?) async throws(DatabaseError) {
    let pattern = CollectionPattern(try place.get())
    try database.refuseInTransaction("setTimeToLive", "\(pattern)")
    try await database.setTimeToLive(try field?.names(), of: pattern)
  }
}

extension Database {
  /// Sets the field that holds the expiry of a pattern's documents, or none.
  func setTimeToLive(
    _ field: FieldNames?, of pattern: CollectionPattern
  ) async throws(DatabaseError) {
    let (index, dropped) = try await changeCatalog(of: pattern.root) {
      (edit) throws(DatabaseError) in try edit.setTimeToLive(field, of: pattern)
    }
    for index in dropped { try await removeRows(of: index.keyspace) }
    guard let index else { return }
    try await createIndex(index.kind, of: pattern) { _ in }
    reap(by: now())
  }

  /// Sets the field that holds the expiry of a pattern's documents unless it is set. All calls but
  /// the first only read.
  func expire(
    _ field: FieldNames, of pattern: CollectionPattern
  ) async throws(DatabaseError) {
    let isSet = try await read(try engineSnapshot(), asOf: now()) {
      (rows) throws(DatabaseError) in try rows.entry(of: pattern)?.timeToLive == field
    }
    if !isSet { try await setTimeToLive(field, of: pattern) }
  }
}

/// Schedules the next removal of documents.
final class Reaper: Sendable {
  let next = Guarded<Int64?>(nil)

  /// Schedules a removal at `time`; returns whether that is sooner than the scheduled one.
  fileprivate func note(_ time: Int64) -> Bool {
    next.withLock { next in
      if let next, next <= time { return false }
      next = time
      return true
    }
  }

  /// Whether the removal scheduled for `time` is still the next, and must run now.
  fileprivate func takeTurn(at time: Int64) -> Bool {
    next.withLock { next in
      guard next == time else { return false }
      next = nil
      return true
    }
  }
}

extension Database {
  /// Microseconds until the next attempt after a failure.
  private static let pauseAfterFailure: Int64 = 1_000_000

  /// Makes the timer fire at `time` at the latest. A process that only reads leaves it to the
  /// writer.
  func reap(by time: Int64) {
    if engine.isReadOnly { return }
    guard reaper.note(time) else { return }
    // Weak, so that a timer for next year does not keep a released database alive.
    engine.startInBackground { [weak self, environment] in
      while environment.now() < time {
        if Task.isCancelled { return }
        await environment.sleep(time - environment.now())
      }
      await self?.reap(dueAt: time)
    }
  }

  private func reap(dueAt time: Int64) async {
    guard reaper.takeTurn(at: time), !Task.isCancelled else { return }
    do throws(DatabaseError) {
      try await removeEnded()
    } catch {
      guard error.code != .cancelled, error.code != .failedPrecondition else { return }
      options.logger.error(
        "expired documents could not be removed", metadata: ["error": "\(error)"])
      // Until it is opened again nothing can be removed.
      if engine.failure == nil { reap(by: now() + Self.pauseAfterFailure) }
    }
  }

  /// Removes all expired documents, and sets the timer for the next expiry. Returns how many there
  /// were.
  @discardableResult
  package func removeEnded() async throws(DatabaseError) -> Int {
    var walk = EndWalk()
    var count = 0
    repeat {
      walk = try await findEnded(behind: walk)
      guard !walk.ended.isEmpty else { continue }
      let commit = try await commit(walk.ended, durability: nil)
      count += commit.documents.count { $0.isChanged }
    } while walk.hasMore
    if let next = walk.next { reap(by: next) }
    return count
  }

  /// Finds some expired documents, after those found before.
  private func findEnded(behind walk: EndWalk) async throws(DatabaseError) -> EndWalk {
    try await read(try engineSnapshot(), asOf: now()) { (rows) throws(DatabaseError) in
      var walk = walk
      try walk.goOn(in: rows)
      return walk
    }
  }
}

/// A walk over the documents with an expiry, in the order of their expiry. Expired documents are
/// the first part of each index, so the walk looks at nothing else except the first row after it.
private struct EndWalk: Sendable {
  /// Documents removed in one commit.
  private static let removedTogether = 200

  /// Deletes of documents that the last step found.
  var ended: [DocumentWrite] = []
  /// Whether the next step finds more.
  var hasMore = false
  /// The next expiry.
  var next: Int64?
  /// The last row of each index that was looked at. A row that still exists may have a reason to
  /// stay, such as an upgrade that gives its document more time.
  private var last: [Keyspace: [UInt8]] = [:]

  mutating func goOn(in rows: Rows) throws(DatabaseError) {
    (ended, hasMore, next) = ([], false, nil)
    for root in rows.catalog.endingRoots {
      for (pattern, entry) in try rows.catalog.family(root, in: rows)?.collections ?? [:] {
        guard let field = entry.timeToLive else { continue }
        for index in entry.ends where index.kind == .ends(field) && index.state == .ready {
          try walk(index, pattern, in: rows)
          if hasMore { return }
        }
      }
    }
  }

  private mutating func walk(
    _ index: IndexDefinition, _ pattern: CollectionPattern, in rows: Rows
  ) throws(DatabaseError) {
    var range = KeyRange(prefix: index.keyspace.prefix)
    if let last = last[index.keyspace] { range.lower = last + [0] }
    var walk = RangeWalk(rows, [range])
    while try walk.next() {
      let entry = try EndEntry(walk.cursor.key, pattern)
      guard entry.end <= rows.moment else {
        next = min(next ?? entry.end, entry.end)
        return
      }
      guard ended.count < Self.removedTogether else {
        hasMore = true
        return
      }
      last[index.keyspace] = walk.cursor.key.array
      // Its server removes it.
      if let witness = rows.catalog.witness, witness.concerns(entry.path) { continue }
      ended.append(
        DocumentWrite(
          path: entry.path, intent: WriteIntent(change: .delete, precondition: .isOver)))
    }
  }
}

/// A row of the index of expiry times.
private struct EndEntry {
  var end: Int64
  var path: DocumentPath

  init(_ key: RawSpan, _ pattern: CollectionPattern) throws(DatabaseError) {
    do throws(MalformedBytes) {
      var reader = KeyReader(key)
      try reader.skip(raw: 4)
      guard case .value(.timestamp(let moment)) = try reader.component() else {
        throw MalformedBytes(at: reader.offset, "no timestamp")
      }
      end = moment.microsecondsSince1970
      var ids: [String] = []
      for _ in 0...pattern.ancestorCount { ids.append(try reader.id()) }
      path = DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] })
    } catch {
      throw DatabaseError(.dataLoss, "a row of an index is damaged: \(error.reason)")
    }
  }
}
