// Handlers that receive every commit, whatever it changed: the console shows commits as they come.
// The committer hands over only data that it has already, and the handler interprets it.

package import Logging
internal import OndolEngine

/// A commit that has become visible to this process.
package struct SeenCommit: Sendable {
  let point: CommitPoint
  /// Nil when another process commits: the step may have changed anything.
  private let note: CommitNote?
  private let announcement: Announcement?

  init?(_ announcement: Announcement) {
    guard let note = announcement.note as? CommitNote else { return nil }
    point = CommitPoint(sequence: announcement.sequence, time: announcement.time)
    self.note = note
    self.announcement = announcement
  }

  /// A step to a commit of another process.
  init(step sequence: SequenceNumber) {
    point = CommitPoint(sequence: sequence, time: 0)
    note = nil
    announcement = nil
  }

  package var version: Version { Version(rawValue: point.sequence.rawValue) }
  /// When it was made; nil for a step to another process's commit.
  package var time: Timestamp? { announcement.map { Timestamp(unchecked: $0.time) } }

  /// Whether the changes are known; otherwise anything may have changed.
  package var isKnown: Bool {
    guard let note, case .documents = note.content else { return false }
    return true
  }

  /// Whether the tree changed.
  package var changesTree: Bool { note.map { !$0.tree.isEmpty } ?? true }

  /// How many documents it changed.
  package var documentCount: Int {
    guard let note, case .documents(let documents) = note.content else { return 0 }
    return documents.count
  }

  /// The paths of the changed documents except those of storage paths, and whether any of the
  /// latter changed.
  package var touched: (documents: [DocumentPath], storage: Bool) {
    guard let note, case .documents(let documents) = note.content else { return ([], true) }
    let changed = documents.filter(\.isChanged).map(\.path)
      .filter { !HiddenRows.isRecord($0) }
    let own = changed.filter { $0.storagePath == nil }
    return (own, own.count < changed.count)
  }

  /// The commit's token.
  package func token(in database: Database) -> ChangeToken {
    ChangeToken(identity: database.engine.identity, point: point)
  }

  /// Its changes, of at most `limit` documents; nil when they are unknown or there are none to
  /// report.
  package func change(in database: Database, atMost limit: Int) -> (DatabaseChange, isCut: Bool)? {
    guard let note, let announcement else { return nil }
    let token = ChangeToken(identity: database.engine.identity, point: point)
    switch note.content {
    case .readAnew(let root):
      return (
        DatabaseChange(
          token: token, time: Timestamp(unchecked: point.time), documents: [], objects: [],
          droppedCollection: root,
          renamedCollection: nil), false
      )
    case .renamed(let renaming):
      return (
        DatabaseChange(
          token: token, time: Timestamp(unchecked: point.time), documents: [], objects: [],
          droppedCollection: nil,
          renamedCollection: .init(renaming)), false
      )
    case .documents(let written):
      let changed = written.filter { $0.isChanged && !HiddenRows.isRecord($0.path) }
      guard !changed.isEmpty else { return nil }
      let documents = changed.prefix(limit).map { document in
        let change = ObservedChange(document, announcement)
        return DatabaseChange.Document(
          before: change.snapshot(in: database, change.before),
          after: change.snapshot(in: database, change.after))
      }
      return (
        DatabaseChange(
          token: token, time: Timestamp(unchecked: point.time),
          documents: documents.filter { $0.storagePath == nil },
          objects: documents.compactMap { DatabaseChange.Object($0, in: database) },
          droppedCollection: nil, renamedCollection: nil,
          origin: note.synced?.origin ?? .local), changed.count > limit
      )
    }
  }
}

/// The handlers.
final class CommitTaps: Sendable {
  private struct State: Sendable {
    var next = 0
    var bodies: [Int: @Sendable (SeenCommit) -> Void] = [:]
  }

  private let state = Guarded(State())

  func tell(_ announcement: Announcement) {
    guard state.withLock({ !$0.bodies.isEmpty }) else { return }
    if let commit = SeenCommit(announcement) { tell(commit) }
  }

  func tell(_ commit: SeenCommit) {
    for body in state.withLock({ Array($0.bodies.values) }) { body(commit) }
  }

  func add(_ body: @escaping @Sendable (SeenCommit) -> Void) -> Int {
    state.withLock { state in
      defer { state.next += 1 }
      state.bodies[state.next] = body
      return state.next
    }
  }

  func remove(_ number: Int) {
    state.withLock { _ = $0.bodies.removeValue(forKey: number) }
  }
}

/// Keeps a handler registered for as long as the tap exists.
package final class CommitTap: Sendable {
  private let database: Database
  private let number: Int

  init(_ database: Database, _ number: Int) {
    self.database = database
    self.number = number
    // A database that another process writes is followed while it has listeners.
    database.audience.enter()
  }

  deinit {
    database.taps.remove(number)
    database.audience.leave()
  }
}

extension Database {
  /// Calls `body` with every commit as it becomes visible, on the committer's thread. `body` must
  /// only store the commit.
  package func tapCommits(_ body: @escaping @Sendable (SeenCommit) -> Void) -> CommitTap {
    CommitTap(self, taps.add(body))
  }

  /// The newest commit.
  package var newestPoint: (version: Version, time: Timestamp) {
    let point = engine.newestCommit
    return (Version(rawValue: point.sequence.rawValue), Timestamp(unchecked: point.time))
  }

  /// The token of the newest commit, whether or not changes are kept.
  package var newestToken: ChangeToken {
    ChangeToken(identity: engine.identity, point: engine.newestCommit)
  }

  /// Whether the writer keeps changes.
  package var keepsChanges: Bool { engine.keepsHistory }

  /// The version of the commit that a token names; nil for a token of another database.
  package func version(of token: ChangeToken) -> Version? {
    guard token.identity == engine.identity else { return nil }
    return Version(rawValue: token.point.sequence.rawValue)
  }

  /// The database's identity, in hexadecimal digits.
  package var identity: String { engine.identity.text }
}

extension Database {
  /// The changes of the commits after `token`, as far as they are kept: some of the first, and
  /// whether there are no more.
  package func keptChanges(
    since token: ChangeToken, atMost limit: Int
  ) async throws(DatabaseError) -> (changes: [DatabaseChange], isEnd: Bool) {
    var history = try history(since: token)
    var changes: [DatabaseChange] = []
    while changes.count < limit {
      let commits = try await history.someCommits()
      if commits.isEmpty { return (changes, true) }
      for commit in commits {
        if let change = try DatabaseChange(commit, in: self) { changes.append(change) }
      }
    }
    return (changes, false)
  }

  /// The newest kept changes, oldest first, as `body` maps them. Skips changes for which `body`
  /// returns nil.
  ///
  /// - Parameters:
  ///   - count: how many of the newest commits to look at.
  ///   - limit: the most results to return.
  /// - Complexity: O(bytes of the logs that have these commits); a few round trips to a store.
  package func newestKeptChanges<T: Sendable>(
    among count: Int, atMost limit: Int, _ body: (DatabaseChange) -> T?
  ) async throws(DatabaseError) -> [T] {
    let newest = engine.newestCommit.sequence.rawValue
    let point = try await rethrowing { () async throws(EngineError) in
      try await engine.historyPoint(before: UInt64(count))
    }
    guard let point else { return [] }
    var history = try history(since: ChangeToken(identity: engine.identity, point: point))
    var found: [T] = []
    // Does not wait for commits made meanwhile.
    while history.position.sequence.rawValue < newest {
      let commits = try await history.someCommits()
      if commits.isEmpty { break }
      for commit in commits where commit.point.sequence.rawValue + UInt64(count) > newest {
        if let change = try DatabaseChange(commit, in: self), let made = body(change) {
          found.append(made)
        }
      }
      found.removeFirst(max(0, found.count - limit))
    }
    return found
  }
}

extension Database {
  /// Microseconds since 1970.
  package var wallClock: Int64 { now() }

  /// Whether this process only reads the database, whether or not another writes it.
  package var isReadOnly: Bool { engine.isReadOnly }

  /// The database's log.
  package var log: Logger { options.logger }
}
