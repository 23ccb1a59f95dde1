// Decides, from a seed, what runs next. Tasks with this executor, the default actors that they call
// and the workers that it makes all wait for it. It lets one step run at a time, on the thread that
// called `run`. The same seed gives the same interleaving, another seed another one. Unstructured
// tasks, actors with an executor of their own, and threads escape it.
//
// A blocking call does not end a step, and yet others run in the meantime: the world's files call
// `interleave()` around every write, which runs some of their steps in the middle of one. If
// nothing is left to run and the task has not ended, something waits forever, and the executor
// names the declared waits.

package import OndolEngine

package final class SimulationExecutor: TaskExecutor {
  /// Why a run ended without a result.
  package struct Stalled: Error, CustomStringConvertible {
    package var steps: Int
    /// The named work that has begun and not ended, see `waiting(for:_:)`.
    package var unfinished: [String] = []

    package var description: String {
      let names = unfinished.isEmpty ? "" : "; not ended: " + unfinished.joined(separator: ", ")
      return "after \(steps) steps nothing can run, and the task has not ended: it waits for "
        + "something that is not part of the simulation, or for ever" + names
    }
  }

  /// Something that can run now.
  private enum Step {
    case job(ExecutorJobBox)
    case work(@Sendable () -> Void, queue: Int)
    case waking(CheckedContinuation<Void, Never>)
  }

  private struct State {
    var random: SeededRandom
    var jobs: [ExecutorJobBox] = []
    var queues: [[@Sendable () -> Void]] = []
    var dozing: [CheckedContinuation<Void, Never>] = []
    var steps = 0
    /// Workers in the middle of a job, which accept no other.
    var working: Set<Int> = []
    /// Steps under way, each in the middle of the one before.
    var depth = 0
    /// The planned action after a number of steps.
    var plan: (step: Int, action: @Sendable () -> Void)?
    var unfinished: [Int: String] = [:]
    var begun = 0

    /// A step in the middle of another, sometimes.
    mutating func interruption() -> Step? {
      guard (1...SimulationExecutor.mostDepth).contains(depth), random.chance(1, in: 3) else {
        return nil
      }
      let (asleep, before) = (dozing, steps)
      dozing = []
      defer { dozing = asleep }
      let step = nextStep()
      return steps > before ? step : nil
    }

    mutating func nextStep() -> Step? {
      let busy = queues.indices.filter { !queues[$0].isEmpty && !working.contains($0) }
      let choices = jobs.count + busy.count
      guard choices + dozing.count > 0 else { return nil }
      steps += 1
      // Time passes when nothing else happens, and sometimes while it does.
      if !dozing.isEmpty, choices == 0 || random.below(32) == 0 {
        return .waking(dozing.remove(at: random.below(dozing.count)))
      }
      let choice = random.below(choices)
      if choice < jobs.count {
        return .job(jobs.remove(at: choice))
      }
      let queue = busy[choice - jobs.count]
      return .work(queues[queue].removeFirst(), queue: queue)
    }
  }

  private let state: Guarded<State>

  package init(seed: UInt64) {
    state = Guarded(State(random: SeededRandom(seed: seed)))
  }

  /// Runs `body` to its end, one step at a time, and everything that it starts.
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
    while let step = state.withLock({ $0.nextStep() }) { take(step) }
    guard let result = result.withLock({ $0 }) else {
      throw state.withLock { state in
        Stalled(
          steps: state.steps,
          unfinished: state.unfinished.sorted { $0.key < $1.key }.map(\.value))
      }
    }
    return try result.get()
  }

  private func take(_ step: Step) {
    let action = state.withLock { state -> (@Sendable () -> Void)? in
      state.depth += 1
      guard let plan = state.plan, state.steps >= plan.step else { return nil }
      state.plan = nil
      return plan.action
    }
    action?()
    switch step {
    case .job(let box): box.run(on: self)
    case .work(let job, let queue):
      state.withLock { _ = $0.working.insert(queue) }
      job()
      state.withLock { _ = $0.working.remove(queue) }
    case .waking(let sleeper): sleeper.resume()
    }
    state.withLock { $0.depth -= 1 }
  }

  /// The largest number of nested steps.
  fileprivate static let mostDepth = 3

  /// Lets others take some steps now, as they do while a call blocks. The caller must hold no lock.
  package func interleave() {
    while let step = state.withLock({ $0.interruption() }) { take(step) }
  }

  /// Runs `action` before the step after this many.
  package func plan(after steps: Int, _ action: @escaping @Sendable () -> Void) {
    state.withLock { $0.plan = ($0.steps + steps, action) }
  }

  /// Whether the planned action has run.
  package var isPlanDone: Bool { state.withLock { $0.plan == nil } }

  /// Runs `work` under a name, which the executor reports if the work never ends.
  package func waiting<R, E: Error>(
    for name: String, _ work: () async throws(E) -> R
  ) async throws(E) -> R {
    let number = state.withLock { state in
      state.begun += 1
      state.unfinished[state.begun] = name
      return state.begun
    }
    defer { state.withLock { $0.unfinished[number] = nil } }
    return try await work()
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let box = ExecutorJobBox(job)
    state.withLock { $0.jobs.append(box) }
  }

  /// Waits until the executor lets time pass. Cancelled tasks wake like all others.
  package func doze() async {
    await withCheckedContinuation { sleeper in
      state.withLock { $0.dozing.append(sleeper) }
    }
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
  package func makeWorker(named name: String, for work: WorkKind) -> any Worker {
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

/// A thread whose jobs run in order, between the steps of everything else.
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
