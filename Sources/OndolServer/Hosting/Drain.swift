// Notifies streams of the server's shutdown. Calls end by themselves, but streams need the notice.

#if Server
  import GRPCCore
  import Ondol
  import Synchronization

  /// Whether the server is shutting down.
  final class Drain: Sendable {
    private struct State: Sendable {
      var hasBegun = false
      var next = 0
      var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Mutex(State())

    var hasBegun: Bool { state.withLock(\.hasBegun) }

    /// Notifies all waiting tasks.
    func begin() {
      let waiting = state.withLock { state in
        state.hasBegun = true
        defer { state.waiting = [:] }
        return state.waiting.values
      }
      for continuation in waiting { continuation.resume() }
    }

    /// Returns when the server shuts down or the task is cancelled.
    func wait() async {
      let number = state.withLock { state in
        state.next += 1
        return state.next
      }
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isOver = state.withLock { state in
            guard !state.hasBegun, !Task.isCancelled else { return true }
            state.waiting[number] = continuation
            return false
          }
          if isOver { continuation.resume() }
        }
      } onCancel: {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
      }
    }

    /// Runs a stream's work, in one task or in two concurrent ones, until the first of them ends.
    /// The stream ends with `.unavailable` when the server shuts down.
    func run(
      _ body: @escaping @Sendable () async throws -> Void,
      beside other: (@Sendable () async throws -> Void)? = nil
    ) async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await body() }
        if let other { group.addTask { try await other() } }
        group.addTask { [self] in
          await wait()
          try Task.checkCancellation()
          throw RPCError(code: .unavailable, message: "the server is shutting down")
        }
        defer { group.cancelAll() }
        try await group.next()
      }
    }
  }
#endif
