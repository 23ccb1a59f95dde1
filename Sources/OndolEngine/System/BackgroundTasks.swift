// Gives background work an owner, so that closing can wait for it and no work outlives the
// database. This file creates the engine's only unstructured tasks.

/// A handle to running work, for ending it early.
package struct BackgroundTask: Sendable {
  fileprivate let task: Task<Void, Never>

  /// Cancels the work's task.
  package func cancel() {
    task.cancel()
  }
}

/// Tasks that run independently of their creator.
final class BackgroundTasks: Sendable {
  private struct State {
    var running: [Int: Task<Void, Never>] = [:]
    var next = 0
    var isFinished = false

    /// The tasks in the order of their start. Cancelled tasks wake in this order, and a simulation
    /// must be the same each time.
    var inOrder: [Task<Void, Never>] { running.sorted { $0.key < $1.key }.map(\.value) }
  }

  private let state = Guarded(State())
  private let executor: (any TaskExecutor)?

  /// Tasks prefer `executor`, which a simulation supplies to order them by its seed.
  init(executor: (any TaskExecutor)?) {
    self.executor = executor
  }

  /// Starts `work`; returns nil if the owner has ended.
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

  /// Cancels running work without waiting for it.
  func cancel() {
    for task in state.withLock({ $0.inOrder }) { task.cancel() }
  }

  /// Prevents new work, wakes sleeping work, and waits for running work.
  func finish() async {
    let tasks = state.withLock { state in
      state.isFinished = true
      return state.inOrder
    }
    for task in tasks { task.cancel() }
    for task in tasks { await task.value }
  }
}
