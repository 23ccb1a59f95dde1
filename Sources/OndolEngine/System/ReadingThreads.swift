// The threads for reads that wait for files: a few, so that the device has several reads to do at
// once, and so that a short read never stands behind a long one.
//
// Nobody knows beforehand how long a read will take, so every read begins as a short one. One that
// goes on for longer than its allowance is a long one from there on, and only so many long reads
// run at once that threads are left for short ones. Where there are more, they take turns: a read
// whose allowance is used up while others wait is given up, goes to the end of the line, and is
// begun again from the beginning with twice the allowance. That is sound because a read changes
// nothing; it had to be possible anyway, since a read that finds a block missing is begun again
// here. What is done twice is at most as much as what is done once.
//
// A read whose task is cancelled ends at its next step, or before it has begun.

internal import Synchronization

/// Runs reads that block.
package final class ReadingThreads: Sendable {
  /// Enough to keep a device busy, and few enough to be had at once.
  package static let count = 8
  /// Long reads that run at once.
  package static let mostLong = 6

  fileprivate struct Job: Sendable {
    let turn: ReadingTurn
    /// False when it was given up and is to be begun again.
    let run: @Sendable () -> Bool
  }

  fileprivate struct State: Sendable {
    /// Made when they are first needed.
    var workers: [any Worker] = []
    var idle: [Int] = []
    var short = Line<Job>()
    var long = Line<Job>()
    var longRunning = 0
    var stopping: [CheckedContinuation<Void, Never>] = []
  }

  private let threads: any ThreadSource
  private let state = Guarded(State())
  /// How long reads that wait for a server are waited for; set before the first read.
  let patience = Guarded<Patience?>(nil)

  package init(_ threads: any ThreadSource) {
    self.threads = threads
  }

  /// As below, for a read that may wait for a server: whoever waits for it longer than calls are
  /// waited for, or is cancelled, gets `failure`.
  package func perform<R: Sendable, E: Error>(
    failingWith failure: @escaping @Sendable (EngineError) -> E,
    _ body: @escaping @Sendable (ReadingTurn) throws(E) -> R
  ) async throws(E) -> R {
    guard let patience = patience.withLock({ $0 }) else { return try await perform(body) }
    let waited = await patience.wait(cancelling: true) { [self] () async -> Result<R, E> in
      do throws(E) {
        return .success(try await perform(body))
      } catch {
        return .failure(error)
      }
    }
    switch waited {
    case .done(let result): return try result.get()
    case .late: throw failure(.late(reason: patience.words(for: "the server")))
    case .cancelled: throw failure(.cancelled)
    }
  }

  /// Runs `body` on one of the threads and gives back what it makes. It may be given up at a step
  /// of its turn and begun again. With the task, the turn is cancelled; what that comes to is up to
  /// `body`.
  package func perform<R: Sendable, E: Error>(
    _ body: @escaping @Sendable (ReadingTurn) throws(E) -> R
  ) async throws(E) -> R {
    let turn = ReadingTurn(on: self)
    let result: Result<R, E> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        add(
          Job(turn: turn) {
            let result: Result<R, E>
            do throws(E) {
              result = .success(try body(turn))
            } catch {
              result = .failure(error)
            }
            if turn.takeGivenUp() { return false }
            self.showHandover()
            continuation.resume(returning: result)
            return true
          })
      }
    } onCancel: {
      turn.cancel()
    }
    showHandover()
    return try result.get()
  }

  /// Waits until all reads are done, and ends the threads.
  package func stop() async {
    await withCheckedContinuation { continuation in
      let isDone = state.withLock { state in
        if state.isAtRest { return true }
        state.stopping.append(continuation)
        return false
      }
      if isDone { continuation.resume() }
    }
    for worker in state.withLock({ $0.workers }) { await worker.stop() }
  }

  // MARK: - Taking turns

  /// Whether a read that has used up its allowance may go on: as a long one, when there is room for
  /// one more, and as long as nobody else waits.
  fileprivate func mayGoOn(_ turn: ReadingTurn) -> Bool {
    state.withLock { state in
      if turn.isLong { return state.long.isEmpty }
      if state.longRunning < Self.mostLong, state.long.isEmpty {
        state.longRunning += 1
        turn.becomeLong()
        return true
      }
      return state.short.isEmpty && state.long.isEmpty
    }
  }

  /// Shows ThreadSanitizer that what was made before a continuation was resumed comes before what
  /// its task does: it does not see that of a continuation resumed before its task had suspended.
  private func showHandover() {
    #if THREAD_SANITIZER
      state.withLock { _ in }
    #endif
  }

  private func add(_ job: Job) {
    let awakened = state.withLock { [threads] state -> (any Worker, Int)? in
      state.short.append(job)
      if let place = state.idle.popLast() { return (state.workers[place], place) }
      guard state.workers.count < Self.count else { return nil }
      let place = state.workers.count
      state.workers.append(threads.makeWorker(named: "ondol-reads-\(place)"))
      return (state.workers[place], place)
    }
    if let (worker, place) = awakened { runNext(on: worker, place) }
  }

  /// Has a worker run what comes next, one job after the other; each is a job of the worker's, so
  /// that whoever simulates threads can put something between them.
  private func runNext(on worker: any Worker, _ place: Int) {
    worker.enqueue { [self] in
      guard let job = next(for: place) else { return }
      finish(job, isDone: job.run())
      runNext(on: worker, place)
    }
  }

  /// The next job; the worker is idle when there is none.
  private func next(for place: Int) -> Job? {
    let (job, waiting) = state.withLock { state -> (Job?, [CheckedContinuation<Void, Never>]) in
      if let job = state.takeNext() { return (job, []) }
      state.idle.append(place)
      guard state.isAtRest else { return (nil, []) }
      defer { state.stopping = [] }
      return (nil, state.stopping)
    }
    for continuation in waiting { continuation.resume() }
    return job
  }

  private func finish(_ job: Job, isDone: Bool) {
    state.withLock { state in
      if job.turn.isLong { state.longRunning -= 1 }
      guard !isDone else { return }
      job.turn.beginAgain()
      state.long.append(job)
    }
  }
}

extension ReadingThreads.State {
  var isAtRest: Bool { idle.count == workers.count && short.isEmpty && long.isEmpty }

  /// Short reads go first, but never keep all long ones from running.
  mutating func takeNext() -> ReadingThreads.Job? {
    if longRunning > 0 || long.isEmpty, let job = short.popFirst() { return job }
    guard longRunning < ReadingThreads.mostLong, let job = long.popFirst() else { return nil }
    longRunning += 1
    job.turn.becomeLong()
    return job
  }
}

/// One read's use of the threads.
package final class ReadingTurn: Sendable {
  /// Steps after which a read is a long one.
  private static let shortAllowance = 16

  private let threads: ReadingThreads
  private let isCancelled = Atomic(false)
  private let isGivenUp = Atomic(false)
  private let isLongRead = Atomic(false)
  private let allowance = Atomic(ReadingTurn.shortAllowance)
  private let steps = Atomic(0)

  fileprivate init(on threads: ReadingThreads) {
    self.threads = threads
  }

  /// To be called by the read every some dozen rows.
  ///
  /// - Throws: `.wouldBlock` when others come first: the read ends, and is begun again.
  ///   `.cancelled` when its task was cancelled and it `canBeCancelled`.
  package func step(canBeCancelled: Bool) throws(EngineError) {
    if canBeCancelled, isCancelled.load(ordering: .relaxed) { throw .cancelled }
    let taken = steps.load(ordering: .relaxed) + 1
    steps.store(taken, ordering: .relaxed)
    guard taken >= allowance.load(ordering: .relaxed) else { return }
    steps.store(0, ordering: .relaxed)
    if threads.mayGoOn(self) { return }
    isGivenUp.store(true, ordering: .relaxed)
    throw .wouldBlock
  }

  fileprivate func cancel() { isCancelled.store(true, ordering: .relaxed) }

  /// Whether it was given up since the last call, whatever the read made of that.
  fileprivate func takeGivenUp() -> Bool {
    isGivenUp.exchange(false, ordering: .relaxed)
  }

  fileprivate var isLong: Bool { isLongRead.load(ordering: .relaxed) }

  fileprivate func becomeLong() { isLongRead.store(true, ordering: .relaxed) }

  /// Back to where it was before it began, with twice the allowance.
  fileprivate func beginAgain() {
    isLongRead.store(false, ordering: .relaxed)
    steps.store(0, ordering: .relaxed)
    let (doubled, overflows) = allowance.load(ordering: .relaxed).addingReportingOverflow(
      allowance.load(ordering: .relaxed))
    allowance.store(overflows ? .max : doubled, ordering: .relaxed)
  }
}

/// Those who wait, first come, first served. Who was taken out is held no longer: a read holds a
/// snapshot, and what it sees cannot be given up.
private struct Line<Element: Sendable>: Sendable {
  /// Who comes next, last first.
  private var front: [Element] = []
  /// Who came since `front` was filled.
  private var back: [Element] = []

  var isEmpty: Bool { front.isEmpty && back.isEmpty }

  mutating func append(_ element: Element) { back.append(element) }

  mutating func popFirst() -> Element? {
    if front.isEmpty {
      front = back.reversed()
      back = []
    }
    return front.popLast()
  }
}
