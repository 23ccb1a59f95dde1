// Which logs are kept for whoever follows the database, beside those that recovery needs: a plain
// value, part of the manifest. A log comes here when everything in it is flushed, which would
// otherwise be its end, and goes when it is too old or there is too much.
//
// `start` says from where on every commit carries an annotation, which is more than that its log is
// there: it is set before the first commit that has one, and history ends before the first that has
// none.

/// A log that recovery needs no more.
struct KeptLog: Sendable, Equatable {
  var number: FileNumber
  /// Bytes up to the end of its last frame.
  var length: UInt64
  /// The last commit before it.
  var before: CommitPoint

  var sequence: SequenceNumber { before.sequence }

  /// Whether it can stand behind `other`.
  func follows(_ other: KeptLog?) -> Bool {
    guard let other else { return true }
    return other.number < number && other.sequence < sequence
  }
}

/// The commits that can be read again: those behind `start`, in the logs here and from the floor
/// on.
struct History: Sendable, Equatable {
  var start: CommitPoint
  /// Oldest first, all before the floor.
  var logs: [KeptLog] = []

  /// Adds logs that are before the floor now, oldest first, where they hold anything to read.
  mutating func keep(_ starts: [LogStart]) {
    for (log, next) in zip(starts, starts.dropFirst())
    where next.sequence > log.sequence && next.sequence > start.sequence {
      logs.append(
        KeptLog(
          number: log.number, length: next.base.rawValue - log.base.rawValue, before: log.before))
    }
  }

  /// Lets the oldest logs go that are too old or too much. `floor` is the log behind all of them.
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

  /// Drops the logs that end before history begins; the last one ends at `floor`.
  mutating func dropLogs(before floor: SequenceNumber) {
    let ends = logs.dropFirst().map(\.sequence) + [floor]
    logs.removeFirst(zip(logs, ends).prefix { $1 <= start.sequence }.count)
  }

  /// What turns one history into the other in the manifest.
  static func changes(from old: History?, to new: History?) -> [ManifestChange] {
    guard let new else { return old == nil ? [] : [.history(after: nil)] }
    let last = old?.logs.last?.number ?? .zero
    // What is before the new start goes by itself.
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
