// The queue of cold reads, and the threads that run them. There are several threads, so that the
// device has several reads to process at once, and a short read never waits for a long one. The
// databases of a process share one queue and take turns in it.
//
// The duration of a read is unknown in advance, so every read begins as a short one. A read that
// exceeds its allowance becomes a long one. The number of concurrent long reads is limited, so that
// threads remain for short reads of any database. If there are more long reads, they take turns:
// when a read has used up its allowance and others wait, it is stopped, goes to the end of the
// queue, and starts again from the beginning with twice the allowance. That is correct because a
// read changes nothing. It had to be possible anyway, because a read that finds a block missing is
// repeated here. The repeated work is at most as much as the work that is done once.

/// Reads that wait for a thread, and those that have one.
package final class ReadingLine: Sendable {
  struct Job: Sendable {
    let turn: ReadingTurn
    /// Returns false if it was stopped and must start again.
    let run: @Sendable () -> Bool
  }

  struct State: Sendable {
    let mostLong: Int
    /// Created when first needed.
    var workers: [any Worker] = []
    var idle: [Int] = []
    var short = FairLine<Job>()
    var long = FairLine<Job>()
    var longRunning = 0
    /// The reads of each database that has some, and the callers that wait for their end.
    var reads: [DatabaseTurn: Int] = [:]
    var stopping: [DatabaseTurn: [CheckedContinuation<Void, Never>]] = [:]
  }

  private let threads: any ThreadSource
  private let mostThreads: Int
  private let state: Guarded<State>

  /// - Parameters:
  ///   - mostThreads: enough to keep a device busy, and few enough to be available at once.
  ///   - mostLong: the most concurrent long reads.
  init(
    _ threads: any ThreadSource, mostThreads: Int = ReadingThreads.count,
    mostLong: Int = ReadingThreads.mostLong
  ) {
    self.threads = threads
    self.mostThreads = mostThreads
    state = Guarded(State(mostLong: mostLong))
  }

  /// The number of created threads.
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

  /// Ends the threads. No reads may be left.
  func endThreads() async {
    for worker in state.withLock({ $0.workers }) { await worker.stop() }
  }

  // MARK: - Taking turns

  /// Whether a read that has used up its allowance may continue: as a long read if there is room
  /// for one more, or as long as no other read waits.
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

  /// Makes a worker run the next jobs one after the other. Each is a separate job of the worker, so
  /// that a simulation of threads can insert other work in between.
  private func runNext(on worker: any Worker, _ place: Int) {
    worker.enqueue { [self] in
      guard let (database, isDone) = runOne(place) else { return }
      // By now nothing refers to the read or to its snapshot.
      if isDone { leave(database) }
      runNext(on: worker, place)
    }
  }

  /// Runs the next job. If there is none, returns nil, and the worker is idle.
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

  /// Records that a read has ended.
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
  /// Short reads go first, but never prevent all long ones from running.
  mutating func takeNext() -> ReadingLine.Job? {
    if longRunning > 0 || long.isEmpty, let job = short.popFirst() { return job }
    guard longRunning < mostLong, let job = long.popFirst() else { return nil }
    longRunning += 1
    job.turn.becomeLong()
    return job
  }
}
