// Workers without threads: a worker's jobs run on the thread that enqueues them, before `enqueue`
// returns. With them a database in a test does everything in one fixed order, if its tasks do.

package import OndolEngine

/// Makes workers that run each job at once.
package struct InlineWorkers: ThreadSource {
  package init() {}

  package func makeWorker(named name: String, for work: WorkKind) -> any Worker {
    InlineWorker()
  }
}

private final class InlineWorker: Worker {
  private struct State {
    var jobs: [@Sendable () -> Void] = []
    var isRunning = false
  }

  private let state = Guarded(State())

  /// A job that enqueues another one sees it run after itself, as on a thread.
  func enqueue(_ job: @escaping @Sendable () -> Void) {
    let mustRun = state.withLock { state in
      state.jobs.append(job)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    guard mustRun else { return }
    while let next = takeNext() {
      next()
    }
  }

  private func takeNext() -> (@Sendable () -> Void)? {
    state.withLock { state in
      guard !state.jobs.isEmpty else {
        state.isRunning = false
        return nil
      }
      return state.jobs.removeFirst()
    }
  }

  func stop() async {}
}
