// Who waits, and who comes next. In a `Line` it is whoever came first. In a `FairLine` those who
// wait belong to databases, and the databases take turns: one that has a thousand things to do and
// one that has a single one both have every second turn.
//
// `JobQueues` is what a lane of the process's threads does next (see SharedThreads). It is pure: it
// starts no thread and runs no job, so that a test can try any order of events.

/// Those who wait, first come, first served. What was taken out is held no longer: a read holds a
/// snapshot, and what it sees cannot be given up.
struct Line<Element: Sendable>: Sendable {
  /// Who comes next, last first.
  private var front: [Element] = []
  /// Who came since `front` was filled.
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

/// Those who wait, by turns of the databases they belong to. A database of which nobody waits takes
/// no memory here.
struct FairLine<Element: Sendable>: Sendable {
  private var lines: [DatabaseTurn: Line<Element>] = [:]
  /// The databases of which somebody waits, each once.
  private var turns = Line<DatabaseTurn>()

  var isEmpty: Bool { lines.isEmpty }

  mutating func append(_ element: Element, of database: DatabaseTurn) {
    if lines[database] == nil { turns.append(database) }
    lines[database, default: Line()].append(element)
  }

  /// The first of the database whose turn it is, which has its next turn after all others.
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

/// What a database is called where databases take turns. No number is used twice in a process.
struct DatabaseTurn: Hashable, Sendable {
  let rawValue: UInt64
}

/// The queues of a lane: each runs its jobs one after the other, in the order given. The queues of
/// a database take turns, and so do the databases.
struct JobQueues<Job: Sendable>: Sendable {
  struct Queue: Hashable, Sendable {
    let number: UInt64
    let database: DatabaseTurn
    /// Whether its jobs may take long: of such queues one runs at a time, so that they never have
    /// all threads of a lane that has two.
    let isSlow: Bool
  }

  /// The jobs of queues that have some, or of which one runs.
  private var jobs: [Queue: Line<Job>] = [:]
  private var ready = FairLine<Queue>()
  private var readySlow = FairLine<Queue>()
  private var isSlowRunning = false
  /// Slow queues and others take turns, too.
  private var wasSlow = false

  /// Whether a queue has jobs that have not ended.
  func isBusy(_ queue: Queue) -> Bool { jobs[queue] != nil }

  /// Whether one more thread has something to do because of it.
  mutating func append(_ job: Job, to queue: Queue) -> Bool {
    let isFirst = jobs[queue] == nil
    jobs[queue, default: Line()].append(job)
    guard isFirst else { return false }
    makeReady(queue)
    return !queue.isSlow || !isSlowRunning
  }

  /// A job to be run now, and its queue, of which no other runs before `end(of:)`.
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

  /// To be called when a job has run that `next()` gave.
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
