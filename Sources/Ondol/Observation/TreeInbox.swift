// What commits have changed at the places of one listener since it last looked: for each row, its
// value at that time. With that and the current rows, the listener reconstructs the earlier state.
// So it stores no copy of a node, however many children the node has.
//
// The current state is a snapshot, and it must contain exactly the commits that have been
// announced. Changes announced before the snapshot was taken are in it. Changes announced while the
// listener works are queued by version, and the listener waits until all commits of the snapshot
// have been announced.
//
// A listener that does not read for a long time uses bounded memory. When the inbox is full, it
// takes a snapshot, which together with the inbox gives the earlier state. From then on it only
// records that there was more.

internal import OndolEngine

/// The pending changes of one listener.
final class TreeInbox: Sendable {
  /// What a listener receives.
  struct Content: Sendable {
    /// The old values of rows, by their keys; nil for a row that did not exist.
    var before: [[UInt8]: [UInt8]?] = [:]
    /// The snapshot that they apply to, when it is not the current one.
    var base: Snapshot?
  }

  fileprivate struct State: Sendable {
    var content = Content()
    var byteCount = 0
    /// More has happened than `base` shows.
    var hasMore = false
    /// Changes announced while the listener is working.
    var line: [(version: SequenceNumber, changes: [TreeRowChange])] = []
    var isAtWork = false
    /// Commits up to this one are older than the listener.
    var start = SequenceNumber.zero
    /// In a read-only database: the rows that the listener has seen.
    var seen: Snapshot?
    var wakeup: Wakeup?
    var isFinished = false

    var isEmpty: Bool { content.before.isEmpty && content.base == nil && !hasMore }
  }

  /// The most rows, and bytes of rows, before the inbox takes a snapshot.
  private static let rowLimit = 4_096
  private static let byteLimit = 4 << 20

  private let state: Guarded<State>
  private let takeSnapshot: @Sendable () -> Snapshot?
  /// Called after there may be something new.
  private let notify: (@Sendable () -> Void)?
  /// Nodes above the deepest observed place.
  let depth: Int

  /// A listener that has not begun counts as working.
  init(
    depth: Int, notify: (@Sendable () -> Void)? = nil, snapshot: @escaping @Sendable () -> Snapshot?
  ) {
    self.depth = depth
    self.notify = notify
    takeSnapshot = snapshot
    var state = State()
    state.isAtWork = true
    self.state = Guarded(state)
  }

  // MARK: - Commits

  /// Takes a commit's changes; returns the wakeup of the listener, if any.
  func take(_ changes: [TreeRowChange], _ sequence: SequenceNumber) -> Wakeup? {
    defer { notify?() }
    return state.withLock { (state) -> Wakeup? in
      guard !state.isFinished, sequence > state.start else { return nil }
      guard !state.isAtWork else {
        state.line.append((sequence, changes))
        return nil
      }
      if let base = state.content.base, sequence > base.sequence {
        state.hasMore = true
      } else {
        state.note(changes)
        if state.content.base == nil,
          state.content.before.count > Self.rowLimit || state.byteCount > Self.byteLimit
        {
          state.content.base = takeSnapshot()
        }
      }
      return state.takeWakeup()
    }
  }

  /// Records that anything may have changed, in a read-only database.
  func invalidate() -> Wakeup? {
    defer { notify?() }
    return state.withLock { (state) -> Wakeup? in
      guard !state.isFinished else { return nil }
      state.hasMore = true
      if state.content.base == nil { state.content.base = state.seen }
      return state.isAtWork ? nil : state.takeWakeup()
    }
  }

  /// Ends all waiting permanently.
  func finish() {
    let wakeup = state.withLock { state in
      state.isFinished = true
      state.content = Content()
      state.line = []
      return state.takeWakeup()
    }
    wakeup?.resume()
    notify?()
  }

  // MARK: - The listener

  var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Pending rows.
  var pendingCount: Int {
    state.withLock { $0.content.before.count + $0.line.reduce(0) { $0 + $1.changes.count } }
  }

  /// Begins to record changes of commits after the snapshot.
  func begin(behind snapshot: Snapshot, keepsSeen: Bool) {
    state.withLock { $0.start = snapshot.sequence }
    var content = Content()
    finishLine(through: snapshot, into: &content, keepsSeen: keepsSeen)
  }

  /// The pending changes, to be applied; nil when there are none. Changes from now on are queued.
  func begin() -> Content? {
    state.withLock { state in
      guard !state.isFinished, !state.isEmpty else { return nil }
      defer {
        state.content = Content()
        state.byteCount = 0
        state.hasMore = false
      }
      state.isAtWork = true
      return state.content
    }
  }

  /// Adds to `content` the queued changes that are in the snapshot. The others stay for the next
  /// time.
  func finishLine(through snapshot: Snapshot, into content: inout Content, keepsSeen: Bool) {
    let inSnapshot = state.withLock { state in
      state.isAtWork = false
      if keepsSeen {
        state.seen = snapshot
        if state.hasMore { state.content.base = snapshot }
      }
      let line = state.line
      state.line = []
      for later in line where later.version > snapshot.sequence { state.note(later.changes) }
      return line.filter { $0.version <= snapshot.sequence }
    }
    for told in inSnapshot {
      for change in told.changes where content.before[change.key] == nil {
        content.before[change.key] = .some(change.before)
      }
    }
  }

  /// Waits until there is a change, or the task is cancelled.
  func wait(_ listening: Listening) async {
    await listening.wait { wakeup in
      state.withLock { state in
        guard !listening.isCancelled, !state.isFinished, state.isEmpty else { return false }
        state.wakeup = wakeup
        return true
      }
    } leave: { [state] in
      state.withLock { $0.takeWakeup() }
    }
  }
}

extension TreeInbox.State {
  fileprivate mutating func note(_ changes: [TreeRowChange]) {
    for change in changes where content.before[change.key] == nil {
      content.before[change.key] = .some(change.before)
      byteCount += change.key.count + (change.before?.count ?? 0)
    }
  }

  fileprivate mutating func takeWakeup() -> Wakeup? {
    defer { wakeup = nil }
    return wakeup
  }
}
