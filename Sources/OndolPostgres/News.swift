// Listens for other processes' commits. One thread with one connection listens for notifications,
// regularly asks for the newest commit in case a notification was missed, reads news for its
// callers, and notifies other processes of commits made here.
//
// A notification is only a signal. Anyone may send one, so its contents are verified before they
// are reported. Own notifications are sent at most every few milliseconds, because the server holds
// a lock across all its databases for each. They are not sent as part of a commit.

internal import OndolEngine
internal import Synchronization

/// The thread. It lives as long as this object.
final class News: Sendable {
  /// The state shared by the thread and its owner. The thread refers to this object and not to the
  /// owner.
  private let hearing: Hearing
  private let worker: any Worker

  init(_ settings: LinkSettings, _ worker: any Worker) {
    hearing = Hearing(settings)
    self.worker = worker
  }

  func start() {
    if hearing.begin() { worker.enqueue { [hearing] in hearing.run() } }
  }

  /// Makes the thread end.
  func stop() { hearing.stop() }

  /// Waits until the thread has ended.
  func finish() async {
    stop()
    await worker.stop()
  }

  /// Records that a commit was made here, so that other processes are notified of it.
  func ring(_ sequence: SequenceNumber) { hearing.ring(sequence) }

  /// Records, on the thread's connection, that nothing follows a commit. The announced commits were
  /// not durable yet, and the server that had them is gone.
  func findNothing(behind sequence: SequenceNumber) { hearing.findNothing(behind: sequence) }

  /// Notifies `observer` when the server stops answering, and when it answers again.
  func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    hearing.observeReach(observer)
  }

  /// Runs work on the thread's connection.
  ///
  /// The thread asks for nothing else until the work is done. If an answer is late, the observer is
  /// therefore notified as if the server had not answered such a question.
  func perform<R: Sendable>(
    _ tries: Link.Tries,
    _ body: @escaping @Sendable (PostgresConnection) throws(PostgresFailure) -> R
  ) async throws(EngineError) -> R {
    let result: Result<R, EngineError> = await withCheckedContinuation { continuation in
      let isTaken = hearing.add { [hearing] link in
        do throws(EngineError) {
          let result = try link.use(
            tries, whenLate: { hearing.noteReach(isAway: true) }, body)
          continuation.resume(returning: .success(result))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
      if !isTaken { continuation.resume(returning: .failure(.closed)) }
    }
    return try result.get()
  }

  /// Returns when there are commits after a point, the time has expired, or the task is cancelled.
  /// Returns the newest announced commit, or nil if the server reports that it does not have the
  /// point.
  func wait(
    behind point: CommitPoint, until deadline: ContinuousClock.Instant
  ) async -> SequenceNumber? {
    let number = hearing.nextWaiter()
    let isThere = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waiter = Hearing.Waiter(point: point, deadline: deadline, continuation: continuation)
        if !hearing.add(waiter, as: number) { continuation.resume(returning: true) }
      }
    } onCancel: {
      hearing.cancel(number)
    }
    return isThere ? hearing.newest : nil
  }
}

/// The work of the thread.
private final class Hearing: Sendable {
  struct Waiter: Sendable {
    /// The newest visible commit of the waiting session.
    var point: CommitPoint
    var deadline: ContinuousClock.Instant
    /// Receives whether the server has that commit, as far as known.
    var continuation: CheckedContinuation<Bool, Never>

    /// Whether a server has lost the visible commits, given that this is its newest commit, and
    /// already was when the waiting began.
    func isLost(at head: CommitPoint) -> Bool {
      head.sequence < point.sequence || head.sequence == point.sequence && head.time != point.time
    }
  }

  private struct State: Sendable {
    var jobs: [@Sendable (Link) -> Void] = []
    var waiters: [UInt64: Waiter] = [:]
    var lastWaiter: UInt64 = 0
    /// Waiters that were cancelled before they began to wait.
    var cancelled: Set<UInt64> = []
    /// The newest commit at the last query.
    var heard = SequenceNumber.zero
    /// The newest commit made here. It need not be announced to this process.
    var own = SequenceNumber.zero
    /// A commit that other processes must be notified of.
    var bell: SequenceNumber?
    var hasBegun = false
    var isStopped = false
    /// Whether the server failed to answer the last query.
    var isAway = false
    var reachObserver: (@Sendable (_ isAway: Bool) -> Void)?
  }

  private let state = Guarded(State())
  private let settings: LinkSettings
  private let link: Link
  private let pipe = WakePipe()
  private let isListening: Flag

  private final class Flag: Sendable {
    let isSet = Atomic(false)
  }

  /// The pause between two notifications.
  private static let bellPause: Duration = .milliseconds(5)
  /// The pauses between two queries for the newest commit: the first, and the longest with and
  /// without notifications.
  private static let pauses: (first: Duration, listening: Duration, deaf: Duration) = (
    .milliseconds(2), .seconds(1), .milliseconds(50)
  )

  init(_ settings: LinkSettings) {
    self.settings = settings
    let isListening = Flag()
    self.isListening = isListening
    link = Link(settings) { connection throws(PostgresFailure) in
      guard let channel = Self.channel(settings) else { return }
      do throws(PostgresFailure) {
        try connection.run(script: "listen \"\(channel)\"")
        isListening.isSet.store(true, ordering: .relaxed)
      } catch {
        // Some PostgreSQL-compatible servers do not support notifications.
        guard case .refused = error, !error.passes else { throw error }
        isListening.isSet.store(false, ordering: .relaxed)
      }
    }
  }

  /// The database's own channel, whatever other channels exist on the server.
  private static func channel(_ settings: LinkSettings) -> String? {
    guard let identity = settings.opened.withLock({ $0?.identity }) else { return nil }
    return "ondol_" + identity.text
  }

  // MARK: - Calls

  var newest: SequenceNumber { state.withLock { max($0.heard, $0.own) } }

  /// Whether the thread must be started.
  func begin() -> Bool {
    state.withLock { state in
      defer { state.hasBegun = true }
      return !state.hasBegun && !state.isStopped
    }
  }

  func stop() {
    let waiters = state.withLock { state in
      state.isStopped = true
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.continuation.resume(returning: true) }
    pipe.wake()
  }

  func add(_ job: @escaping @Sendable (Link) -> Void) -> Bool {
    let isTaken = state.withLock { state in
      guard state.hasBegun, !state.isStopped else { return false }
      state.jobs.append(job)
      return true
    }
    if isTaken { pipe.wake() }
    return isTaken
  }

  func ring(_ sequence: SequenceNumber) {
    let isNew = state.withLock { state in
      state.own = max(state.own, sequence)
      defer { state.bell = state.own }
      return state.bell == nil
    }
    // A thread that is about to send a notification includes this commit.
    if isNew { pipe.wake() }
  }

  func findNothing(behind sequence: SequenceNumber) {
    state.withLock { $0.heard = min($0.heard, sequence) }
  }

  func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    state.withLock { $0.reachObserver = observer }
  }

  func nextWaiter() -> UInt64 {
    state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
  }

  /// Returns false if there is nothing to wait for.
  func add(_ waiter: Waiter, as number: UInt64) -> Bool {
    let isTaken = state.withLock { state in
      if state.cancelled.remove(number) != nil { return false }
      guard state.hasBegun, !state.isStopped, max(state.heard, state.own) <= waiter.point.sequence
      else { return false }
      state.waiters[number] = waiter
      return true
    }
    if isTaken { pipe.wake() }
    return isTaken
  }

  func cancel(_ number: UInt64) {
    let waiter = state.withLock { state -> Waiter? in
      if let waiter = state.waiters.removeValue(forKey: number) { return waiter }
      state.cancelled.insert(number)
      return nil
    }
    waiter?.continuation.resume(returning: true)
  }

  // MARK: - The thread

  private struct Times {
    var nextBell: ContinuousClock.Instant = .now
    var nextQuestion: ContinuousClock.Instant = .now
    var lastQuestion: ContinuousClock.Instant = .now
    var pause = Hearing.pauses.first
  }

  func run() {
    var times = Times()
    while true {
      pipe.clear()
      let (jobs, isStopped) = state.withLock { state in
        defer { state.jobs = [] }
        return (state.jobs, state.isStopped)
      }
      for job in jobs { job(link) }
      if isStopped { break }
      takeNotifications(&times)
      ringBell(&times)
      askForNewest(&times)
      wakeWaiters()
      Waiting.wait(for: link.idle?.descriptor, or: pipe.reading, until: nextMoment(times))
    }
    link.close()
  }

  private func takeNotifications(_ times: inout Times) {
    guard let connection = link.idle else { return }
    do throws(PostgresFailure) {
      for notification in try connection.takeNotifications()
      where notification.process != connection.process {
        let heard = state.withLock { $0.heard.rawValue }
        if let told = UInt64(notification.payload), told <= heard { continue }
        times.nextQuestion = .now
        times.pause = Self.pauses.first
      }
    } catch {
      link.close()
    }
  }

  private func ringBell(_ times: inout Times) {
    guard times.nextBell <= .now, let sequence = state.withLock({ $0.bell.take() }),
      let channel = Self.channel(settings)
    else { return }
    var parameters = ParameterList()
    parameters.add(channel)
    parameters.add(String(sequence.rawValue))
    // A process that misses the notification queries the server itself.
    _ = try? link.use(.hasty, isLimited: true) { connection throws(PostgresFailure) in
      _ = try connection.run(.notify, parameters)
    }
    times.nextBell = .now + Self.bellPause
  }

  private func askForNewest(_ times: inout Times) {
    // Before the query, because sessions that become visible later may be newer than the answer.
    let (asking, hasObserver) = state.withLock { ($0.waiters, $0.reachObserver != nil) }
    // A session that is at work does not wait, and its work may be a call without an answer.
    let isDue =
      asking.isEmpty ? hasObserver && nextCheck(times) <= .now : times.nextQuestion <= .now
    guard isDue, let opened = settings.opened.withLock({ $0 }) else { return }
    defer { times.lastQuestion = .now }
    var head: CommitPoint?
    var isOther = false
    do throws(EngineError) {
      head = try link.use(.hasty, isLimited: true) { connection throws(PostgresFailure) in
        guard let head = try PostgresStore.head(connection, opened.number) else {
          throw .told(.outOfStep(reason: "the database is gone"))
        }
        return head
      }
    } catch {
      if case .outOfStep = error { isOther = true }
    }
    let isNew = state.withLock { state in
      guard let head else { return false }
      defer { state.heard = head.sequence }
      return head.sequence != state.heard
    }
    noteReach(isAway: head == nil && !isOther)
    refuse(asking.filter { isOther || head.map($0.value.isLost(at:)) ?? false }.map(\.key))
    if asking.isEmpty { return }
    let longest =
      isListening.isSet.load(ordering: .relaxed) || head == nil
      ? Self.pauses.listening : Self.pauses.deaf
    times.pause = isNew ? Self.pauses.first : min(times.pause * 2, longest)
    times.nextQuestion = .now + times.pause
  }

  func noteReach(isAway: Bool) {
    let observer = state.withLock { state in
      defer { state.isAway = isAway }
      return state.isAway == isAway ? nil : state.reachObserver
    }
    observer?(isAway)
  }

  /// Reports to these waiters that the server does not have their visible commit.
  private func refuse(_ numbers: [UInt64]) {
    let waiters = state.withLock { state in
      numbers.compactMap { state.waiters.removeValue(forKey: $0) }
    }
    for waiter in waiters { waiter.continuation.resume(returning: false) }
  }

  private func wakeWaiters() {
    let now = ContinuousClock.now
    let awake = state.withLock { state in
      let awake = state.waiters.filter { waiter in
        state.heard > max(waiter.value.point.sequence, state.own) || waiter.value.deadline <= now
      }
      for number in awake.keys { state.waiters[number] = nil }
      return awake.values.map(\.continuation)
    }
    for continuation in awake { continuation.resume(returning: true) }
  }

  /// When the server is asked although nobody waits for its commits.
  private func nextCheck(_ times: Times) -> ContinuousClock.Instant {
    times.lastQuestion + Self.pauses.listening
  }

  /// When there is work to do even without an event.
  private func nextMoment(_ times: Times) -> ContinuousClock.Instant {
    state.withLock { state in
      var moment = ContinuousClock.now + .seconds(3600)
      if state.bell != nil { moment = min(moment, times.nextBell) }
      if !state.waiters.isEmpty {
        moment = min(moment, times.nextQuestion)
      } else if state.reachObserver != nil {
        moment = min(moment, nextCheck(times))
      }
      for waiter in state.waiters.values { moment = min(moment, waiter.deadline) }
      return moment
    }
  }
}
