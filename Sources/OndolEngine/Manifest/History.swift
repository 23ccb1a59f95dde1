// The logs that are kept for followers of the database, in addition to those that recovery needs.
// It is a plain value and part of the manifest. A log enters history when everything in it is
// flushed, instead of being removed. It leaves when it is too old or the logs are too large.
//
// From `start` on, every commit carries an annotation, which says more than that its log exists.
// `start` is set before the first commit with an annotation, and history ends before the first
// commit without one.

/// A log that recovery no longer needs.
struct KeptLog: Sendable, Equatable {
  var number: FileNumber
  /// Bytes up to the end of its last frame.
  var length: UInt64
  /// The last commit before it.
  var before: CommitPoint

  var sequence: SequenceNumber { before.sequence }

  /// Whether it can come after `other`.
  func follows(_ other: KeptLog?) -> Bool {
    guard let other else { return true }
    return other.number < number && other.sequence < sequence
  }
}

/// The commits that can be read again: those after `start`, in the logs listed here and from the
/// floor on.
struct History: Sendable, Equatable {
  var start: CommitPoint
  /// Oldest first; all of them before the floor.
  var logs: [KeptLog] = []

  /// Adds logs that are now before the floor, oldest first, if they contain anything to read.
  mutating func keep(_ starts: [LogStart]) {
    for (log, next) in zip(starts, starts.dropFirst())
    where next.sequence > log.sequence && next.sequence > start.sequence {
      logs.append(
        KeptLog(
          number: log.number, length: next.base.rawValue - log.base.rawValue, before: log.before))
    }
  }

  /// Removes the oldest logs that exceed the age or size limit. `floor` is the log after all of
  /// them.
  mutating func trim(to retention: HistoryRetention, before floor: LogStart, now: Int64) {
    var bytes = logs.reduce(0) { $0 + $1.length }
    for (index, log) in logs.enumerated() {
      let end = index + 1 < logs.count ? logs[index + 1].before : floor.before
      guard bytes > retention.bytes || now.subtractingSaturated(end.time) > retention.microseconds
      else { break }
      bytes -= log.length
      start = end
    }
    dropLogs(before: floor.sequence)
  }

  /// Removes the logs that end before history begins. The last one ends at `floor`.
  mutating func dropLogs(before floor: SequenceNumber) {
    let ends = logs.dropFirst().map(\.sequence) + [floor]
    logs.removeFirst(zip(logs, ends).prefix { $1 <= start.sequence }.count)
  }

  /// The manifest changes that turn one history into the other.
  static func changes(from old: History?, to new: History?) -> [ManifestChange] {
    guard let new else { return old == nil ? [] : [.history(after: nil)] }
    let last = old?.logs.last?.number ?? .zero
    // The logs before the new start are removed implicitly.
    let kept = new.logs.filter { $0.number > last }.map { ManifestChange.keepLog($0) }
    guard let old else { return [.history(after: new.start)] + kept }
    return kept + (new.start == old.start ? [] : [.history(after: new.start)])
  }
}

extension Int64 {
  fileprivate func subtractingSaturated(_ other: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return overflow ? (other < 0 ? .max : .min) : difference
  }
}
