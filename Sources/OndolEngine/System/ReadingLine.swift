// The line in which cold reads wait, and the threads that do them: a few, so that the device has
// several reads to do at once, and so that a short read never stands behind a long one. The
// databases of a process share one line and take turns in it.
//
// Nobody knows beforehand how long a read will take, so every read begins as a short one. One that
// goes on for longer than its allowance is a long one from there on, and only so many long reads
// run at once that threads are left for short ones, of whichever database. Where there are more,
// they take turns: a read whose allowance is used up while others wait is given up, goes to the end
// of the line, and is begun again from the beginning with twice the allowance. That is sound
// because a read changes nothing; it had to be possible anyway, since a read that finds a block
// missing is begun again here. What is done twice is at most as much as what is done once.

/// Reads that wait for a thread, and those that have one.
package final class ReadingLine: Sendable {
  struct Job: Sendable {
    let turn: ReadingTurn
    /// False when it was given up and is to be begun again.
    let run: @Sendable () -> Bool
  }

  struct State: Sendable {
    let mostLong: Int
    /// Made when they are first needed.
    var workers: [any Worker] = []
    var idle: [Int] = []
    var short = FairLine<Job>()
    var long = FairLine<Job>()
    var longRunning = 0
    /// The reads of each database that has some, and who waits for their end.
    var reads: [DatabaseTurn: Int] = [:]
    var stopping: [DatabaseTurn: [CheckedContinuation<Void, Never>]] = [:]
  }

  private let threads: any ThreadSource
  private let mostThreads: Int
  private let state: Guarded<State>

  /// - Parameters:
  ///   - mostThreads: enough to keep a device busy, and few enough to be had at once.
  ///   - mostLong: long reads that run at once.
  init(
    _ threads: any ThreadSource, mostThreads: Int = ReadingThreads.count,
    mostLong: Int = ReadingThreads.mostLong
  ) {
    self.threads = threads
    self.mostThreads = mostThreads
    state = Guarded(State(mostLong: mostLong))
  }

  /// Threads that were made.
  var threadCount: Int { state.withLock { $0.workers.count } }

  /// Waits until no read of the database is left.
  func waitForReads(of database: DatabaseTurn) async {
    await withCheckedContinuation { continuation in
      let isDone = state.withLock { state in
        if state.reads[database] == nil { return true }
        state.stopping[database, default: []].append(continuation)
        return false
      }
      if isDone { continuation.resume() }
    }
  }

  /// Ends the threads, once there are no reads.
  func endThreads() async {
    for worker in state.withLock({ $0.workers }) { await worker.stop() }
  }

  // MARK: - Taking turns

  /// Whether a read that has used up its allowance may go on: as a long one, when there is room for
  /// one more, and as long as nobody else waits.
  func mayGoOn(_ turn: ReadingTurn) -> Bool {
    state.withLock { state in
      if turn.isLong { return state.long.isEmpty }
      if state.longRunning < state.mostLong, state.long.isEmpty {
        state.longRunning += 1
        turn.becomeLong()
        return true
      }
      return state.short.isEmpty && state.long.isEmpty
    }
  }

  func add(_ job: Job) {
    let awakened = state.withLock { [threads, mostThreads] state -> (any Worker, Int)? in
      state.reads[job.turn.database, default: 0] += 1
      state.short.append(job, of: job.turn.database)
      if let place = state.idle.popLast() { return (state.workers[place], place) }
      guard state.workers.count < mostThreads else { return nil }
      let place = state.workers.count
      state.workers.append(threads.makeWorker(named: "ondol-reads-\(place)", for: .own))
      return (state.workers[place], place)
    }
    if let (worker, place) = awakened { runNext(on: worker, place) }
  }

  /// Has a worker run what comes next, one job after the other; each is a job of the worker's, so
  /// that whoever simulates threads can put something between them.
  private func runNext(on worker: any Worker, _ place: Int) {
    worker.enqueue { [self] in
      guard let (database, isDone) = runOne(place) else { return }
      // By now nobody has the read any more, nor the snapshot that it read.
      if isDone { leave(database) }
      runNext(on: worker, place)
    }
  }

  /// Runs the next job; nil, and the worker is idle, when there is none.
  private func runOne(_ place: Int) -> (DatabaseTurn, isDone: Bool)? {
    let job = state.withLock { state in
      let job = state.takeNext()
      if job == nil { state.idle.append(place) }
      return job
    }
    guard let job else { return nil }
    let isDone = job.run()
    state.withLock { state in
      if job.turn.isLong { state.longRunning -= 1 }
      guard !isDone else { return }
      job.turn.beginAgain()
      state.long.append(job, of: job.turn.database)
    }
    return (job.turn.database, isDone)
  }

  /// Notes that a read is over.
  private func leave(_ database: DatabaseTurn) {
    let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      let left = (state.reads[database] ?? 1) - 1
      state.reads[database] = left > 0 ? left : nil
      return left > 0 ? [] : state.stopping.removeValue(forKey: database) ?? []
    }
    for continuation in waiting { continuation.resume() }
  }
}

extension ReadingLine.State {
  /// Short reads go first, but never keep all long ones from running.
  mutating func takeNext() -> ReadingLine.Job? {
    if longRunning > 0 || long.isEmpty, let job = short.popFirst() { return job }
    guard longRunning < mostLong, let job = long.popFirst() else { return nil }
    longRunning += 1
    job.turn.becomeLong()
    return job
  }
}
