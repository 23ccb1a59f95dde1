// A thread for calls that block. The cooperative pool has as many threads as cores, and two calls
// that sleep in the kernel stop every task of the program; here they stop nobody.

internal import COndol
internal import OndolPlatform

/// Makes real threads, one for each worker.
package struct IOThreads: ThreadSource {
  package init() {}

  package func makeWorker(named name: String, for work: WorkKind) -> any Worker {
    IOThread(named: name, yields: work == .merges || work == .checks)
  }
}

/// A thread that runs jobs in the order given. It starts with the first job and ends with `stop()`,
/// or when nobody has it any more. Where the system has no thread to give, whoever hands in a job
/// runs it, and those that come meanwhile; the next one tries for a thread again.
package final class IOThread: Worker {
  /// What the thread and its owner share. The thread holds on to this and not to the owner, so that
  /// the owner can go and take the thread with it.
  @safe
  private final class Queue: @unchecked Sendable {
    // Safe: everything below is touched between lock and unlock only.
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

    /// Adds a job; true when a thread must be started for it.
    func add(_ job: @escaping @Sendable () -> Void) -> Bool {
      unsafe pthread_mutex_lock(mutex)
      jobs.append(job)
      let wasRunning = isRunning
      if !wasRunning {
        isRunning = true
        isStopped = false
      }
      unsafe pthread_mutex_unlock(mutex)
      // With the lock held the thread would wake up only to wait for that.
      if wasRunning { unsafe pthread_cond_signal(condition) }
      return !wasRunning
    }

    /// Adds a job if the thread runs; false otherwise.
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

    /// Runs jobs: the thread's life, until it is stopped and none is left; or those there are, in
    /// the place of a thread that could not be made.
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
  /// Whether the thread gets what others leave of the processor.
  private let yields: Bool
  private let makeThread: MakeThread
  private let queue = Queue()

  /// Has a new thread run what it is given; the failure's number where there is none to be had.
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

  /// Has the thread that calls it sleep for so long, or less.
  static func rest(microseconds: Int64) {
    var time = timespec(tv_sec: 0, tv_nsec: Int(microseconds) * 1000)
    // Waking early does no harm.
    _ = unsafe nanosleep(&time, nil)
  }

  package func stop() async {
    await withCheckedContinuation { continuation in
      // A thread that never ran, or has ended, is not started just to end it.
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

  /// Has a thread of the system's do it.
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

  /// What a new thread does.
  final class ThreadArgument {
    let name: String
    let body: () -> Void

    init(name: String, body: @escaping () -> Void) {
      self.name = name
      self.body = body
    }
  }
}
