// One thread for all background tasks of the databases on simulated devices, which knows when none
// of them can go on. That is what lets a test move the clock and find the work done.

internal import OndolEngine

/// Runs tasks one after the other, and tells when there is nothing to run.
final class BackgroundExecutor: TaskExecutor {
  fileprivate struct State: Sendable {
    /// Jobs that wait or run, and one for those who are just being woken.
    var pending = 0
    var waiters: [CheckedContinuation<Void, Never>] = []
    /// Who is told when nothing runs and nobody waits for that, so that nothing ever will.
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Guarded(State())
  private let thread = IOThreads().makeWorker(named: "ondol-test")

  func enqueue(_ job: consuming ExecutorJob) {
    // Unowned, because a job that must be consumed cannot be captured; it is run once, here.
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

  /// Changes the state and has those go on who have waited for that. Until they do they count as
  /// pending: somebody who asked in between would find that nothing runs.
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

  /// Waits until nothing runs, nor will: whoever waits for that goes on first.
  func waitUntilStill() async {
    await withCheckedContinuation { watcher in
      wake { $0.watchers.append(watcher) }
    }
  }
}

extension BackgroundExecutor.State {
  /// Who goes on now that the last job has ended.
  fileprivate mutating func takeWoken() -> [CheckedContinuation<Void, Never>] {
    guard pending == 0 else { return [] }
    let woken = waiters.isEmpty ? watchers : waiters
    if waiters.isEmpty { watchers = [] } else { waiters = [] }
    if !woken.isEmpty { pending += 1 }
    return woken
  }
}
