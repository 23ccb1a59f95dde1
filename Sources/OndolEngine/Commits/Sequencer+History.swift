// What the sequencer knows of the commits that can be read again: which logs they are in, how far
// those are written, and where the line of commits stands.

/// The logs of history at one moment.
struct HistoryExtent: Sendable {
  /// A log, and how much of it can be read.
  struct Log: Sendable {
    var number: FileNumber
    /// Bytes of it that are written, without a gap.
    var length: UInt64
    /// The last commit before it.
    var before: CommitPoint
  }

  /// Commits behind this one can be read.
  var start: CommitPoint
  /// Oldest first, and never empty: the last one is that in use.
  var logs: [Log]
  /// The last visible commit.
  var published: SequenceNumber
}

extension HistoryExtent {
  /// The logs that are kept, and those from the floor on, which begin at `starts`.
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
  /// All of a log that recovery needs no more.
  init(_ log: KeptLog) {
    self.init(number: log.number, length: log.length, before: log.before)
  }
}

extension Sequencer {
  /// The last commit that was placed.
  var lastPlaced: CommitPoint {
    state.withLock { CommitPoint(sequence: $0.commits.lastPlaced, time: $0.commits.lastTime) }
  }

  /// A view, and the last commit visible in it.
  var datedSnapshot: (View, CommitPoint) {
    // Commits become visible under this lock.
    state.withLock { state in
      let (view, sequence) = views.snapshot
      return (view, CommitPoint(sequence: sequence, time: state.commits.publishedTime))
    }
  }

  /// The history once recovery needs no log before `floor`, without what is not to be kept of it.
  func history(before floor: LogStart, now: Int64) -> History? {
    state.withLock { state in
      guard var history = state.history else { return nil }
      let starts = state.starts.filter { $0.number < floor.number }
      history.keep(starts + [floor])
      if let retention = options.historyRetention {
        history.trim(to: retention, before: floor, now: now)
      }
      return history
    }
  }

  func setHistory(_ history: History?) {
    state.withLock { $0.history = history }
  }

  /// What can be read now; nil when no history is kept.
  var historyExtent: HistoryExtent? {
    state.withLock { state in
      guard let history = state.history else { return nil }
      return HistoryExtent(
        history, since: state.starts, writtenThrough: state.commits.writtenThrough,
        published: state.commits.published)
    }
  }
}
