// What commits have changed at the places of one listener, until it asks: for each row what it was
// when the listener last looked. With that, and what is there now, the listener makes a picture of
// before; so nothing of a node is kept for it, however many children there are.
//
// The picture of now is a snapshot, and it must be of exactly the commits that have been told of.
// What was told before the snapshot was taken is in it; what is told while the listener works
// stands in line by its version, and whoever works waits until all commits of the snapshot have
// been told of.
//
// A listener that does not ask for long costs bounded memory: when the inbox is full, it takes a
// snapshot, which together with the inbox is the picture of before, and from then on only notes
// that there was more.

internal import OndolEngine

/// The changes that wait for one listener.
final class TreeInbox: Sendable {
  /// What a listener finds.
  struct Content: Sendable {
    /// What rows were, by their keys; nil where there was none.
    var before: [[UInt8]: [UInt8]?] = [:]
    /// What they are to be put over, where that is not the present.
    var base: Snapshot?
  }

  fileprivate struct State: Sendable {
    var content = Content()
    var byteCount = 0
    /// More than `base` shows has happened.
    var hasMore = false
    /// What was told while the listener is at work.
    var line: [(version: SequenceNumber, changes: [TreeRowChange])] = []
    var isAtWork = false
    /// The commits through this one are older than the listener.
    var start = SequenceNumber.zero
    /// In a database that is only read: the rows the listener has seen.
    var seen: Snapshot?
    var wakeup: Wakeup?
    var isFinished = false

    var isEmpty: Bool { content.before.isEmpty && content.base == nil && !hasMore }
  }

  /// Rows, and their bytes, above which a snapshot stands in.
  private static let rowLimit = 4_096
  private static let byteLimit = 4 << 20

  private let state: Guarded<State>
  private let takeSnapshot: @Sendable () -> Snapshot?
  /// Nodes above the deepest place listened to.
  let depth: Int

  /// A listener that has not begun is at work.
  init(depth: Int, snapshot: @escaping @Sendable () -> Snapshot?) {
    self.depth = depth
    takeSnapshot = snapshot
    var state = State()
    state.isAtWork = true
    self.state = Guarded(state)
  }

  // MARK: - Commits

  /// Takes in what a commit changed; answers whom to wake.
  func take(_ changes: [TreeRowChange], _ sequence: SequenceNumber) -> Wakeup? {
    state.withLock { (state) -> Wakeup? in
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

  /// Notes that anything may have changed, in a database that is only read.
  func invalidate() -> Wakeup? {
    state.withLock { (state) -> Wakeup? in
      guard !state.isFinished else { return nil }
      state.hasMore = true
      if state.content.base == nil { state.content.base = state.seen }
      return state.isAtWork ? nil : state.takeWakeup()
    }
  }

  /// Ends all waiting for good.
  func finish() {
    let wakeup = state.withLock { state in
      state.isFinished = true
      state.content = Content()
      state.line = []
      return state.takeWakeup()
    }
    wakeup?.resume()
  }

  // MARK: - The listener

  var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Rows that wait.
  var pendingCount: Int {
    state.withLock { $0.content.before.count + $0.line.reduce(0) { $0 + $1.changes.count } }
  }

  /// Begins to take what commits change behind the snapshot.
  func begin(behind snapshot: Snapshot, keepsSeen: Bool) {
    state.withLock { $0.start = snapshot.sequence }
    var content = Content()
    finishLine(through: snapshot, into: &content, keepsSeen: keepsSeen)
  }

  /// What has come, to be worked in; nil when nothing has. What comes from now on stands in line.
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

  /// Adds to `content` what stood in line and is in the snapshot; what is not waits for the next
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

  /// Waits until there is something, or the task is cancelled.
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
