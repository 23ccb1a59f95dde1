// Follows a database: every commit, in order, once, from the logs, or on a server from the table
// that replaces them. Each follower reads for itself and buffers what it has not delivered yet, at
// most a few hundred commits. So writers never wait for a follower, and a follower misses nothing,
// however far behind it is. The announcement of a commit only wakes the followers that have read
// everything.

internal import OndolEngine

/// Every commit's changes, in order and each once.
///
/// A feed misses nothing and delays no writer. It reads the changes that commits recorded in the
/// logs, and when it has read everything, it waits for the next commit. Its memory is bounded
/// however slow the reader is. A feed that starts with the last change's
/// `token` continues where the previous one stopped, even after the app was closed or has crashed.
/// A feed may deliver a commit before it would survive a power cut. If a power cut takes that
/// commit, a feed that continues after it throws `.outOfRange`.
///
/// On a server, a feed delivers the commits of all processes and continues after a token from any
/// of them. While the server does not answer, a waiting feed keeps waiting.
///
/// The sequence ends, without an error, when the task is cancelled or the database is closed. Each
/// iterator follows independently.
public struct ChangeFeed: AsyncSequence, Sendable {
  /// What a feed delivers for each commit.
  public typealias Element = DatabaseChange
  /// The errors of a feed.
  public typealias Failure = DatabaseError

  fileprivate let database: Database
  fileprivate let start: Result<ChangeToken, DatabaseError>

  /// Begins following.
  public func makeAsyncIterator() -> Iterator {
    Iterator(follower: ChangeFollower(database, start))
  }

  /// Follows the database.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let follower: ChangeFollower

    /// The next commit's changes; nil when the task is cancelled or the database is closed.
    ///
    /// Reading runs on a thread of its own, not on the caller's actor.
    ///
    /// - Throws: as `Database.changes(since:)` says; an error ends the iterator.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(DatabaseError) -> DatabaseChange? {
      try await follower.next()
    }

    /// The next commit's changes, if there are any without waiting for another commit.
    package mutating func poll() async throws(DatabaseError) -> DatabaseChange? {
      try await follower.next(waits: false)
    }
  }
}

extension Database {
  /// The changes of every commit after the one that `token` names, including future commits as they
  /// happen. Without a token, the changes of the commits after this call.
  ///
  ///     for try await change in database.changes(since: token) {
  ///       try mirror(change.documents)
  ///       token = change.token
  ///     }
  ///
  /// The feed skips commits that changed no document, such as those that build an index. To start a
  /// feed that must know all documents, take `changeToken()`, read the documents, and then follow
  /// from the token. The feed repeats changes that happened in between.
  ///
  /// With `.readOnly` access, the feed delivers what the database's writer has kept, whatever this
  /// process's options say, and follows the writer as listeners do.
  ///
  /// Its iterators throw `.failedPrecondition` without `Options.changeRetention`;
  /// `.invalidArgument` for the token of another database; `.outOfRange` when the commits after the
  /// token are not kept any more, or when the token's commit did not survive a crash, so that the
  /// app must read everything again; `.dataLoss` or `.notFound`, naming the file, when a log is
  /// damaged or missing. On a server they throw `.unavailable` when it does not answer at the
  /// start, and `.outOfRange` before a commit of a process without `Options.changeRetention`.
  ///
  /// - Parameter token: the commit after which to begin, from `DatabaseChange.token`,
  ///   `QuerySnapshot.changeToken` or `changeToken()`; nil for now.
  /// - Complexity: O(1); the iterator reads at most one file of the log to find its position, then
  ///   what it delivers; on a server what it delivers, in pieces of 512 commits or a megabyte.
  public func changes(since token: ChangeToken? = nil) -> ChangeFeed {
    ChangeFeed(
      database: self,
      start: Result { () throws(DatabaseError) in
        if let token { return token }
        return try changeToken()
      })
  }
}

/// Reads the history for one iterator.
private final class ChangeFollower: Sendable {
  private struct State: Sendable {
    var history: CommitHistory?
    /// Read but not delivered.
    var changes: ArraySlice<DatabaseChange> = []
    var isAudience = false
    var isOver = false
  }

  private let state = Guarded(State())
  private let listening = Listening()
  private let database: Database
  private let start: Result<ChangeToken, DatabaseError>

  init(_ database: Database, _ start: Result<ChangeToken, DatabaseError>) {
    self.database = database
    self.start = start
  }

  deinit {
    end()
  }

  /// - Parameter waits: whether it waits for commits; otherwise it returns nil when there are none.
  @concurrent
  func next(waits: Bool = true) async throws(DatabaseError) -> DatabaseChange? {
    begin()
    do throws(DatabaseError) {
      while !Task.isCancelled, !database.arrivals.isClosed, !state.withLock({ $0.isOver }) {
        if let change = state.withLock({ $0.changes.popFirst() }) { return change }
        let position = try await readSome()
        guard let position else { continue }
        if !waits { return nil }
        try await database.arrivals.wait(behind: position, for: listening)
      }
    } catch {
      end()
      // The database may be closed between two checks.
      if database.arrivals.isClosed { return nil }
      throw error
    }
    end()
    return nil
  }

  private func begin() {
    let isFirst = state.withLock { state in
      guard !state.isAudience, !state.isOver else { return false }
      state.isAudience = true
      return true
    }
    if isFirst { database.audience.enter() }
  }

  private func end() {
    let isLast = state.withLock { state in
      state.isOver = true
      defer { state.isAudience = false }
      return state.isAudience
    }
    if isLast { database.audience.leave() }
  }

  /// Reads the next commits. When there are none, returns the commit after which to wait.
  private func readSome() async throws(DatabaseError) -> SequenceNumber? {
    var history: CommitHistory
    if let begun = state.withLock({ $0.history }) {
      history = begun
    } else {
      history = try database.history(since: try start.get())
    }
    let commits = try await history.someCommits()
    var changes: [DatabaseChange] = []
    for commit in commits {
      if let change = try DatabaseChange(commit, in: database) { changes.append(change) }
    }
    state.withLock { [history, changes] state in
      state.history = history
      state.changes = changes[...]
    }
    return commits.isEmpty ? history.position.sequence : nil
  }
}

extension CommitHistory {
  /// Like `next()`, with the errors of the public interface.
  mutating func someCommits() async throws(DatabaseError) -> [LoggedCommit] {
    return try await rethrowing { () async throws(EngineError) in try await next() }
  }
}

/// Wakes the followers that have read everything.
final class CommitArrivals: Sendable {
  fileprivate struct State: Sendable {
    /// The last commit that was announced.
    var last: SequenceNumber
    var waiters = WaitingListeners()
    /// Why later commits cannot be followed.
    var failure: DatabaseError?
    var isClosed = false
  }

  private let state: Guarded<State>

  init(after last: SequenceNumber) {
    state = Guarded(State(last: last))
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Wakes all, because a commit was announced.
  func note(_ sequence: SequenceNumber) {
    let woken = state.withLock { state in
      state.last = max(state.last, sequence)
      state.failure = nil
      return state.waiters.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  /// Throws the error in all that wait, until a commit is announced.
  func fail(with error: DatabaseError) {
    let woken = state.withLock { state in
      state.failure = error
      return state.waiters.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  /// Wakes all permanently.
  func close() {
    let woken = state.withLock { state in
      state.isClosed = true
      return state.waiters.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  /// Waits until a commit after `sequence` is announced, the listener's task is cancelled, or the
  /// database is closed. May return sooner.
  func wait(
    behind sequence: SequenceNumber, for listener: Listening
  ) async throws(DatabaseError) {
    await listener.wait { wakeup in
      state.withLock { state in
        guard !listener.isCancelled, !state.isClosed, state.failure == nil, state.last <= sequence
        else { return false }
        state.waiters.add(listener, wakeup)
        return true
      }
    } leave: { [state] in
      state.withLock { $0.waiters.remove(listener) }
    }
    if let failure = state.withLock({ $0.failure }) { throw failure }
  }

  /// Waits until the commit with this number has been announced, if it is going to be.
  func waitUntilAnnounced(
    _ sequence: SequenceNumber, for listener: Listening
  ) async throws(DatabaseError) {
    while !listener.isCancelled, state.withLock({ !$0.isClosed && $0.last < sequence }) {
      try await wait(behind: SequenceNumber(rawValue: sequence.rawValue - 1), for: listener)
    }
  }
}
