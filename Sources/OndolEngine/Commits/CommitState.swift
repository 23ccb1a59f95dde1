// The order of commits between being placed and being published, as a plain value: no lock, no
// file, no clock. The sequencer keeps it under its lock and acts on its results.
//
// A commit is placed (it has its sequence, its time and its place in the log), then written, then
// synced. It is published when it has come as far as its durability requires and everything before
// it is published. So readers always see a prefix of the one history.

/// Places commits in order and determines which are published.
struct CommitState: Sendable {
  private struct Pending: Sendable {
    var sequence: SequenceNumber
    var time: Int64
    var end: LogPosition
    var durability: Durability
  }

  /// Placed and not yet published, in order.
  private var pending: [Pending] = []
  /// The starts of unfinished writes, and of frames that are not being written yet.
  private var unwritten: [LogPosition] = []

  private(set) var lastPlaced: SequenceNumber
  private(set) var lastTime: Int64
  private(set) var published: SequenceNumber
  /// The time of the last published commit.
  private(set) var publishedTime: Int64
  /// The end of everything placed.
  private(set) var placedEnd: LogPosition
  /// Everything before it is on the device.
  private(set) var syncedThrough: LogPosition

  init(sequence: SequenceNumber, time: Int64, end: LogPosition) {
    lastPlaced = sequence
    lastTime = time
    published = sequence
    publishedTime = time
    placedEnd = end
    syncedThrough = end
  }

  /// The time of a commit placed now: the clock's, but always later than the previous one.
  func nextTime(now: Int64) -> Int64 {
    max(now, lastTime &+ 1)
  }

  /// Adds the next commit, whose frames end at `end`.
  ///
  /// - Parameter start: where a write, or deferred frames, begin with it; nil when it joins those.
  mutating func place(
    time: Int64, end: LogPosition, durability: Durability, writtenFrom start: LogPosition?
  ) -> SequenceNumber {
    if let start { unwritten.append(start) }
    lastPlaced = lastPlaced.next
    lastTime = time
    placedEnd = end
    pending.append(Pending(sequence: lastPlaced, time: time, end: end, durability: durability))
    return lastPlaced
  }

  /// Records that the write that began at `start` is done.
  mutating func endWrite(at start: LogPosition) {
    if let index = unwritten.firstIndex(of: start) { unwritten.remove(at: index) }
  }

  /// Everything before it is written, so a sync begun now will cover it.
  var writtenThrough: LogPosition {
    unwritten.min() ?? placedEnd
  }

  /// Records that a sync begun when `writtenThrough` was `position` has succeeded.
  mutating func markSynced(through position: LogPosition) {
    syncedThrough = max(syncedThrough, position)
  }

  /// Publishes everything possible, in order, and returns the new published sequence if it moved.
  mutating func publish() -> SequenceNumber? {
    let writtenThrough = writtenThrough
    let count = pending.prefix { commit in
      switch commit.durability {
      case .memory: true
      // Its own frames and all before them: a hole in the log would end history before it.
      case .process, .periodic: commit.end <= writtenThrough
      case .power: commit.end <= syncedThrough
      }
    }.count
    guard count > 0 else { return nil }
    published = pending[count - 1].sequence
    publishedTime = pending[count - 1].time
    pending.removeFirst(count)
    return published
  }

  /// Whether a commit waits for a sync, and one begun now would publish it.
  var wantsSync: Bool {
    let reachable = writtenThrough
    return pending.contains {
      $0.durability == .power && $0.end > syncedThrough && $0.end <= reachable
    }
  }
}
