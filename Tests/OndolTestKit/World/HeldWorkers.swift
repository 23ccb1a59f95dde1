// Threads that can be made to wait: while they are held, jobs queue up. With them a test stops an
// engine's file work at a chosen point and checks what the rest does in the meantime.

package import OndolEngine

/// Makes workers that run their jobs on threads of `base`, but none while they are held.
package final class HeldWorkers: ThreadSource {
  fileprivate struct State {
    var isHeld = false
    var waiting: [(any Worker, @Sendable () -> Void)] = []
  }

  private let base: any ThreadSource
  fileprivate let state = Guarded(State())

  package init(_ base: any ThreadSource = IOThreads()) {
    self.base = base
  }

  package func makeWorker(named name: String, for work: WorkKind) -> any Worker {
    HeldWorker(base.makeWorker(named: name, for: work), of: self)
  }

  /// From now on jobs wait.
  package func hold() {
    state.withLock { $0.isHeld = true }
  }

  /// Whether a job waits.
  package var hasWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }

  /// Lets all jobs run, waiting ones first.
  package func release() {
    state.withLock { state in
      state.isHeld = false
      for (worker, job) in state.waiting { worker.enqueue(job) }
      state.waiting = []
    }
  }
}

private final class HeldWorker: Worker {
  private let worker: any Worker
  private let source: HeldWorkers

  init(_ worker: any Worker, of source: HeldWorkers) {
    self.worker = worker
    self.source = source
  }

  func enqueue(_ job: @escaping @Sendable () -> Void) {
    source.state.withLock { state in
      if state.isHeld { state.waiting.append((worker, job)) } else { worker.enqueue(job) }
    }
  }

  func stop() async {
    await worker.stop()
  }
}
