// A database on a store, from the view of one process. One task sends this process's commits and
// makes the commits of other processes visible, in commit order. These are stages 3 to 6 of the
// write path, except that the order is determined by the store.
//
// A commit's guards are checked against the memtables up to the newest visible commit; beyond that,
// the store checks them. All waiting commits go together, except those that guard rows that another
// of them writes. A rejected group fetches the news, and then only the commits remain rejected that
// the news affects. After a lost answer the task asks until the outcome is known, and sends nothing
// else before.
//
// Other processes' commits become visible as with a follower, in a step from one commit to a later
// one. Own commits are announced with their notes. Both happen one after the other.

internal import Synchronization

/// Sends and follows commits.
final class RemoteSession: Sendable {
  let store: any RemoteStore
  let window: RemoteWindow
  let line: RemoteLine
  let identity: DatabaseIdentity
  let process: Int64
  /// How long the commit history can be read again; nil if this process keeps none.
  let retention: HistoryRetention?
  let bases: RemoteBases
  let environment: Environment
  /// The number of commits after the base above which it is moved before versions are forgotten.
  let baseLag: UInt64
  /// How long to wait for calls; nil for no limit.
  let patience: Patience?
  private let tasks: BackgroundTasks
  /// The observers block from time to time.
  private let worker: any Worker
  private let isDone = Guarded<[CheckedContinuation<Void, Never>]?>([])
  let watchers: BackgroundTasks

  struct Audience: Sendable {
    /// Receives own commits.
    var follower: Announcements.Follower?
    /// Receives other processes' commits, before and after they are visible.
    var preparer: (@Sendable (FollowerStep) -> Bool)?
    var observer: (@Sendable (FollowerStep) -> Void)?
    /// Called once with the error that ends everything, except for closing.
    var mourner: (@Sendable (EngineError) -> Void)?
    /// Called from time to time to look for what other processes have left, sometimes thoroughly.
    var caretaker: (@Sendable (_ isThorough: Bool) -> Void)?
  }

  let audience = Guarded(Audience())
  let reach = Guarded(Reach())
  private let announced: Atomic<UInt64>
  /// The oldest commit that any process reads as of, as far as known.
  let pinned: Atomic<UInt64>
  /// History can be read after this commit, as far as known.
  let knownHistoryStart = Atomic<UInt64>(0)

  /// The first and the longest pause in microseconds between two attempts to reach the store.
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

  /// Starts the work.
  func start() {
    tasks.start { [self] in await work() }
    watchers.start { [self] in await listen() }
    watchers.start { [self] in await keepPinned() }
  }

  // MARK: - Calls

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

  /// Makes all commits that the store has by now visible. Returns whether there were any.
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

  /// Makes a call, and waits for its end up to the time limit for calls.
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

  /// Whether followers have received all commits up to `sequence`.
  func hasAnnounced(through sequence: SequenceNumber) -> Bool {
    announced.load(ordering: .acquiring) >= sequence.rawValue || line.failure != nil
  }

  /// Sends the pending commits and releases the store.
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

  /// Ends everything: all waiting, reading, listening and future callers receive the error.
  func fail(_ error: EngineError) {
    guard line.fail(error) else { return }
    audience.withLock { $0.mourner }?(error)
  }

  /// Ends everything because the store lacks commits that are visible here, and returns the error.
  func loseHistory() -> EngineError {
    let failure = EngineError.outOfStep(
      reason: "\(store.name) has lost commits that were seen here, or forgotten them because it"
        + " heard nothing of this process for long, or another database has taken its place")
    fail(failure)
    return failure
  }

  /// For a database that is released without being closed.
  func abandon() {
    line.fail(.closed)
    watchers.cancel()
    patience?.cancel()
  }

  // MARK: - The task

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

  /// How often a call without an answer is repeated, and how often lost commits are sent again. The
  /// loss is certain each time.
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
          // The commit is permanent, and what came before it cannot be made visible.
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

  /// Commits that were sent but not made, and wait again.
  private func giveBack(_ chosen: [RemoteRequest]) -> [RemoteRequest] {
    for request in chosen { request.batch.ticket?.giveBack() }
    return chosen
  }

  /// Sends a group and finds out its outcome, however long that takes.
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
    // No commit of the old origin is made once its outcome is known.
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

  /// Makes own commits, which have their numbers, visible after those of other processes that came
  /// before.
  private func show(
    _ chosen: [RemoteRequest], from first: CommitPoint
  ) async throws(EngineError) {
    var pause = Self.pauses.first
    while first.sequence > window.point.sequence.next {
      do throws(EngineError) {
        try await takeNews(through: SequenceNumber(rawValue: first.sequence.rawValue - 1))
      } catch {
        // The commit is permanent. What came before it cannot be made visible yet.
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

  /// Commits requested at once.
  private static let newsAtOnce = 256

  /// Makes all commits of other processes visible. If there is no answer, it asks a few times.
  private func takeNewsPatiently() async throws(EngineError) {
    try await insist { () async throws(EngineError) in try await takeNews(through: nil) }
  }

  /// Asks the store until there is an answer, up to the time limit for calls.
  func ask<R: Sendable>(
    _ question: @escaping @Sendable (any RemoteStore) async throws(EngineError) -> R
  ) async throws(EngineError) -> R {
    try await within { [self] () async throws(EngineError) in
      try await insist { () async throws(EngineError) in try await question(store) }
    }
  }

  /// Repeats a call until there is an answer, up to a number of times.
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

  /// Makes other processes' commits visible, through a number or all that the store had when it was
  /// first asked. While others commit without a pause, there would always be more.
  private func takeNews(through last: SequenceNumber?) async throws(EngineError) {
    var end = last
    while end.map({ window.point.sequence < $0 }) ?? true {
      var news: RemoteNews
      do throws(EngineError) {
        news = try await store.commits(behind: window.point, atMost: Self.newsAtOnce)
      } catch {
        if case .notInHistory = error { throw loseHistory() }
        throw error
      }
      if let last { news.commits.removeAll { $0.point.sequence > last } }
      guard !news.commits.isEmpty else { break }
      try await show(news.commits)
      end = end ?? news.newest
    }
    if let last, window.point.sequence < last {
      throw .corrupt(file: store.name, offset: 0, reason: "commits are missing")
    }
  }

  /// Makes other processes' commits visible in one step.
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
