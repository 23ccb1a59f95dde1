// Following a database: every commit, in order, once, from the logs, or from what a server keeps
// in their place. Whoever follows reads there and keeps what it has not given out yet, some
// hundred commits at most; so writers never wait for it and it misses nothing, however far behind
// it is. A commit that is announced only wakes those who have read everything.

internal import OndolEngine

/// Every commit's changes, in order and each once.
///
/// A feed misses nothing and waits for nobody: it reads what the commits have said in the logs, and
/// when it has read everything, waits for the next commit. It holds up no writer, and however slow
/// the reader, the feed's memory is bounded. It goes on where it was when it is begun again with
/// the last change's `token`, after the app was closed or has crashed too. A commit may be told
/// before it would survive a power cut; where a cut takes it, a feed that goes on behind it throws
/// `.outOfRange`.
///
/// On a server it tells the commits of all processes, and goes on behind a token of any. A feed
/// that waits goes on waiting while the server does not answer.
///
/// The sequence ends, without an error, when the task is cancelled or the database is closed. Each
/// iterator follows for itself.
public struct ChangeFeed: AsyncSequence, Sendable {
  /// What a feed tells of a commit.
  public typealias Element = DatabaseChange
  /// What a feed throws.
  public typealias Failure = DatabaseError

  fileprivate let database: Database
  fileprivate let start: Result<ChangeToken, DatabaseError>

  /// Begins to follow.
  public func makeAsyncIterator() -> Iterator {
    Iterator(follower: ChangeFollower(database, start))
  }

  /// One who follows.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let follower: ChangeFollower

    /// The next commit's changes; nil when the task is cancelled or the database is closed.
    ///
    /// What there is to read is read on a thread of its own, not on the caller's actor.
    ///
    /// - Throws: as `Database.changes(since:)` says; nothing comes after an error.
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
  /// The changes of every commit behind the one that `token` names, and of every later one, as they
  /// happen. Without a token, those of the commits from this call on.
  ///
  ///     for try await change in database.changes(since: token) {
  ///       try mirror(change.documents)
  ///       token = change.token
  ///     }
  ///
  /// Commits that changed no document, such as those that build an index, are passed over. Where a
  /// feed is begun that is to know all documents: take `changeToken()`, read them, then follow from
  /// the token; what changed in between comes once more.
  ///
  /// With `.readOnly` access the feed tells what the database's writer has kept, whatever the own
  /// options say, and follows the writer as listeners do.
  ///
  /// Its iterators throw `.failedPrecondition` without `Options.changeRetention`;
  /// `.invalidArgument` for the token of another database; `.outOfRange` when the commits behind
  /// the token are kept no more, or the commit itself did not survive a crash, and then everything
  /// is to be read anew; `.dataLoss` or `.notFound` naming the file when a log is damaged or
  /// missing; on a server `.unavailable` when there is no answer as it begins, and `.outOfRange` in
  /// front of a commit of a process without `Options.changeRetention`.
  ///
  /// - Parameter token: the commit behind which to begin, from `DatabaseChange.token`,
  ///   `QuerySnapshot.changeToken` or `changeToken()`; nil for now.
  /// - Complexity: O(1); the iterator reads at most one file of the log to find its place, then
  ///   what it gives out; on a server what it gives out, in pieces of 512 commits or a megabyte.
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
    /// Read and not given out.
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

  /// - Parameter waits: whether it waits for commits; otherwise it is nil when there are none.
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
      // Closing may come between two looks.
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

  /// Reads what comes next; where nothing does, answers behind which commit to wait.
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
  /// As `next()`, with the product's errors.
  mutating func someCommits() async throws(DatabaseError) -> [LoggedCommit] {
    return try await rethrowing { () async throws(EngineError) in try await next() }
  }
}

/// What wakes those who have read everything.
final class CommitArrivals: Sendable {
  fileprivate struct State: Sendable {
    /// The last commit that was announced.
    var last: SequenceNumber
    var waiters = WaitingListeners()
    /// Why nothing is known of later commits.
    var failure: DatabaseError?
    var isClosed = false
  }

  private let state: Guarded<State>

  init(after last: SequenceNumber) {
    state = Guarded(State(last: last))
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Wakes all, since a commit was announced.
  func note(_ sequence: SequenceNumber) {
    let woken = state.withLock { state in
      state.last = max(state.last, sequence)
      state.failure = nil
      return state.waiters.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  /// Has all who wait get the error, until a commit is announced.
  func fail(with error: DatabaseError) {
    let woken = state.withLock { state in
      state.failure = error
      return state.waiters.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  /// Wakes all for good.
  func close() {
    let woken = state.withLock { state in
      state.isClosed = true
      return state.waiters.takeAll()
    }
    for wakeup in woken { wakeup.resume() }
  }

  /// Waits until a commit behind `sequence` is announced, the listener's task is cancelled, or the
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

  /// Waits until the commit with this number was announced, if it is to be.
  func waitUntilAnnounced(
    _ sequence: SequenceNumber, for listener: Listening
  ) async throws(DatabaseError) {
    while !listener.isCancelled, state.withLock({ !$0.isClosed && $0.last < sequence }) {
      try await wait(behind: SequenceNumber(rawValue: sequence.rawValue - 1), for: listener)
    }
  }
}
