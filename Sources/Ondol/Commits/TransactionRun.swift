// Runs the body of a transaction until it commits. An attempt takes a snapshot, lets the body read
// and write, and commits what was written if nothing that was read has changed. If something has,
// the attempt never happened, and after a short pause of random length the next one begins. From
// the fourth attempt on the transaction closes gates (Gates), so that it cannot be overtaken for
// ever.

internal import OndolEngine

/// What one attempt of a transaction came to.
struct TransactionOutcome: Sendable {
  var prepared: PreparedCommit
  /// The root collections it has to do with.
  var roots: Set<ExactText>
}

/// How long the attempts of one transaction have taken, in microseconds.
struct AttemptTimes {
  private var longest: Int64 = 0
  private var gated: Int64 = 0

  /// Notes an attempt that was overtaken. A clock that was set meanwhile does no harm.
  mutating func note(_ time: Int64, isGated: Bool) {
    let time = min(max(time, 0), Gates.longestWait)
    longest = max(longest, time)
    if isGated { gated += time }
  }

  /// For how long writers are to step aside.
  var wait: Int64 { min(max(2 * longest, Gates.shortestWait), Gates.longestWait) }

  /// Throws when others have stepped aside for long enough.
  func refuseWhenOver() throws(DatabaseError) {
    guard gated >= Gates.longestClosure else { return }
    throw DatabaseError(
      .aborted,
      "other writers have stood aside for \(Gates.longestClosure / 1_000_000) seconds, and still"
        + " the transaction did not come to its commit; its body takes longer than"
        + " \(Gates.longestWait / 1_000_000) seconds, or waits for a write that stands aside for it"
    )
  }
}

extension Database {
  /// Attempts before the gates are closed.
  private static let freeAttempts = 3
  /// Microseconds of the longest pause between two attempts.
  private static let longestPause: Int64 = 10_000
  private static let firstPause: Int64 = 50

  /// Runs `body`, which reads and writes through its transaction, and commits what it wrote: all of
  /// it, or nothing. The outcome is as if the transactions of all tasks had run one after the
  /// other.
  ///
  /// When another commit changes something that was read, be it a document, its absence or the
  /// result of a query, `body` runs again; so it must not do anything that cannot be repeated. An
  /// error that `body` throws ends the transaction, nothing is written, and the error is thrown on.
  /// A transaction that has written nothing commits nothing.
  ///
  /// As Firestore's, but it needs no network, and after three attempts writers to the same root
  /// collections stand aside for twice as long as an attempt takes, at least 0.1 and at most 5
  /// seconds; so one whose body ends within 5 seconds is not overtaken for ever.
  ///
  /// In `body`, reads and writes of the same database without the transaction throw
  /// `.failedPrecondition`, and so does another `runTransaction`: they would not be part of it.
  /// What is meant to be on its own belongs behind the transaction, or into a `Task.detached`;
  /// `database.snapshot()` reads what need not be the newest. Bytes can be put and read, results
  /// listened to, and contents derived.
  ///
  /// - Parameters:
  ///   - attempts: how often `body` may run, at least once; Firestore's five are 100 here. It gives
  ///     up earlier when others have stood aside for 30 seconds in all.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - body: reads and writes with the transaction it is given. It runs on the caller's actor,
  ///     may suspend, and may use local variables.
  /// - Returns: what `body` returned in the attempt that was committed.
  /// - Throws: what `body` throws; `.aborted` when other commits came first `attempts` times;
  ///   `.cancelled` when the task was cancelled before the commit; `.resourceExhausted` when the
  ///   commit is over 64 MiB; otherwise as a write of one document.
  /// - Complexity: what `body` reads and writes, for each attempt.
  @discardableResult
  public func runTransaction<Result>(
    attempts: Int = 100, durability: Durability? = nil,
    _ body: (Transaction) async throws -> Result
  ) async throws -> Result {
    try refuseTransactionInTransaction()
    return try await run(attempts: attempts, durability: durability, body).result
  }

  /// As `runTransaction`, and what the commit did.
  package func run<Result>(
    attempts: Int, durability: Durability?, _ body: (Transaction) async throws -> Result
  ) async throws -> (result: Result, commit: CompletedCommit) {
    try await derive(attempts: attempts, durability: durability) { snapshot in
      let transaction = Transaction(self, Rows(snapshot, catalog, mayBlock: true))
      defer { transaction.end() }
      do {
        let result = try await runBody { try await body(transaction) }
        return (result, try transaction.finish())
      } catch {
        transaction.abandon(after: error)
        throw error
      }
    }
  }

  /// Derives from snapshots until one attempt can be committed.
  func derive<Result>(
    attempts: Int, durability: Durability?,
    _ derive: (Snapshot) async throws -> (Result, TransactionOutcome)
  ) async throws -> (result: Result, commit: CompletedCommit) {
    try refuseWriteInTransaction()
    var gates = ClosedGates()
    defer { openGates(gates) }
    var times = AttemptTimes()
    for attempt in 1...max(1, attempts) {
      try refuseWhenCancelled("nothing was written")
      let start = now()
      let (result, outcome) = try await derive(try engineSnapshot())
      let commit = try await commit(outcome.prepared, durability, isGated: gates.isAny)
      if let commit { return (result, commit) }
      times.note(now() - start, isGated: gates.isAny)
      await pause(after: attempt)
      if attempt >= Self.freeAttempts {
        openGates(gates)
        gates = ClosedGates()
        try times.refuseWhenOver()
        gates = try await closeGates(outcome.roots, wait: times.wait)
      }
    }
    throw DatabaseError(
      .aborted,
      "other commits changed what the transaction had read, \(max(1, attempts)) times; read less in"
        + " it, or allow more attempts")
  }

  private func pause(after attempt: Int) async {
    let longest = min(Self.firstPause << min(attempt, 10), Self.longestPause)
    await rest(random(below: longest))
  }

  /// Commits what a transaction wrote; nil when something it read has changed.
  @concurrent
  private func commit(
    _ prepared: consuming PreparedCommit, _ durability: Durability?, isGated: Bool
  ) async throws(DatabaseError) -> CompletedCommit? {
    var prepared = prepared
    guard !prepared.batch.isEmpty else {
      return CompletedCommit(documents: prepared.documents, receipt: nil, now: now())
    }
    if !isGated {
      let tree = prepared.writesTree ? [Self.treeGate.text] : []
      await passGates(of: Set(prepared.documents.map(\.path.segments[0]) + tree))
    }
    do throws(DatabaseError) {
      try refuseWhenCancelled("nothing was written")
      let commit = try await commitNow(&prepared, durability)
      prepared.finishContents(
        after: commit == nil ? DatabaseError(.aborted, "others came first") : nil)
      return commit
    } catch {
      prepared.finishContents(after: error)
      throw error
    }
  }

  private func commitNow(
    _ prepared: inout PreparedCommit, _ durability: Durability?
  ) async throws(DatabaseError) -> CompletedCommit? {
    do throws(EngineError) {
      let receipt = try await engine.commit(
        prepared.takeBatch(),
        durability: OndolEngine.Durability(durability ?? options.durability))
      for family in prepared.changedFamilies { catalog.install(family, at: receipt.sequence) }
      if let end = prepared.firstEnd { reap(by: end) }
      if prepared.releasesContents { contents.reclaimer.noteRelease() }
      return CompletedCommit(documents: prepared.documents, receipt: receipt, now: 0)
    } catch .stale {
      return nil
    } catch {
      throw DatabaseError(error)
    }
  }
}
