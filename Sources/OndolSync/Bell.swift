// Wakes one waiting task. A ring that nobody waits for is kept for the next wait, so nothing that
// happens between two waits is missed.

#if Sync
  import OndolEngine

  /// A bell with one listener.
  final class Bell: Sendable {
    private struct State: Sendable {
      var isRung = false
      var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Guarded(State())

    func ring() {
      let waiting = state.withLock { state in
        state.isRung = state.waiting == nil
        return state.waiting.take()
      }
      waiting?.resume()
    }

    /// Waits until the bell rings or the task is cancelled.
    func wait() async {
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isOver = state.withLock { state in
            guard !state.isRung, !Task.isCancelled else {
              state.isRung = false
              return true
            }
            state.waiting = continuation
            return false
          }
          if isOver { continuation.resume() }
        }
      } onCancel: {
        state.withLock { $0.waiting.take() }?.resume()
      }
    }

    /// Waits until the bell rings or that many microseconds are over.
    func wait(atMost microseconds: Int64, in environment: Environment) async {
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await self.wait() }
        group.addTask { await environment.sleep(microseconds) }
        await group.next()
        group.cancelAll()
      }
    }
  }
#endif
