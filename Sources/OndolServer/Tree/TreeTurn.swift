// Turns of tasks that suspend in the middle of their work: an actor alone would let others in.

#if Server
  import Synchronization

  /// Lets one task at a time work, in the order in which they asked.
  final class TreeTurn: Sendable {
    private struct State: Sendable {
      var isTaken = false
      var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Returns when it is the caller's turn, which lasts until it gives it back.
    func take() async {
      await withCheckedContinuation { continuation in
        let isFree = state.withLock { state in
          guard state.isTaken else {
            state.isTaken = true
            return true
          }
          state.waiting.append(continuation)
          return false
        }
        if isFree { continuation.resume() }
      }
    }

    /// Ends the caller's turn.
    func give() {
      state.withLock { state -> CheckedContinuation<Void, Never>? in
        guard !state.waiting.isEmpty else {
          state.isTaken = false
          return nil
        }
        return state.waiting.removeFirst()
      }?.resume()
    }
  }
#endif
