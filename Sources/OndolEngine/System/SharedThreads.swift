// The threads of the process: however many databases are open, their blocking calls run on at most
// sixteen threads. Each kind of work has a lane with its own threads, so that a flush never delays
// a sync, and a backup never delays a flush:
//
//   syncs      3   logs and packs, for which commits wait
//   reads      6   what is not in memory, of which four at most are long (see ReadingLine)
//   contents   2   pieces of large contents, and memory touched ahead of a load
//   upkeep     2   flushes and edits of the manifest
//   merges     2   steps of merges, and checks, backups and salvage, of which one runs at a time
//   watch      1   where the system reports written files, see DirectoryWatch
//
// Within a lane, the databases take turns, job by job; see `JobQueues`.
//
// No job waits for another one. A job is synchronous work that makes system calls and takes locks
// that no thread holds while it waits for a job. Only tasks wait for jobs, and a waiting task
// occupies no thread. So lanes need no order, and no number of databases can occupy all threads and
// wait with them. Work that waits for an external party that may never answer, such as a server,
// has its own thread (`WorkKind.own`).

internal import COndol
internal import OndolPlatform
internal import Synchronization

/// The process's threads, as they are lent to databases.
package final class SharedThreads: ThreadSource {
  package static let process = SharedThreads()

  /// The most threads, whatever the number of open databases.
  package static let most = 16

  private let syncs = ThreadLane("ondol-sync", most: 3)
  private let contents = ThreadLane("ondol-content", most: 2)
  private let upkeep = ThreadLane("ondol-upkeep", most: 2)
  private let merges = ThreadLane("ondol-merge", most: 2, yields: true)
  private let reads = ReadingLine(IOThreads(), mostThreads: 6, mostLong: 4)

  init() {}

  /// The number of threads started so far, except the one that watches files. No thread ends.
  package var threadCount: Int {
    [syncs, contents, upkeep, merges].reduce(reads.threadCount) { $0 + $1.threadCount }
  }

  package var readingLine: ReadingLine? { reads }

  package func forDatabase() -> any ThreadSource { DatabaseShare(of: self) }

  /// For a user that shares no threads.
  package func makeWorker(named name: String, for work: WorkKind) -> any Worker {
    forDatabase().makeWorker(named: name, for: work)
  }

  fileprivate func makeWorker(
    named name: String, for work: WorkKind, of database: DatabaseTurn
  ) -> any Worker {
    let lane: ThreadLane
    switch work {
    case .syncs: lane = syncs
    case .contents: lane = contents
    case .upkeep: lane = upkeep
    case .merges, .checks: lane = merges
    case .own: return IOThread(named: name)
    }
    return LaneWorker(in: lane, of: database, isSlow: work == .checks)
  }
}

/// One database's share of the threads.
private struct DatabaseShare: ThreadSource {
  private let threads: SharedThreads
  private let database = DatabaseTurn.next()

  init(of threads: SharedThreads) {
    self.threads = threads
  }

  var readingLine: ReadingLine? { threads.readingLine }

  func makeWorker(named name: String, for work: WorkKind) -> any Worker {
    threads.makeWorker(named: name, for: work, of: database)
  }
}

extension DatabaseTurn {
  private static let last = Atomic<UInt64>(0)

  /// An unused identifier.
  static func next() -> DatabaseTurn {
    DatabaseTurn(rawValue: last.wrappingAdd(1, ordering: .relaxed).newValue)
  }
}

// MARK: - Workers

/// A queue in a lane. It has no thread, and uses no memory in the lane while it has no jobs.
final class LaneWorker: Worker {
  private static let last = Atomic<UInt64>(0)

  private let lane: ThreadLane
  private let queue: JobQueues<ThreadLane.Job>.Queue

  /// - Parameter isSlow: whether its jobs may take long; see `JobQueues`.
  init(in lane: ThreadLane, of database: DatabaseTurn, isSlow: Bool = false) {
    self.lane = lane
    queue = JobQueues.Queue(
      number: Self.last.wrappingAdd(1, ordering: .relaxed).newValue, database: database,
      isSlow: isSlow)
  }

  func enqueue(_ job: @escaping @Sendable () -> Void) { lane.add(job, to: queue) }

  func pause(microseconds: Int64) { IOThread.rest(microseconds: microseconds) }

  func stop() async {
    await withCheckedContinuation { continuation in
      if !lane.addWhileBusy({ continuation.resume() }, to: queue) { continuation.resume() }
    }
  }
}

/// A few threads, and the jobs that they take turns on. A thread starts when there is a job and no
/// other thread is free, and lives as long as the process. If the system provides none and the lane
/// has none, the caller that adds a job runs it and the jobs that arrive meanwhile.
@safe
final class ThreadLane: @unchecked Sendable {
  // Safe: the mutable state is accessed only between lock and unlock.
  typealias Job = @Sendable () -> Void

  private let name: String
  private let most: Int
  private let yields: Bool
  private let makeThread: IOThread.MakeThread
  private var queues = JobQueues<Job>()
  private var threads = 0
  /// Threads that sleep and have not been woken.
  private var idle = 0
  /// Threads that have been woken and have not noticed yet, because of spurious wakeups by the
  /// system.
  private var woken = 0
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  init(
    _ name: String, most: Int, yields: Bool = false,
    makeThread: @escaping IOThread.MakeThread = IOThread.detach
  ) {
    self.name = name
    self.most = most
    self.yields = yields
    self.makeThread = makeThread
    unsafe mutex = .allocate(capacity: 1)
    unsafe condition = .allocate(capacity: 1)
    unsafe pthread_mutex_init(mutex, nil)
    unsafe pthread_cond_init(condition, nil)
  }

  // A thread keeps its lane alive, so a released lane never had one.
  deinit {
    unsafe pthread_cond_destroy(condition)
    unsafe pthread_mutex_destroy(mutex)
    unsafe condition.deallocate()
    unsafe mutex.deallocate()
  }

  /// The number of threads that were started and have not ended.
  var threadCount: Int {
    lock()
    defer { unlock() }
    return threads
  }

  func add(_ job: @escaping Job, to queue: JobQueues<Job>.Queue) {
    lock()
    let call = queues.append(job, to: queue) ? callThread() : nil
    unlock()
    answer(call)
  }

  /// Adds a job after the unfinished jobs of its queue. Returns false if there are none.
  func addWhileBusy(_ job: @escaping Job, to queue: JobQueues<Job>.Queue) -> Bool {
    lock()
    defer { unlock() }
    guard queues.isBusy(queue) else { return false }
    _ = queues.append(job, to: queue)
    return true
  }

  // MARK: - Threads

  /// How a thread is notified of a job.
  private enum Call {
    case wake
    case start
  }

  /// Decides which thread runs one more job; nil if the next free one will. Call it with the lock
  /// held.
  private func callThread() -> Call? {
    if idle > 0 {
      idle -= 1
      woken += 1
      return .wake
    }
    guard threads < most else { return nil }
    threads += 1
    return .start
  }

  /// Call it without the lock: with the lock held, the thread would wake up only to wait for it.
  private func answer(_ call: Call?) {
    switch call {
    case nil: break
    case .wake: unsafe pthread_cond_signal(condition)
    case .start: start()
    }
  }

  private func start() {
    let argument = IOThread.ThreadArgument(name: name) { [self] in
      if yields { ondol_lower_priority() }
      work()
    }
    if makeThread(argument) != 0 { stepIn() }
  }

  /// The body of a thread.
  private func work() {
    lock()
    while true {
      if let next = queues.next() {
        run(next)
      } else {
        idle += 1
        repeat { unsafe pthread_cond_wait(condition, mutex) } while woken == 0
        woken -= 1
      }
    }
  }

  /// Does the work of a thread that could not be created, unless there are others.
  private func stepIn() {
    lock()
    if threads == 1 {
      while let next = queues.next() { run(next) }
    }
    threads -= 1
    unlock()
  }

  /// Runs a job outside the lock. Nothing of the job is released under the lock either.
  private func run(_ next: consuming JobQueues<Job>.Next) {
    unlock()
    next.job?()
    next.job = nil
    lock()
    queues.end(of: next.queue)
  }

  private func lock() { unsafe pthread_mutex_lock(mutex) }

  private func unlock() { unsafe pthread_mutex_unlock(mutex) }
}
