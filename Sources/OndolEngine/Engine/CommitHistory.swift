// Gives the upper floor access to earlier commits: in order, each once, from a given commit up to
// the newest, and again when there are more.

internal import Synchronization

extension Engine {
  /// Distinguishes this database from every other.
  package var identity: DatabaseIdentity { remote?.identity ?? storage.identity }

  /// The newest visible commit.
  package var newestCommit: CommitPoint { currentView.1 }

  /// Whether at least some commits can be read again.
  package var keepsHistory: Bool {
    if let remote { return remote.retention != nil }
    guard let follower else { return storage.options.historyRetention != nil }
    return follower.historyExtent != nil
  }

  /// The commit after which commits can be read again, on a store possibly one before it; nil when
  /// none can.
  package var historyStart: SequenceNumber? {
    if let remote { return remote.historyStart }
    return storage.sequencer.historyExtent?.start.sequence
  }

  /// A commit after which the newest `count` can be read again, possibly with others that are kept
  /// with them. If fewer are kept, it is the commit after which all of them can. Nil when none can.
  package func historyPoint(before count: UInt64) async throws(EngineError) -> CommitPoint? {
    if let remote { return try await remote.historyPoint(before: count) }
    guard let extent = historyExtent else { return nil }
    let newest = extent.published.rawValue
    let wanted = newest > count ? newest - count : 0
    guard let log = extent.logs.last(where: { $0.before.sequence.rawValue <= wanted }),
      log.before.sequence >= extent.start.sequence
    else { return extent.start }
    return log.before
  }

  private var currentView: (View, CommitPoint) {
    if let remote { return remote.window.datedSnapshot }
    return follower?.datedSnapshot(of: storage.views) ?? storage.sequencer.datedSnapshot
  }

  /// The current rows, and the newest commit in them. Takes a writer's lock for a moment.
  package func datedSnapshot() throws(EngineError) -> (Snapshot, CommitPoint) {
    if isClosed.load(ordering: .relaxed) { throw .closed }
    if let failure = remote?.line.failure { throw failure }
    let (view, point) = currentView
    return (Snapshot(view, point.sequence), point)
  }

  /// The commits after `point`, in their order. The first `next()` determines whether they can be
  /// read.
  package func history(after point: CommitPoint) -> CommitHistory {
    CommitHistory(HistoryCursor(after: point), self)
  }

  /// Some of the commits after the cursor, read on the thread for reads that wait for a file.
  ///
  /// - Parameter isPatient: whether to wait for a store that cannot be reached.
  fileprivate func read(
    _ cursor: HistoryCursor, isPatient: Bool
  ) async throws(EngineError) -> (HistoryCursor, [LoggedCommit]) {
    if isClosed.load(ordering: .relaxed) { throw .closed }
    if let remote { return try await remote.read(cursor, isPatient: isPatient) }
    if isReadOnly { return try await readBesideWriter(cursor) }
    try await storage.waitForRecovery()
    while true {
      let (moved, commits) = try await readOnce(cursor)
      guard commits.isEmpty, moved.position.sequence < storage.views.published else {
        return (moved, commits)
      }
      // Visible commits that are not in a file are written with the next sync.
      try await storage.sequencer.synchronize()
    }
  }

  /// The same while another process writes. It may remove or replace logs at any moment, so a
  /// failed read is repeated with the current state of the files. A second failure of the same kind
  /// is final.
  private func readBesideWriter(
    _ cursor: HistoryCursor
  ) async throws(EngineError) -> (HistoryCursor, [LoggedCommit]) {
    var last: EngineError?
    for _ in 1..<Follower.attempts {
      do throws(EngineError) {
        return try await readOnce(cursor)
      } catch {
        guard error.mayBeFleeting, error != last else { throw error }
        last = error
      }
      _ = try await refresh()
    }
    return try await readOnce(cursor)
  }

  private var historyExtent: HistoryExtent? {
    guard let follower else { return storage.sequencer.historyExtent }
    return follower.historyExtent
  }

  private func readOnce(
    _ cursor: HistoryCursor
  ) async throws(EngineError) -> (HistoryCursor, [LoggedCommit]) {
    try await storage.views.current.reads.perform { [self] (_) throws(EngineError) in
      guard var extent = historyExtent else {
        throw .notInHistory(reason: "no history of commits is kept")
      }
      while true {
        var moved = cursor
        do throws(EngineError) {
          let commits = try moved.read(extent, in: storage.directory, storage.identity)
          return (moved, commits)
        } catch {
          guard let later = historyExtent else { throw error }
          // A log may have been removed meanwhile because it was too old.
          if later.start.sequence > moved.position.sequence {
            throw .notInHistory(reason: "the commits were no longer kept when they were read")
          }
          // Or its commits may be in another log by now.
          guard error.isMissingFile, later.logs.map(\.number) != extent.logs.map(\.number) else {
            throw error
          }
          extent = later
        }
      }
    }
  }
}

/// Reads earlier commits.
package struct CommitHistory: Sendable {
  private var cursor: HistoryCursor
  private var hasBegun = false
  private let engine: Engine

  fileprivate init(_ cursor: HistoryCursor, _ engine: Engine) {
    self.cursor = cursor
    self.engine = engine
  }

  /// The last commit that was returned.
  package var position: CommitPoint { cursor.position }

  /// Some of the next commits; none when the last one was the newest visible one.
  ///
  /// Throws `.notInHistory` when they are not kept, and `.corrupt`, naming file and offset, when a
  /// log is damaged. On a store, throws `.unreachable` the first time when there is no answer;
  /// further calls wait for one.
  ///
  /// - Complexity: O(bytes of the result); the first time O(bytes of a log). One round trip to a
  ///   store.
  package mutating func next() async throws(EngineError) -> [LoggedCommit] {
    let commits: [LoggedCommit]
    (cursor, commits) = try await engine.read(cursor, isPatient: hasBegun)
    hasBegun = true
    return commits
  }
}
