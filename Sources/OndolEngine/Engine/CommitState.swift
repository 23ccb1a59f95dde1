// The order of commits between being placed and being published, as a plain value: no lock, no file, no
// clock. The sequencer holds it under its lock and does what it answers.
//
// A commit is placed (it has its sequence, its time and its place in the log), then written, then, if it
// asks for it, synced; and it is published when it and everything before it has come that far. Publication
// is in order, so what readers see is always a prefix of the one history.

/// Places commits in order and says which are published.
struct CommitState: Sendable {
  private struct Pending: Sendable {
    var sequence: SequenceNumber
    var end: LogPosition
    var needsSync: Bool
    var isWritten: Bool
  }

  /// Placed and not yet published, in order.
  private var pending: [Pending] = []
  /// Where writes begin that have not finished, and where frames begin that nobody writes yet.
  private var unwritten: [LogPosition] = []

  private(set) var lastPlaced: SequenceNumber
  private(set) var lastTime: Int64
  private(set) var published: SequenceNumber
  /// The end of everything placed.
  private(set) var placedEnd: LogPosition
  /// Everything before it is on the device.
  private(set) var syncedThrough: LogPosition

  init(sequence: SequenceNumber, time: Int64, end: LogPosition) {
    lastPlaced = sequence
    lastTime = time
    published = sequence
    placedEnd = end
    syncedThrough = end
  }

  /// The commit time for a commit placed now: the clock's, but always later than the one before.
  func nextTime(now: Int64) -> Int64 {
    max(now, lastTime &+ 1)
  }

  /// Adds the next commit, whose frames end at `end`.
  mutating func place(time: Int64, end: LogPosition, needsSync: Bool) -> SequenceNumber {
    lastPlaced = lastPlaced.next
    lastTime = time
    placedEnd = end
    pending.append(
      Pending(sequence: lastPlaced, end: end, needsSync: needsSync, isWritten: false))
    return lastPlaced
  }

  /// Notes that a write, or frames put off, begin at `start`.
  mutating func beginWrite(at start: LogPosition) {
    unwritten.append(start)
  }

  /// Notes that what began at `start` is written.
  mutating func endWrite(at start: LogPosition) {
    if let index = unwritten.firstIndex(of: start) { unwritten.remove(at: index) }
  }

  /// Notes that the frames of `sequence` need no more writing before it is published.
  mutating func markWritten(_ sequence: SequenceNumber) {
    guard let first = pending.first?.sequence.rawValue, sequence.rawValue >= first else { return }
    let index = Int(sequence.rawValue - first)
    if index < pending.count { pending[index].isWritten = true }
  }

  /// Everything before it is written, and a sync begun now will cover it.
  var writtenThrough: LogPosition {
    unwritten.min() ?? placedEnd
  }

  /// Notes that a sync begun when `writtenThrough` was `position` has ended well.
  mutating func markSynced(through position: LogPosition) {
    syncedThrough = max(syncedThrough, position)
  }

  /// Publishes all that can be, in order, and returns the new published sequence if it moved.
  mutating func publish() -> SequenceNumber? {
    var count = 0
    for commit in pending {
      guard commit.isWritten, !commit.needsSync || commit.end <= syncedThrough else { break }
      count += 1
    }
    guard count > 0 else { return nil }
    published = pending[count - 1].sequence
    pending.removeFirst(count)
    return published
  }

  /// Whether a commit waits for a sync, and one begun now would publish it.
  var wantsSync: Bool {
    let reachable = writtenThrough
    return pending.contains {
      $0.isWritten && $0.needsSync && $0.end > syncedThrough && $0.end <= reachable
    }
  }
}
