// A thread for blocking calls. The cooperative pool has as many threads as cores, and two calls
// that sleep in the kernel would stop every task of the program. Here they stop no other work.

internal import COndol
internal import OndolPlatform

/// Creates real threads, one for each worker.
package struct IOThreads: ThreadSource {
  package init() {}

  package func makeWorker(named name: String, for work: WorkKind) -> any Worker {
    IOThread(named: name, yields: work == .merges || work == .checks)
  }
}

/// A thread that runs jobs in the given order. It starts with the first job and ends with `stop()`,
/// or when it is no longer referenced. If the system cannot provide a thread, the caller that adds
/// a job runs it and the jobs that arrive meanwhile. The next caller tries again to get a thread.
package final class IOThread: Worker {
  /// The state shared by the thread and its owner. The thread refers to this object and not to the
  /// owner, so that the thread ends when the owner is released.
  @safe
  private final class Queue: @unchecked Sendable {
    // Safe: everything below is accessed only between lock and unlock.
    private var jobs: [@Sendable () -> Void] = []
    private var isStopped = false
    private var isRunning = false
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    init() {
      unsafe mutex = .allocate(capacity: 1)
      unsafe condition = .allocate(capacity: 1)
      unsafe pthread_mutex_init(mutex, nil)
      unsafe pthread_cond_init(condition, nil)
    }

    deinit {
      unsafe pthread_cond_destroy(condition)
      unsafe pthread_mutex_destroy(mutex)
      unsafe condition.deallocate()
      unsafe mutex.deallocate()
    }

    /// Adds a job. Returns true if a thread must be started for it.
    func add(_ job: @escaping @Sendable () -> Void) -> Bool {
      unsafe pthread_mutex_lock(mutex)
      jobs.append(job)
      let wasRunning = isRunning
      if !wasRunning {
        isRunning = true
        isStopped = false
      }
      unsafe pthread_mutex_unlock(mutex)
      // With the lock held, the thread would wake up only to wait for it.
      if wasRunning { unsafe pthread_cond_signal(condition) }
      return !wasRunning
    }

    /// Adds a job if the thread is running, otherwise returns false.
    func addWhileRunning(_ job: @escaping @Sendable () -> Void) -> Bool {
      unsafe pthread_mutex_lock(mutex)
      defer { unsafe pthread_mutex_unlock(mutex) }
      guard isRunning else { return false }
      jobs.append(job)
      unsafe pthread_cond_signal(condition)
      return true
    }

    func stop() {
      unsafe pthread_mutex_lock(mutex)
      isStopped = true
      unsafe pthread_cond_signal(condition)
      unsafe pthread_mutex_unlock(mutex)
    }

    /// Runs jobs. It is the body of the thread, until the thread is stopped and no job is left. If
    /// no thread could be created, it runs the existing jobs instead.
    func run(waits: Bool) {
      while true {
        unsafe pthread_mutex_lock(mutex)
        while waits, jobs.isEmpty, !isStopped { unsafe pthread_cond_wait(condition, mutex) }
        let batch = jobs
        jobs = []
        if batch.isEmpty { isRunning = false }
        unsafe pthread_mutex_unlock(mutex)
        if batch.isEmpty { return }
        for job in batch { job() }
      }
    }
  }

  private let name: String
  /// Whether the thread runs only when the processor is otherwise idle.
  private let yields: Bool
  private let makeThread: MakeThread
  private let queue = Queue()

  /// Starts a new thread with this argument. Returns the error number if that is impossible.
  typealias MakeThread = @Sendable (ThreadArgument) -> CInt

  init(
    named name: String, yields: Bool = false, makeThread: @escaping MakeThread = IOThread.detach
  ) {
    self.name = name
    self.yields = yields
    self.makeThread = makeThread
  }

  deinit {
    queue.stop()
  }

  package func enqueue(_ job: @escaping @Sendable () -> Void) {
    if queue.add(job) { start() }
  }

  package func pause(microseconds: Int64) { Self.rest(microseconds: microseconds) }

  /// Makes the calling thread sleep for this long, or less.
  static func rest(microseconds: Int64) {
    var time = timespec(tv_sec: 0, tv_nsec: Int(microseconds) * 1000)
    // Waking early does no harm.
    _ = unsafe nanosleep(&time, nil)
  }

  package func stop() async {
    await withCheckedContinuation { continuation in
      // A thread that never ran, or has ended, is not started merely to end it.
      if !queue.addWhileRunning({ continuation.resume() }) { continuation.resume() }
    }
    queue.stop()
  }

  private func start() {
    let (queue, yields) = (queue, yields)
    let argument = ThreadArgument(name: name) {
      if yields { ondol_lower_priority() }
      queue.run(waits: true)
    }
    if makeThread(argument) != 0 { queue.run(waits: false) }
  }

  /// Starts a detached thread of the system.
  static func detach(_ argument: ThreadArgument) -> CInt {
    let argument = unsafe Unmanaged.passRetained(argument)
    #if canImport(Darwin)
      var thread: pthread_t?
    #else
      var thread = pthread_t()
    #endif
    let failure = unsafe pthread_create(
      &thread, nil,
      { raw in
        #if !canImport(Darwin)
          guard let raw = unsafe raw else { return nil }
        #endif
        let argument = unsafe Unmanaged<ThreadArgument>.fromOpaque(raw).takeRetainedValue()
        unsafe ondol_name_thread(argument.name)
        argument.body()
        return nil
      }, argument.toOpaque())
    guard failure == 0 else {
      // Safe: no thread has it.
      unsafe argument.release()
      return failure
    }
    #if canImport(Darwin)
      if let thread = unsafe thread { unsafe pthread_detach(thread) }
    #else
      pthread_detach(thread)
    #endif
    return 0
  }

  /// The argument of a new thread.
  final class ThreadArgument {
    let name: String
    let body: () -> Void

    init(name: String, body: @escaping () -> Void) {
      self.name = name
      self.body = body
    }
  }
}
