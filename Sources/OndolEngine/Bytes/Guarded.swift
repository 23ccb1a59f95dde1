// State protected by a lock. One place selects the lock: `Synchronization.Mutex` everywhere, except
// under ThreadSanitizer, which does not understand that lock on Linux and reports false races.
// There it is a pthread mutex.

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

  /// A value that only one thread at a time can access.
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
