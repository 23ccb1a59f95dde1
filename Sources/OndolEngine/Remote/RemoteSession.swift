// A database on a store, seen from one process: the one task that sends what is to be committed and
// shows what others have committed, in the order of commits. Stages 3 to 6 of the write path, where
// the order is not made here.
//
// A commit: whether what it guards has changed is asked in the memtables, up to the newest commit
// that is shown; behind that the store asks. All who wait go together, but for those that guard
// what another of them writes. A refused group brings the news, and then only those stay refused
// that the news concerns. A lost answer is asked for until it is known; nothing else is sent
// before.
//
// What others commit is shown as a follower shows it, a step from one commit to a later one; own
// commits are announced with their notes. Both come one behind the other.

internal import Synchronization

/// Sends and follows commits.
final class RemoteSession: Sendable {
  let store: any RemoteStore
  let window: RemoteWindow
  let line: RemoteLine
  let identity: DatabaseIdentity
  let process: Int64
  /// For how long what commits have said can be read again; nil when this process keeps nothing.
  let retention: HistoryRetention?
  let bases: RemoteBases
  let environment: Environment
  /// Commits behind the base above which it is moved before versions are forgotten.
  let baseLag: UInt64
  /// How long calls are waited for; nil when for ever.
  let patience: Patience?
  private let tasks: BackgroundTasks
  /// Those who are told block now and then.
  private let worker: any Worker
  private let isDone = Guarded<[CheckedContinuation<Void, Never>]?>([])
  let watchers: BackgroundTasks

  struct Audience: Sendable {
    /// Told of own commits.
    var follower: Announcements.Follower?
    /// Told of what others have committed, before it is visible and after.
    var preparer: (@Sendable (FollowerStep) -> Bool)?
    var observer: (@Sendable (FollowerStep) -> Void)?
    /// Told once of what ends all, but for closing.
    var mourner: (@Sendable (EngineError) -> Void)?
    /// Called now and then to look for what others have left, sometimes thoroughly.
    var caretaker: (@Sendable (_ isThorough: Bool) -> Void)?
  }

  let audience = Guarded(Audience())
  let reach = Guarded(Reach())
  private let announced: Atomic<UInt64>
  /// The oldest commit that any process reads as of, as far as is known.
  let pinned: Atomic<UInt64>
  /// Behind it history can be read, as far as is known.
  let knownHistoryStart = Atomic<UInt64>(0)

  /// Microseconds between two tries to reach the store, at first and at most.
  static let pauses: (first: Int64, last: Int64) = (10_000, 1_000_000)

  init(
    _ store: any RemoteStore, _ window: RemoteWindow, identity: DatabaseIdentity, process: Int64,
    retention: HistoryRetention?, bases: RemoteBases, options: EngineOptions,
    environment: Environment
  ) {
    self.store = store
    self.window = window
    self.identity = identity
    self.process = process
    self.retention = retention
    self.bases = bases
    self.environment = environment
    baseLag = options.baseLag
    line = RemoteLine(
      mostWaiting: options.waitingCommits, mostBytes: options.waitingCommitBytes)
    patience = options.serverTimeout.map { Patience(limit: $0, environment: environment) }
    tasks = BackgroundTasks(executor: environment.executor)
    watchers = BackgroundTasks(executor: environment.executor)
    worker = environment.threads.makeWorker(named: "ondol-news", for: .own)
    announced = Atomic(window.point.sequence.rawValue)
    pinned = Atomic(0)
  }

  /// Begins to work.
  func start() {
    tasks.start { [self] in await work() }
    watchers.start { [self] in await listen() }
    watchers.start { [self] in await keepPinned() }
  }

  // MARK: - The door

  func commit(
    _ batch: consuming Batch, _ durability: Durability
  ) async throws(EngineError) -> CommitReceipt {
    let ticket = batch.ticket
    do throws(EngineError) {
      let receipt = try await line.commit(batch, durability)
      ticket?.settle(.committed(receipt))
      return receipt
    } catch {
      switch error {
      case .poisoned, .outOfStep: ticket?.settle(.unknown)
      default: ticket?.settle(.notCommitted)
      }
      throw error
    }
  }

  /// Shows all commits that the store has by now; whether there were any.
  func catchUp() async throws(EngineError) -> Bool {
    let before = window.point
    try await within { [line] () async throws(EngineError) in try await line.catchUp() }
    return window.point != before
  }

  /// Makes every commit so far survive a power cut.
  func synchronize() async throws(EngineError) {
    if let failure = line.failure { throw failure }
    try await within { [store] () async throws(EngineError) in try await store.synchronize() }
  }

  /// Makes a call, and waits for its end for so long as calls are waited for.
  func within<R: Sendable>(
    _ call: @escaping @Sendable () async throws(EngineError) -> R
  ) async throws(EngineError) -> R {
    guard let patience else { return try await call() }
    let waited = await patience.wait { () async -> Result<R, EngineError> in
      do throws(EngineError) {
        return .success(try await call())
      } catch {
        return .failure(error)
      }
    }
    switch waited {
    case .done(let result): return try result.get()
    case .late: throw .late(reason: patience.words(for: store.name))
    case .cancelled: throw .cancelled
    }
  }

  /// Whether whoever follows has been told of all commits up to `sequence`.
  func hasAnnounced(through sequence: SequenceNumber) -> Bool {
    announced.load(ordering: .acquiring) >= sequence.rawValue || line.failure != nil
  }

  /// Sends what waits and lets go of the store.
  func close() async {
    line.finish()
    await watchers.finish()
    await withCheckedContinuation { waiter in
      let isOver = isDone.withLock { waiters in
        waiters?.append(waiter)
        return waiters == nil
      }
      if isOver { waiter.resume() }
    }
    line.fail(.closed)
    await tasks.finish()
    await patience?.finish()
    await worker.stop()
    await store.close(process)
  }

  /// Ends all: everybody who waits, reads, listens or comes later gets the error.
  func fail(_ error: EngineError) {
    guard line.fail(error) else { return }
    audience.withLock { $0.mourner }?(error)
  }

  /// Ends all because the store does not have what was shown here, and answers with the error.
  func loseHistory() -> EngineError {
    let failure = EngineError.outOfStep(
      reason: "\(store.name) has lost commits that were seen here, or forgotten them because it"
        + " heard nothing of this process for long, or another database has taken its place")
    fail(failure)
    return failure
  }

  /// For a database that is let go of without being closed.
  func abandon() {
    line.fail(.closed)
    watchers.cancel()
    patience?.cancel()
  }

  // MARK: - The one task

  private func work() async {
    var sender = newSender()
    while let work = await line.next(behind: { self.window.point.sequence }) {
      switch work {
      case .commits(let requests): await send(requests, &sender)
      case .rebase(let waiters):
        window.moveBase()
        for waiter in waiters { waiter.resume() }
      case .news(let waiters, let heard):
        var failure: EngineError?
        do throws(EngineError) {
          try await takeNewsPatiently()
        } catch {
          failure = error
        }
        for waiter in waiters { waiter.resume(returning: failure) }
        if failure != nil {
          line.hear(of: heard)
          await environment.sleep(Self.pauses.first)
        }
      }
    }
    let waiters = isDone.withLock { $0.take() }
    for waiter in waiters ?? [] { waiter.resume() }
  }

  private func newSender() -> RemoteSender {
    RemoteSender(
      origin: Int64(bitPattern: environment.random()) & .max, keepsHistory: retention != nil)
  }

  // MARK: - Sending

  /// How often a call is made that has had no answer, and commits are sent that were lost on their
  /// way, each time for certain.
  private static let mostAttempts = 5

  private func send(_ requests: [RemoteRequest], _ sender: inout RemoteSender) async {
    var waiting = requests
    var attempts = 0
    while !waiting.isEmpty {
      let (group, chosen, later) = sender.makeGroup(of: waiting, in: window)
      guard !chosen.isEmpty else { return }
      waiting = later
      switch await append(group, &sender) {
      case .success(.done(let first)):
        do throws(EngineError) {
          try await show(chosen, from: first)
        } catch {
          // It lasts, and what came before it cannot be shown.
          let failure = EngineError.poisoned(reason: error.description)
          fail(failure)
          for request in chosen { request.answer(.failure(failure)) }
        }
      case .success(.conflict):
        do throws(EngineError) {
          try await takeNewsPatiently()
          waiting = giveBack(chosen) + waiting
        } catch {
          for request in chosen { request.answer(.failure(error)) }
        }
      case .success(.otherHistory):
        let failure = loseHistory()
        for request in chosen + waiting { request.answer(.failure(failure)) }
        return
      case .failure(let error):
        attempts += 1
        if case .unreachable = error, attempts < Self.mostAttempts, !line.isClosing {
          waiting = giveBack(chosen) + waiting
          continue
        }
        switch error {
        case .poisoned, .outOfStep: fail(error)
        default: break
        }
        for request in chosen { request.answer(.failure(error)) }
      }
    }
  }

  /// Commits that were sent, were not made, and wait again.
  private func giveBack(_ chosen: [RemoteRequest]) -> [RemoteRequest] {
    for request in chosen { request.batch.ticket?.giveBack() }
    return chosen
  }

  /// Sends a group and finds out what came of it, however long that takes.
  private func append(
    _ group: RemoteGroup, _ sender: inout RemoteSender
  ) async -> Result<RemoteAppend, EngineError> {
    let failure: EngineError
    do throws(EngineError) {
      return .success(try await store.append(group))
    } catch {
      guard case .unreachable = error else { return .failure(error) }
      failure = error
    }
    // Nothing of the old origin is committed once its outcome is known.
    sender = newSender()
    var pause = Self.pauses.first
    while true {
      do throws(EngineError) {
        let first = try await store.outcome(of: group.part, from: group.origin)
        return first.map { .success(.done($0)) } ?? .failure(failure)
      } catch {
        guard case .unreachable = error else { return .failure(.poisoned(reason: "\(error)")) }
        if line.isClosing || line.failure != nil {
          return .failure(.poisoned(reason: "\(error)"))
        }
      }
      await environment.sleep(pause)
      pause = min(2 * pause, Self.pauses.last)
    }
  }

  // MARK: - Showing

  /// Shows own commits, which have their numbers, behind those of others that came before.
  private func show(
    _ chosen: [RemoteRequest], from first: CommitPoint
  ) async throws(EngineError) {
    var pause = Self.pauses.first
    while first.sequence > window.point.sequence.next {
      do throws(EngineError) {
        try await takeNews(through: SequenceNumber(rawValue: first.sequence.rawValue - 1))
      } catch {
        // It lasts; what came before it cannot be shown yet.
        guard case .unreachable = error, !line.isClosing, line.failure == nil else { throw error }
        await environment.sleep(pause)
        pause = min(2 * pause, Self.pauses.last)
      }
    }
    window.makeRoom(
      forRows: chosen.reduce(0) { $0 + $1.batch.operationCount },
      bytes: chosen.reduce(0) { $0 + $1.batch.rowsLength })
    let follower = audience.withLock { $0.follower }
    for (index, commit) in chosen.enumerated() {
      let point = CommitPoint(
        sequence: SequenceNumber(rawValue: first.sequence.rawValue + UInt64(index)),
        time: first.time + Int64(index))
      let note = commit.batch.note
      window.insert(commit.batch.recovered(as: point))
      window.publish(point)
      if let note, let follower {
        follower(Announcement(sequence: point.sequence, time: point.time, note: note))
      }
      announced.store(point.sequence.rawValue, ordering: .releasing)
      commit.answer(
        .success(CommitReceipt(sequence: point.sequence, time: point.time)))
    }
  }

  /// Commits asked for at once.
  private static let newsAtOnce = 256

  /// Shows all that others have committed; asks a few times where there is no answer.
  private func takeNewsPatiently() async throws(EngineError) {
    try await insist { () async throws(EngineError) in try await takeNews(through: nil) }
  }

  /// Asks the store until there is an answer, and waits for so long as calls are waited for.
  func ask<R: Sendable>(
    _ question: @escaping @Sendable (any RemoteStore) async throws(EngineError) -> R
  ) async throws(EngineError) -> R {
    try await within { [self] () async throws(EngineError) in
      try await insist { () async throws(EngineError) in try await question(store) }
    }
  }

  /// Makes a call until there is an answer, some times at most.
  func insist<R: Sendable>(
    _ call: () async throws(EngineError) -> R
  ) async throws(EngineError) -> R {
    for _ in 1..<Self.mostAttempts {
      do throws(EngineError) {
        return try await call()
      } catch {
        guard case .unreachable = error, line.failure == nil, !line.isClosing else { throw error }
      }
      await environment.rest(Self.pauses.first)
    }
    return try await call()
  }

  /// Shows what others have committed, all of it or through a number, until there is no more.
  private func takeNews(through last: SequenceNumber?) async throws(EngineError) {
    while last.map({ window.point.sequence < $0 }) ?? true {
      var commits: [RemoteCommit]
      do throws(EngineError) {
        commits = try await store.commits(behind: window.point, atMost: Self.newsAtOnce)
      } catch {
        if case .notInHistory = error { throw loseHistory() }
        throw error
      }
      if let last { commits.removeAll { $0.point.sequence > last } }
      guard !commits.isEmpty else { break }
      try await show(commits)
    }
    if let last, window.point.sequence < last {
      throw .corrupt(file: store.name, offset: 0, reason: "commits are missing")
    }
  }

  /// Shows what others have committed, in one step.
  private func show(_ commits: [RemoteCommit]) async throws(EngineError) {
    var recovered: [RecoveredCommit] = []
    var next = window.point.sequence.next
    for commit in commits {
      guard commit.point.sequence == next else {
        throw .corrupt(
          file: store.name, offset: 0, reason: "commit \(next.rawValue) is missing")
      }
      next = next.next
      recovered.append(try commit.recovered(from: store.name))
    }
    guard let last = commits.last?.point else { return }
    window.makeRoom(
      forRows: recovered.reduce(0) { $0 + $1.operations },
      bytes: recovered.reduce(0) { $0 + $1.rowsLength })
    let before = window.snapshot
    for commit in recovered { window.insert(commit) }
    let step = FollowerStep(
      before: before, after: window.snapshot(at: last), commits: recovered)
    let (preparer, observer) = audience.withLock { ($0.preparer, $0.observer) }
    while let preparer, !(await worker.perform { preparer(step) }), !line.isClosing {
      try await refuseForgotten()
      await environment.sleep(Self.pauses.first)
    }
    window.publish(last)
    if let observer { await worker.perform { observer(step) } }
    announced.store(last.sequence.rawValue, ordering: .releasing)
  }
}
