// Work that nobody waits for has an owner here, so that closing can wait for it and nothing
// outlives the database. The only unstructured tasks of the engine are made in this file.

/// Work that was started, for whoever may want it to end early.
package struct BackgroundTask: Sendable {
  fileprivate let task: Task<Void, Never>

  /// Cancels the work's task.
  package func cancel() {
    task.cancel()
  }
}

/// Tasks that run beside their maker.
final class BackgroundTasks: Sendable {
  private struct State {
    var running: [Int: Task<Void, Never>] = [:]
    var next = 0
    var isFinished = false

    /// The tasks as they were started: what is cancelled wakes in this order, and a simulation is
    /// to be the same each time.
    var inOrder: [Task<Void, Never>] { running.sorted { $0.key < $1.key }.map(\.value) }
  }

  private let state = Guarded(State())
  private let executor: (any TaskExecutor)?

  /// Tasks prefer `executor`, which a simulation gives to order them by its seed.
  init(executor: (any TaskExecutor)?) {
    self.executor = executor
  }

  /// Starts `work`; nil when all is over.
  @discardableResult
  func start(_ work: @escaping @Sendable () async -> Void) -> BackgroundTask? {
    state.withLock { state in
      guard !state.isFinished else { return nil }
      let number = state.next
      state.next += 1
      let task = Task(executorPreference: executor) { [weak self] in
        await work()
        self?.end(number)
      }
      state.running[number] = task
      return BackgroundTask(task: task)
    }
  }

  private func end(_ number: Int) {
    state.withLock { _ = $0.running.removeValue(forKey: number) }
  }

  /// Cancels what runs, and waits for nothing.
  func cancel() {
    for task in state.withLock({ $0.inOrder }) { task.cancel() }
  }

  /// Starts nothing more, wakes what sleeps, and waits for what runs.
  func finish() async {
    let tasks = state.withLock { state in
      state.isFinished = true
      return state.inOrder
    }
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }
}
