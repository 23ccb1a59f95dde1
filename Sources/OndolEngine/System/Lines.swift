// Queues. A `Line` is first come, first served. In a `FairLine` the waiting elements belong to
// databases, and the databases take turns: a database with a thousand elements and one with a
// single element each get every second turn.
//
// `JobQueues` decides what a lane of the process's threads does next (see SharedThreads). It is
// pure: it starts no thread and runs no job, so that a test can try any order of events.

/// A first-come, first-served queue. It releases removed elements at once: a read holds a snapshot,
/// whose data cannot be reclaimed.
struct Line<Element: Sendable>: Sendable {
  /// The next elements, in reverse order.
  private var front: [Element] = []
  /// The elements that arrived since `front` was filled.
  private var back: [Element] = []

  var isEmpty: Bool { front.isEmpty && back.isEmpty }

  mutating func append(_ element: Element) { back.append(element) }

  mutating func popFirst() -> Element? {
    if front.isEmpty {
      front = back.reversed()
      back = []
    }
    return front.popLast()
  }
}

/// A queue in which the databases of the elements take turns. A database without waiting elements
/// uses no memory here.
struct FairLine<Element: Sendable>: Sendable {
  private var lines: [DatabaseTurn: Line<Element>] = [:]
  /// The databases with waiting elements, each once.
  private var turns = Line<DatabaseTurn>()

  var isEmpty: Bool { lines.isEmpty }

  mutating func append(_ element: Element, of database: DatabaseTurn) {
    if lines[database] == nil { turns.append(database) }
    lines[database, default: Line()].append(element)
  }

  /// The first element of the database whose turn it is. That database's next turn comes after all
  /// others.
  mutating func popFirst() -> Element? {
    guard let database = turns.popFirst(), let element = lines[database]?.popFirst() else {
      return nil
    }
    if lines[database]?.isEmpty ?? true {
      lines[database] = nil
    } else {
      turns.append(database)
    }
    return element
  }
}

/// Identifies a database where databases take turns. No number is reused within a process.
struct DatabaseTurn: Hashable, Sendable {
  let rawValue: UInt64
}

/// The queues of a lane. Each runs its jobs one after the other, in the given order. The queues of
/// a database take turns, and so do the databases.
struct JobQueues<Job: Sendable>: Sendable {
  struct Queue: Hashable, Sendable {
    let number: UInt64
    let database: DatabaseTurn
    /// Whether its jobs may take long. Only one such queue runs at a time, so that they never
    /// occupy all threads of a lane with two.
    let isSlow: Bool
  }

  /// The jobs of queues that have some, or that are running one.
  private var jobs: [Queue: Line<Job>] = [:]
  private var ready = FairLine<Queue>()
  private var readySlow = FairLine<Queue>()
  private var isSlowRunning = false
  /// Slow queues and others also take turns.
  private var wasSlow = false

  /// Whether a queue has jobs that have not ended.
  func isBusy(_ queue: Queue) -> Bool { jobs[queue] != nil }

  /// Adds a job. Returns whether it provides work for one more thread.
  mutating func append(_ job: Job, to queue: Queue) -> Bool {
    let isFirst = jobs[queue] == nil
    jobs[queue, default: Line()].append(job)
    guard isFirst else { return false }
    makeReady(queue)
    return !queue.isSlow || !isSlowRunning
  }

  /// A job to run now, and its queue, of which no other job runs before `end(of:)`.
  struct Next: Sendable {
    var job: Job?
    let queue: Queue
  }

  mutating func next() -> Next? {
    guard let queue = nextQueue(), let job = jobs[queue]?.popFirst() else { return nil }
    wasSlow = queue.isSlow
    if queue.isSlow { isSlowRunning = true }
    return Next(job: job, queue: queue)
  }

  /// Must be called when a job that `next()` returned has run.
  mutating func end(of queue: Queue) {
    if queue.isSlow { isSlowRunning = false }
    if jobs[queue]?.isEmpty ?? true {
      jobs[queue] = nil
    } else {
      makeReady(queue)
    }
  }

  private mutating func nextQueue() -> Queue? {
    guard !isSlowRunning, !readySlow.isEmpty else { return ready.popFirst() }
    if wasSlow, let queue = ready.popFirst() { return queue }
    return readySlow.popFirst()
  }

  private mutating func makeReady(_ queue: Queue) {
    if queue.isSlow {
      readySlow.append(queue, of: queue.database)
    } else {
      ready.append(queue, of: queue.database)
    }
  }
}
