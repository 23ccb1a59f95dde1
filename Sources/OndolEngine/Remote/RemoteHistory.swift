// Reads the commit history that a store keeps. The store keeps it separate from rows, under the
// commits' numbers, and writes it together with the commit. So its bytes are not announced to other
// processes, and removing history is not a commit.
//
// A process that keeps no history makes commits without any, which leaves gaps in the numbers. A
// reader that reaches a gap learns that history does not continue there. So nothing is skipped,
// regardless of the options with which other processes have opened the database.

internal import Synchronization

extension RemoteSession {
  /// History can be read after this commit, or after a later one; nil if none is kept here.
  var historyStart: SequenceNumber? {
    retention.map { _ in SequenceNumber(rawValue: knownHistoryStart.load(ordering: .relaxed)) }
  }

  /// Makes the store forget history beyond the limits.
  func trimHistory() async throws(EngineError) {
    let start = try await store.trimHistory(to: retention)
    knownHistoryStart.store(start.rawValue, ordering: .relaxed)
  }

  /// Some of the commits after the cursor; none if it is at the newest visible commit.
  ///
  /// - Parameter isPatient: whether to wait for an unreachable store.
  func read(
    _ cursor: HistoryCursor, isPatient: Bool
  ) async throws(EngineError) -> (HistoryCursor, [LoggedCommit]) {
    guard retention != nil else { throw .notInHistory(reason: "no history of commits is kept") }
    var pause = Self.pauses.first
    while true {
      do throws(EngineError) {
        let commits = try await commits(behind: cursor.position)
        return (HistoryCursor(after: commits.last?.point ?? cursor.position), commits)
      } catch {
        guard isPatient, case .unreachable = error, !line.isClosing, !Task.isCancelled else {
          throw error
        }
      }
      await environment.sleep(pause)
      pause = min(2 * pause, Self.pauses.last)
    }
  }

  private func commits(behind position: CommitPoint) async throws(EngineError) -> [LoggedCommit] {
    // Another process may have passed on a commit that is not visible here yet.
    if position.sequence > window.point.sequence { try await line.catchUp() }
    if let failure = line.failure { throw failure }
    // Every visible commit is in the store, together with its history.
    let newest = window.point
    let shown = newest.sequence
    guard position.sequence <= shown else { throw HistoryCursor.isLost(position) }
    if position == newest { return [] }
    let history = try await store.history(
      behind: position.sequence, atMost: HistoryCursor.commitsAtOnce)
    guard let time = history.time else { throw HistoryCursor.isGone(position) }
    guard time == position.time else { throw HistoryCursor.isLost(position) }
    var commits: [LoggedCommit] = []
    var next = position.sequence.next
    for annotation in history.annotations where next <= shown {
      guard annotation.point.sequence == next else { break }
      commits.append(try LoggedCommit(annotation, from: store.name))
      next = next.next
    }
    if commits.isEmpty { throw HistoryCursor.isGone(position) }
    return commits
  }

  /// A commit after which the newest `count` commits can be read again, or all that are available;
  /// nil if none is.
  func historyPoint(before count: UInt64) async throws(EngineError) -> CommitPoint? {
    guard retention != nil else { return nil }
    let newest = window.point
    let wanted = SequenceNumber(
      rawValue: newest.sequence.rawValue - min(count, newest.sequence.rawValue))
    if wanted == newest.sequence { return newest }
    var history = try await store.history(behind: wanted, atMost: 1)
    var start = wanted
    if let first = history.annotations.first?.point.sequence, first > wanted.next {
      start = SequenceNumber(rawValue: first.rawValue - 1)
      history = try await store.history(behind: start, atMost: 1)
    }
    return history.time.map { CommitPoint(sequence: start, time: $0) }
  }
}

extension RemoteStore {
  /// Whether the newest commit is part of a history.
  func isKeeping(_ point: CommitPoint) async throws(EngineError) -> Bool {
    guard point.sequence > .zero else { return false }
    let before = SequenceNumber(rawValue: point.sequence.rawValue - 1)
    return try await history(behind: before, atMost: 1).annotations.first?.point == point
  }
}

extension LoggedCommit {
  fileprivate init(_ annotation: RemoteAnnotation, from store: String) throws(EngineError) {
    point = annotation.point
    let value = RemoteValue.time(point.time) + annotation.bytes
    let bytes = try RemoteValue.decode(value, point.sequence, from: store)
    annotations = bytes.isEmpty ? [] : [bytes]
  }
}
