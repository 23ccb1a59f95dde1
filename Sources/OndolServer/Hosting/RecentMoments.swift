// The recent moments of a database that clients may read again: Firestore's clients read as of a
// time from an earlier answer, of a commit or a read. The server remembers the times of the newest
// commits. A view that was taken before the next flush still has their documents, so the server
// keeps one view a second.

#if Server
  import Ondol
  import Synchronization

  /// The newest commits of a database, and the views that can still read them.
  final class RecentMoments: Sendable {
    fileprivate struct Commit: Sendable {
      var version: Version
      var time: Timestamp
    }

    private struct State: Sendable {
      /// In commit order. The oldest are removed a few thousand at a time.
      var commits: [Commit] = []
      /// In the order of their times.
      var kept: [(moment: ReadMoment, taken: Int64)] = []
      var tap: CommitTap?
    }

    private static let mostCommits = 65_536
    private static let commitsRemoved = 8_192
    /// The number of kept views, their distance and their lifetime, both in microseconds.
    private static let mostKept = 64
    private static let pause: Int64 = 1_000_000
    private static let longest: Int64 = 300_000_000

    private let database: Database
    private let state = Mutex(State())

    init(_ database: Database) {
      self.database = database
      let tap = database.tapCommits { [weak self] in self?.note($0) }
      let (version, time) = database.newestPoint
      state.withLock { state in
        state.tap = tap
        state.commits.append(Commit(version: version, time: time))
      }
    }

    private func note(_ commit: SeenCommit) {
      guard let time = commit.time else { return }
      state.withLock { state in
        if let last = state.commits.last, last.version >= commit.version { return }
        state.commits.append(Commit(version: commit.version, time: time))
        if state.commits.count > Self.mostCommits {
          state.commits.removeFirst(Self.commitsRemoved)
        }
      }
    }

    /// The present, which can be read again for a while.
    func now() throws(DatabaseError) -> ReadMoment {
      let moment = try database.readMoment()
      let now = database.wallClock
      state.withLock { state in
        if let last = state.kept.last, now - last.taken < Self.pause, now >= last.taken { return }
        state.kept.removeAll { now - $0.taken > Self.longest }
        state.kept.append((moment, now))
        if state.kept.count > Self.mostKept { state.kept.removeFirst() }
      }
      return moment
    }

    /// The database at an earlier time.
    ///
    /// Throws `.failedPrecondition` when the time is no longer kept, and `.invalidArgument` for the
    /// future.
    func moment(at time: Timestamp) async throws(DatabaseError) -> ReadMoment {
      let present = try now()
      guard time.microsecondsSince1970 <= database.wallClock || time <= present.time else {
        throw DatabaseError(.invalidArgument, "the read time \(time) is in the future")
      }
      if time >= present.time { return present }
      await database.finishAnnouncing()
      let found: ReadMoment? = state.withLock { state in
        guard let commit = state.commits.last(before: time) else { return nil }
        if let moment = present.earlier(commit.version, at: commit.time) { return moment }
        for (moment, _) in state.kept where moment.version >= commit.version {
          if let found = moment.earlier(commit.version, at: commit.time) { return found }
        }
        return nil
      }
      guard let found else {
        throw DatabaseError(
          .failedPrecondition,
          "The requested snapshot version is too old: \(time); this server reads as of times within"
            + " the last \(Self.longest / 60_000_000) minutes, or fewer when much is written")
      }
      return found
    }
  }

  extension [RecentMoments.Commit] {
    /// The newest commit up to `time`.
    fileprivate func last(before time: Timestamp) -> Element? {
      var (lower, upper) = (0, count)
      while lower < upper {
        let middle = (lower + upper) / 2
        if self[middle].time <= time { lower = middle + 1 } else { upper = middle }
      }
      return lower > 0 ? self[lower - 1] : nil
    }
  }
#endif
