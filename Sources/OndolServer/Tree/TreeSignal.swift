// Wakes one task that waits for a change. The notifier does not wait, so it can notify on a
// writer's thread.

#if Server
  import Synchronization

  /// A flag that a task waits for.
  final class TreeSignal: Sendable {
    private struct State: Sendable {
      var isSet = false
      var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    /// Sets the flag.
    func notify() {
      state.withLock { state in
        defer { state.waiter = nil }
        state.isSet = state.waiter == nil
        return state.waiter
      }?.resume()
    }

    /// Returns once the flag is set, and clears it, or when the task is cancelled. Only one task
    /// may wait.
    func wait() async {
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isOver = state.withLock { state in
            if state.isSet || Task.isCancelled {
              state.isSet = false
              return true
            }
            state.waiter = continuation
            return false
          }
          if isOver { continuation.resume() }
        }
      } onCancel: {
        state.withLock { state in
          defer { state.waiter = nil }
          return state.waiter
        }?.resume()
      }
    }

    /// Like `wait()`, but not longer than that. Returns whether it was not the time that ran out.
    func wait(atMost duration: Duration) async -> Bool {
      await withTaskGroup(of: Bool.self) { group in
        group.addTask { [self] in
          await wait()
          return true
        }
        group.addTask {
          (try? await Task.sleep(for: duration)) == nil
        }
        defer { group.cancelAll() }
        return await group.next() ?? false
      }
    }
  }
#endif
