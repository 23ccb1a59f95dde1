// State behind a lock. One place decides which lock: `Synchronization.Mutex` everywhere, but a
// pthread mutex under ThreadSanitizer, which does not see through the former on Linux and reports
// races that are none.

#if THREAD_SANITIZER
  import OndolPlatform

  /// A value that only one thread at a time can touch.
  @safe package final class Guarded<State: ~Copyable>: @unchecked Sendable {
    // Safe: `state` is only touched between lock and unlock, and `lock` lives as long as this.
    private var state: State
    private let lock: UnsafeMutablePointer<pthread_mutex_t>

    package init(_ state: consuming sending State) {
      self.state = state
      unsafe lock = UnsafeMutablePointer.allocate(capacity: 1)
      unsafe pthread_mutex_init(lock, nil)
    }

    deinit {
      unsafe pthread_mutex_destroy(lock)
      unsafe lock.deallocate()
    }

    package func withLock<R: ~Copyable, E: Error>(
      _ body: (inout sending State) throws(E) -> sending R
    ) throws(E) -> sending R {
      unsafe pthread_mutex_lock(lock)
      defer { unsafe pthread_mutex_unlock(lock) }
      return try body(&state)
    }
  }
#else
  import Synchronization

  /// A value that only one thread at a time can touch.
  package final class Guarded<State: ~Copyable>: Sendable {
    private let mutex: Mutex<State>

    package init(_ state: consuming sending State) {
      mutex = Mutex(state)
    }

    package func withLock<R: ~Copyable, E: Error>(
      _ body: (inout sending State) throws(E) -> sending R
    ) throws(E) -> sending R {
      try mutex.withLock(body)
    }
  }
#endif
