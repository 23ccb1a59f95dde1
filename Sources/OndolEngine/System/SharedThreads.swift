// The threads of the process: however many databases are open, their blocking calls run on sixteen
// threads at most. Each kind of work has a lane with threads of its own, so that a flush never
// stands in the way of a sync, nor a backup in that of a flush:
//
//   syncs      3   logs and packs, for which commits wait
//   reads      6   what is not in memory, of which four at most are long (see ReadingLine)
//   contents   2   pieces of large contents, and memory touched ahead of a load
//   upkeep     2   flushes and edits of the manifest
//   merges     2   steps of merges, and checks, backups and salvage, of which one runs at a time
//   watch      1   where the system tells of written files, see DirectoryWatch
//
// In a lane the databases take turns, job by job: see `JobQueues`.
//
// No job waits for another one: it is a synchronous piece of work that calls the system and takes
// locks which nobody holds while waiting for a job. What waits for jobs are tasks, and a task that
// waits has no thread. So there is no order of lanes to be kept, and no set of databases, however
// large, can take all threads and wait with them. What waits for somebody who need never answer, a
// server, has a thread of its own (`WorkKind.own`).

internal import COndol
internal import OndolPlatform
internal import Synchronization

/// The process's threads, as they are lent to databases.
package final class SharedThreads: ThreadSource {
  package static let process = SharedThreads()

  /// Threads that there are at most, whatever number of databases is open.
  package static let most = 16

  private let syncs = ThreadLane("ondol-sync", most: 3)
  private let contents = ThreadLane("ondol-content", most: 2)
  private let upkeep = ThreadLane("ondol-upkeep", most: 2)
  private let merges = ThreadLane("ondol-merge", most: 2, yields: true)
  private let reads = ReadingLine(IOThreads(), mostThreads: 6, mostLong: 4)

  init() {}

  /// Threads that were started so far, but for the one that watches files. None ends.
  package var threadCount: Int {
    [syncs, contents, upkeep, merges].reduce(reads.threadCount) { $0 + $1.threadCount }
  }

  package var readingLine: ReadingLine? { reads }

  package func forDatabase() -> any ThreadSource { DatabaseShare(of: self) }

  /// For one who shares with nobody.
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

/// What one database has of the threads.
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

  /// One that nobody has.
  static func next() -> DatabaseTurn {
    DatabaseTurn(rawValue: last.wrappingAdd(1, ordering: .relaxed).newValue)
  }
}

// MARK: - Workers

/// A queue in a lane. It has no thread, and takes no memory in the lane while it has no jobs.
final class LaneWorker: Worker {
  private static let last = Atomic<UInt64>(0)

  private let lane: ThreadLane
  private let queue: JobQueues<ThreadLane.Job>.Queue

  /// - Parameter isSlow: whether its jobs may take long, see `JobQueues`.
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

/// A few threads, and the jobs that they take turns at. A thread starts when there is a job and no
/// other thread is free, and lives as long as the process. Where the system has none to give, and
/// the lane has none, whoever hands in a job runs it, and those that come meanwhile.
@safe
final class ThreadLane: @unchecked Sendable {
  // Safe: what varies is touched between lock and unlock only.
  typealias Job = @Sendable () -> Void

  private let name: String
  private let most: Int
  private let yields: Bool
  private let makeThread: IOThread.MakeThread
  private var queues = JobQueues<Job>()
  private var threads = 0
  /// Threads that sleep and were not woken.
  private var idle = 0
  /// Threads that were woken and do not know yet: the system wakes some for no reason.
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

  // A thread keeps its lane, so what goes never had one.
  deinit {
    unsafe pthread_cond_destroy(condition)
    unsafe pthread_mutex_destroy(mutex)
    unsafe condition.deallocate()
    unsafe mutex.deallocate()
  }

  /// Threads that were started and did not end.
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

  /// Adds a job behind those of its queue that have not ended; false when there are none.
  func addWhileBusy(_ job: @escaping Job, to queue: JobQueues<Job>.Queue) -> Bool {
    lock()
    defer { unlock() }
    guard queues.isBusy(queue) else { return false }
    _ = queues.append(job, to: queue)
    return true
  }

  // MARK: - Threads

  /// How a thread gets to know of a job.
  private enum Call {
    case wake
    case start
  }

  /// Decides who does one job more; nil when whoever is free first will. Under the lock.
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

  /// Outside the lock: with it held the thread would wake up only to wait for that.
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

  /// A thread's life.
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

  /// Does the work of a thread that could not be made, unless there are others.
  private func stepIn() {
    lock()
    if threads == 1 {
      while let next = queues.next() { run(next) }
    }
    threads -= 1
    unlock()
  }

  /// Runs a job outside the lock, in which nothing of it is let go of either.
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
