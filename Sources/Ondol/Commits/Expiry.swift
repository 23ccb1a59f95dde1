// Documents that end at a moment one of their fields says. From that moment on no read returns
// them, whether their row is still there or not: every read compares the field with its own moment.
// The rows are removed soon after by ordinary deletes, so that indexes shrink and listeners hear of
// it; and at once by a commit that takes unique values from them.
//
// Removal is a timer for the earliest moment known: set after a database was opened, when a field
// is declared, and by writes. When it goes off, what is over is deleted, some hundred documents a
// commit, and it is set for the next moment. An index of the moments, over all collections of a
// pattern, leads to it: nobody but removal uses it, and nobody can take it away.

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
  /// moment on. No read, query or snapshot begun afterwards returns it; it is removed in the
  /// background soon after, in an ordinary commit, of which listeners are told. A document whose
  /// field is missing or something else stays. Collections below a document stay. Unique values are
  /// free from that moment on.
  ///
  /// A `DatabaseSnapshot`, a query and a transaction look at one moment: a document that is there
  /// for one of its reads is there for all.
  ///
  /// Firestore's policy is the same, but returns documents for up to a day after their end.
  ///
  /// The rule belongs to this collection and those with the same names below other documents, and
  /// is kept with the database; `drop()` keeps it. It comes with an index of its own, which serves
  /// no queries and is not listed.
  ///
  /// - Parameter field: a field or a path into maps; nil takes the rule back.
  /// - Throws: `.invalidArgument` when the field is no path; otherwise as `createIndex(on:)`.
  /// - Complexity: as `createIndex(on:)`.
  public func setTimeToLive(field: FieldPath?) async throws(DatabaseError) {
    let pattern = CollectionPattern(try place.get())
    try database.refuseInTransaction("setTimeToLive", "\(pattern)")
    try await database.setTimeToLive(try field?.names(), of: pattern)
  }
}

extension Database {
  /// Says which field has the moment documents of a pattern end, or that none has.
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
}

/// When documents are next to be removed.
final class Reaper: Sendable {
  let next = Guarded<Int64?>(nil)

  /// Notes that there is something to do at `time`; answers whether that is sooner than what was
  /// known.
  fileprivate func note(_ time: Int64) -> Bool {
    next.withLock { next in
      if let next, next <= time { return false }
      next = time
      return true
    }
  }

  /// Whether what was noted for `time` is still the next, and is to be done now.
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

  /// Has the timer go off at `time` at the latest. Who only reads leaves it to the writer.
  func reap(by time: Int64) {
    if engine.isReadOnly { return }
    guard reaper.note(time) else { return }
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
    guard reaper.takeTurn(at: time), !Task.isCancelled else { return }
    do throws(DatabaseError) {
      try await removeEnded()
    } catch {
      guard error.code != .cancelled, error.code != .failedPrecondition else { return }
      options.logger.error(
        "documents whose time is over could not be removed", metadata: ["error": "\(error)"])
      // Until it is opened again nothing can be removed.
      if engine.failure == nil { reap(by: now() + Self.pauseAfterFailure) }
    }
  }

  /// Removes all documents whose time is over, and has the timer go off when the next one ends.
  /// Answers how many there were.
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

  /// Finds some documents whose time is over, behind those found before.
  private func findEnded(behind walk: EndWalk) async throws(DatabaseError) -> EndWalk {
    try await read(try engineSnapshot(), asOf: now()) { (rows) throws(DatabaseError) in
      var walk = walk
      try walk.goOn(in: rows)
      return walk
    }
  }
}

/// A walk over the documents that end, by when they do. What is over is the first part of each
/// index, so that the walk looks at nothing else but the first row behind it.
private struct EndWalk: Sendable {
  /// Documents removed in one commit.
  private static let removedTogether = 200

  /// Deletes of documents that the last step found.
  var ended: [DocumentWrite] = []
  /// Whether the next step finds more.
  var hasMore = false
  /// The moment the next document ends.
  var next: Int64?
  /// The last row of each index that was looked at: what is still there may have a reason to stay,
  /// such as an upgrade that gives it more time.
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
      ended.append(
        DocumentWrite(
          path: entry.path, intent: WriteIntent(change: .delete, precondition: .isOver)))
    }
  }
}

/// A row of the index of the moments at which documents end.
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
