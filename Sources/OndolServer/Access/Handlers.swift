// Handlers of an event: a deployment of rules, for example. Streams register while they are open.

#if Server
  import Synchronization

  /// Handlers that are called together.
  final class Handlers: Sendable {
    /// Removes its handler with its last reference.
    final class Registration: Sendable {
      private let end: @Sendable () -> Void

      fileprivate init(_ end: @escaping @Sendable () -> Void) {
        self.end = end
      }

      deinit {
        end()
      }
    }

    private struct State: Sendable {
      var next = 0
      var handlers: [Int: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())

    var isEmpty: Bool { state.withLock(\.handlers.isEmpty) }

    /// Adds a handler until the returned object is released.
    func add(_ body: @escaping @Sendable () -> Void) -> Registration {
      let number = state.withLock { state in
        state.next += 1
        state.handlers[state.next] = body
        return state.next
      }
      return Registration { [weak self] in
        self?.state.withLock { _ = $0.handlers.removeValue(forKey: number) }
      }
    }

    func call() {
      for handler in state.withLock({ Array($0.handlers.values) }) { handler() }
    }
  }
#endif
