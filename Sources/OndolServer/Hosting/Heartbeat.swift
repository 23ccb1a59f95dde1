// The heartbeat of a served database. It makes streams on which nothing happens look up now and
// then.

#if Server
  import Ondol
  import Synchronization

  /// Calls handlers at regular intervals, as long as there are any.
  final class Heartbeat: Sendable {
    /// Microseconds between two calls.
    private static let pause: Int64 = 60_000_000

    private let database: Database
    private let handlers = Handlers()
    private let isRunning = Mutex(false)

    init(_ database: Database) {
      self.database = database
    }

    /// Adds a handler until the returned object is released.
    func add(_ body: @escaping @Sendable () -> Void) -> Handlers.Registration {
      let registration = handlers.add(body)
      let starts = isRunning.withLock { isRunning in
        defer { isRunning = true }
        return !isRunning
      }
      if starts {
        database.repeatInBackground(every: Self.pause) { [weak self] in self?.beat() ?? false }
      }
      return registration
    }

    /// Returns whether there are any handlers.
    private func beat() -> Bool {
      handlers.call()
      return isRunning.withLock { isRunning in
        isRunning = !handlers.isEmpty
        return isRunning
      }
    }
  }
#endif
