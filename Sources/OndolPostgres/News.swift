// Hears of what others commit. One thread with one connection: it listens for notifications, asks
// for the newest commit now and then in case one was missed, reads news for whoever asks for them,
// and tells other processes of commits that were made here.
//
// A notification is a doorbell and no more: anybody may send one, so what it says is looked up
// before it is told. Ours are sent at most every few milliseconds, because the server holds a lock
// of all its databases for each; and not on the way of a commit.

internal import OndolEngine
internal import Synchronization

/// The thread, for as long as somebody has this.
final class News: Sendable {
  /// What the thread and its owner share: the thread holds on to this and not to the owner.
  private let hearing: Hearing
  private let worker: any Worker

  init(_ settings: LinkSettings, _ worker: any Worker) {
    hearing = Hearing(settings)
    self.worker = worker
  }

  func start() {
    if hearing.begin() { worker.enqueue { [hearing] in hearing.run() } }
  }

  /// Has the thread end.
  func stop() { hearing.stop() }

  /// Waits until the thread has ended.
  func finish() async {
    stop()
    await worker.stop()
  }

  /// Notes that a commit was made here, of which others will be told.
  func ring(_ sequence: SequenceNumber) { hearing.ring(sequence) }

  /// Notes, within what the thread's connection does, that there is nothing behind a commit: what
  /// was heard of was not durable yet, and the server that had it is no more.
  func findNothing(behind sequence: SequenceNumber) { hearing.findNothing(behind: sequence) }

  /// Has `observer` told when the server is found not to answer, and when it does again.
  func observeReach(_ observer: @escaping @Sendable (_ isAway: Bool) -> Void) {
    hearing.observeReach(observer)
  }

  /// Has the thread's connection do something.
  func perform<R: Sendable>(
    _ tries: Link.Tries,
    _ body: @escaping @Sendable (PostgresConnection) throws(PostgresFailure) -> R
  ) async throws(EngineError) -> R {
    let result: Result<R, EngineError> = await withCheckedContinuation { continuation in
      let isTaken = hearing.add { link in
        do throws(EngineError) {
          continuation.resume(returning: .success(try link.use(tries, body)))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
      if !isTaken { continuation.resume(returning: .failure(.closed)) }
    }
    return try result.get()
  }

  /// Returns when there are commits behind a point, or when the time is over, or when the task is
  /// cancelled: the newest that was heard of, or nil when the server says that it does not have the
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

/// What the thread does.
private final class Hearing: Sendable {
  struct Waiter: Sendable {
    /// What is shown where it waits.
    var point: CommitPoint
    var deadline: ContinuousClock.Instant
    /// Gets whether the server has that, as far as is known.
    var continuation: CheckedContinuation<Bool, Never>

    /// Whether a server whose newest commit that is, and was when this one waited already, has lost
    /// what is shown.
    func isLost(at head: CommitPoint) -> Bool {
      head.sequence < point.sequence || head.sequence == point.sequence && head.time != point.time
    }
  }

  private struct State: Sendable {
    var jobs: [@Sendable (Link) -> Void] = []
    var waiters: [UInt64: Waiter] = [:]
    var lastWaiter: UInt64 = 0
    /// Those that are cancelled before they wait.
    var cancelled: Set<UInt64> = []
    /// The newest commit when the server was asked last.
    var heard = SequenceNumber.zero
    /// The newest commit that was made here, of which nobody here need be told.
    var own = SequenceNumber.zero
    /// One of which others must be told.
    var bell: SequenceNumber?
    var hasBegun = false
    var isStopped = false
    /// Whether the server did not answer when it was asked last.
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

  /// Between two notifications.
  private static let bellPause: Duration = .milliseconds(5)
  /// Between two questions for the newest commit: at first, and at most with and without
  /// notifications.
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
        // Some of the family have no notifications.
        guard case .refused = error, !error.passes else { throw error }
        isListening.isSet.store(false, ordering: .relaxed)
      }
    }
  }

  /// The database's own channel, whatever others are in the server's.
  private static func channel(_ settings: LinkSettings) -> String? {
    guard let identity = settings.opened.withLock({ $0?.identity }) else { return nil }
    return "ondol_" + identity.text
  }

  // MARK: - For others

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
    // One that is about to ring tells of this, too.
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

  /// False when there is nothing to wait for.
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
    // Whoever is not told asks by itself.
    _ = try? link.use(.hasty) { connection throws(PostgresFailure) in
      _ = try connection.run(.notify, parameters)
    }
    times.nextBell = .now + Self.bellPause
  }

  private func askForNewest(_ times: inout Times) {
    // Before it is asked: what is shown later may be later than the answer.
    let asking = state.withLock { $0.waiters }
    guard times.nextQuestion <= .now, !asking.isEmpty,
      let opened = settings.opened.withLock({ $0 })
    else { return }
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
    let longest =
      isListening.isSet.load(ordering: .relaxed) || head == nil
      ? Self.pauses.listening : Self.pauses.deaf
    times.pause = isNew ? Self.pauses.first : min(times.pause * 2, longest)
    times.nextQuestion = .now + times.pause
  }

  private func noteReach(isAway: Bool) {
    let observer = state.withLock { state in
      defer { state.isAway = isAway }
      return state.isAway == isAway ? nil : state.reachObserver
    }
    observer?(isAway)
  }

  /// Tells those who wait that the server does not have what is shown where they do.
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

  /// When there is something to be done though nobody says so.
  private func nextMoment(_ times: Times) -> ContinuousClock.Instant {
    state.withLock { state in
      var moment = ContinuousClock.now + .seconds(3600)
      if state.bell != nil { moment = min(moment, times.nextBell) }
      if !state.waiters.isEmpty { moment = min(moment, times.nextQuestion) }
      for waiter in state.waiters.values { moment = min(moment, waiter.deadline) }
      return moment
    }
  }
}
