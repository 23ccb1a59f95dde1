// The readable part of earlier commits: which logs they are in, and how far these are written.

/// The logs of history at one moment.
struct HistoryExtent: Sendable {
  /// A log, and its readable length.
  struct Log: Sendable {
    var number: FileNumber
    /// Bytes of it that are written, without a gap.
    var length: UInt64
    /// The last commit before it.
    var before: CommitPoint
  }

  /// Commits after this one can be read.
  var start: CommitPoint
  /// Oldest first, and never empty: the last one is in use.
  var logs: [Log]
  /// The last visible commit.
  var published: SequenceNumber
}

extension HistoryExtent {
  /// The kept logs, and those from the floor on, which begin at `starts`.
  init(
    _ history: History, since starts: [LogStart], writtenThrough written: LogPosition,
    published: SequenceNumber
  ) {
    start = history.start
    logs = history.logs.map(Log.init)
    for (index, log) in starts.enumerated() {
      let next = index + 1 < starts.count ? starts[index + 1].base : written
      let end = max(min(next, written), log.base)
      logs.append(
        Log(
          number: log.number, length: end.rawValue - log.base.rawValue, before: log.before))
    }
    self.published = published
  }
}

extension HistoryExtent.Log {
  /// All of a log that recovery does not need any more.
  init(_ log: KeptLog) {
    self.init(number: log.number, length: log.length, before: log.before)
  }
}
