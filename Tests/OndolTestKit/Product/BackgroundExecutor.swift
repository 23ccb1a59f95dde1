// One thread for all background tasks of the databases on simulated devices. It knows when none of
// them can continue, which lets a test move the clock and then find the work done.

internal import OndolEngine

/// Runs tasks one after another, and reports when there is nothing to run.
final class BackgroundExecutor: TaskExecutor {
  fileprivate struct State: Sendable {
    /// Jobs that wait or run, and one for the tasks that are being woken.
    var pending = 0
    var waiters: [CheckedContinuation<Void, Never>] = []
    /// The tasks to notify when nothing runs and nothing waits for that, so that nothing ever will
    /// run.
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Guarded(State())
  private let thread = IOThreads().makeWorker(named: "ondol-test")

  func enqueue(_ job: consuming ExecutorJob) {
    // Unowned, because a closure cannot capture a job that must be consumed. It runs once, here.
    let job = UnownedJob(job)
    state.withLock { $0.pending += 1 }
    thread.enqueue { [self] in
      unsafe job.runSynchronously(on: asUnownedTaskExecutor())
      end()
    }
  }

  private func end() {
    wake { $0.pending -= 1 }
  }

  /// Changes the state and resumes the tasks that have waited for that. Until they resume they
  /// count as pending, because a check in between would find that nothing runs.
  private func wake(after change: (inout State) -> Void) {
    var woken = state.withLock { state in
      change(&state)
      return state.takeWoken()
    }
    while !woken.isEmpty {
      for waiter in woken { waiter.resume() }
      woken = state.withLock { state in
        state.pending -= 1
        return state.takeWoken()
      }
    }
  }

  /// Waits until every task has ended or waits for something else.
  func waitUntilIdle() async {
    await withCheckedContinuation { waiter in
      let isIdle = state.withLock { state in
        if state.pending == 0 { return true }
        state.waiters.append(waiter)
        return false
      }
      if isIdle { waiter.resume() }
    }
  }

  /// Waits until nothing runs or will run. Other waiting tasks resume first.
  func waitUntilStill() async {
    await withCheckedContinuation { watcher in
      wake { $0.watchers.append(watcher) }
    }
  }
}

extension BackgroundExecutor.State {
  /// Returns the tasks that resume now that the last job has ended.
  fileprivate mutating func takeWoken() -> [CheckedContinuation<Void, Never>] {
    guard pending == 0 else { return [] }
    let woken = waiters.isEmpty ? watchers : waiters
    if waiters.isEmpty { watchers = [] } else { waiters = [] }
    if !woken.isEmpty { pending += 1 }
    return woken
  }
}
