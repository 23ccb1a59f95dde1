// Decides, from a seed, what runs next. Tasks with this executor, the default actors they call and
// the workers it makes all wait in its hands; it lets one step run at a time, on the thread that
// called `run`. The same seed gives the same interleaving, another seed another one. What escapes
// it: unstructured tasks, actors with an executor of their own, and threads.

package import OndolEngine

package final class SimulationExecutor: TaskExecutor {
  /// Why a run ended without a result.
  package struct Stalled: Error, CustomStringConvertible {
    package var steps: Int

    package var description: String {
      "after \(steps) steps nothing can run, and the task has not ended: it waits for something "
        + "that is not part of the simulation, or for ever"
    }
  }

  /// Something that can run now.
  private enum Step {
    case job(ExecutorJobBox)
    case work(@Sendable () -> Void)
    case waking(CheckedContinuation<Void, Never>)
  }

  private struct State {
    var random: SeededRandom
    var jobs: [ExecutorJobBox] = []
    var queues: [[@Sendable () -> Void]] = []
    var dozing: [CheckedContinuation<Void, Never>] = []
    var steps = 0
    /// What is to happen before a step.
    var alarm: (step: Int, action: @Sendable () -> Void)?

    /// The alarm, when its step has come.
    mutating func takeAlarm() -> (@Sendable () -> Void)? {
      guard let due = alarm, steps >= due.step else { return nil }
      alarm = nil
      return due.action
    }

    mutating func nextStep() -> Step? {
      let busy = queues.indices.filter { !queues[$0].isEmpty }
      let choices = jobs.count + busy.count
      guard choices + dozing.count > 0 else { return nil }
      steps += 1
      // Time passes when nothing else happens, and now and then while it does.
      if !dozing.isEmpty, choices == 0 || random.below(32) == 0 {
        return .waking(dozing.remove(at: random.below(dozing.count)))
      }
      let choice = random.below(choices)
      if choice < jobs.count {
        return .job(jobs.remove(at: choice))
      }
      return .work(queues[busy[choice - jobs.count]].removeFirst())
    }
  }

  private let state: Guarded<State>

  package init(seed: UInt64) {
    state = Guarded(State(random: SeededRandom(seed: seed)))
  }

  /// Runs `body` to its end, one step at a time, and everything it starts.
  package static func run<Success: Sendable>(
    seed: UInt64, _ body: @escaping @Sendable (SimulationExecutor) async throws -> Success
  ) throws -> Success {
    let executor = SimulationExecutor(seed: seed)
    return try executor.run { try await body(executor) }
  }

  package func run<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) throws -> Success {
    let result = Guarded<Result<Success, any Error>?>(nil)
    Task(executorPreference: self) {
      do {
        let success = try await body()
        result.withLock { $0 = .success(success) }
      } catch {
        result.withLock { $0 = .failure(error) }
      }
    }
    while let step = state.withLock({ $0.nextStep() }) {
      state.withLock { $0.takeAlarm() }?()
      switch step {
      case .job(let box): box.run(on: self)
      case .work(let job): job()
      case .waking(let sleeper): sleeper.resume()
      }
    }
    guard let result = result.withLock({ $0 }) else {
      throw Stalled(steps: state.withLock { $0.steps })
    }
    return try result.get()
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let box = ExecutorJobBox(job)
    state.withLock { $0.jobs.append(box) }
  }

  /// Waits until the executor lets time pass. Whoever is cancelled meanwhile wakes like everybody.
  package func doze() async {
    await withCheckedContinuation { sleeper in
      state.withLock { $0.dozing.append(sleeper) }
    }
  }

  /// Has something happen so many steps from now; it must not wait.
  package func after(steps: Int, _ action: @escaping @Sendable () -> Void) {
    state.withLock { $0.alarm = ($0.steps + steps, action) }
  }

  /// Steps so far.
  package var steps: Int { state.withLock { $0.steps } }
}

/// A job waiting for its turn; jobs themselves cannot be kept in an array.
private final class ExecutorJobBox: Sendable {
  private let job: Guarded<ExecutorJob?>

  init(_ job: consuming ExecutorJob) {
    self.job = Guarded(job)
  }

  func run(on executor: SimulationExecutor) {
    guard let job = job.withLock({ $0.take() }) else { return }
    // Safe: the caller holds the executor for as long as the job runs.
    unsafe job.runSynchronously(on: executor.asUnownedTaskExecutor())
  }
}

// MARK: - Workers

extension SimulationExecutor: ThreadSource {
  package func makeWorker(named name: String) -> any Worker {
    let queue = state.withLock { state in
      state.queues.append([])
      return state.queues.count - 1
    }
    return SimulatedWorker(queue: queue, of: self)
  }

  fileprivate func enqueue(_ job: @escaping @Sendable () -> Void, on queue: Int) {
    state.withLock { $0.queues[queue].append(job) }
  }
}

/// A thread whose jobs run in their order, between the steps of everything else.
private final class SimulatedWorker: Worker {
  private let queue: Int
  private let executor: SimulationExecutor

  init(queue: Int, of executor: SimulationExecutor) {
    self.queue = queue
    self.executor = executor
  }

  func enqueue(_ job: @escaping @Sendable () -> Void) {
    executor.enqueue(job, on: queue)
  }

  func stop() async {
    await perform {}
  }
}
