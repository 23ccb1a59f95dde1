// Runs the body of a transaction until it commits. In an attempt, the body reads from a snapshot
// and writes. The writes are committed if nothing that was read has changed. If something has, the
// attempt is discarded, and the committer asks for another. An attempt that needs data from disk is
// also discarded: the data is loaded, and the body runs again on the same snapshot.

internal import OndolEngine

/// The result of one attempt of a transaction.
struct TransactionOutcome: Sendable {
  var prepared: PreparedCommit
  /// The root collections it concerns.
  var roots: Set<ExactText>
}

extension Database {
  /// Runs `body`, which reads and writes through its transaction, and commits what it wrote: all of
  /// it, or nothing. The outcome is as if the transactions of all tasks had run one after the
  /// other.
  ///
  /// When another commit changes something that was read, be it a document, its absence or the
  /// result of a query, `body` runs again. So it must not do anything that cannot be repeated. It
  /// also runs again when data it reads must come from disk, so that its actor never waits for
  /// that; the call that would have waited throws. Any other error that `body` throws ends the
  /// transaction: nothing is written, and the error is rethrown. A transaction that has written
  /// nothing commits nothing.
  ///
  /// This is like Firestore's, but it needs no network. After three attempts, gates hold writers to
  /// the same root collections for twice as long as an attempt takes, at least 0.1 and at most 5
  /// seconds. So a transaction whose body ends within 5 seconds does not lose for ever.
  ///
  /// In `body`, reads and writes of the same database without the transaction throw
  /// `.failedPrecondition`, and so does another `runTransaction`: they would not be part of it. Put
  /// independent work after the transaction, or into a `Task.detached`. `database.snapshot()` reads
  /// data that need not be the newest. Putting and reading bytes, listening to results and deriving
  /// contents are allowed.
  ///
  /// - Parameters:
  ///   - attempts: how often `body` may run, at least once; 100 here, where Firestore has 5. The
  ///     transaction fails earlier when gates have held others for 30 seconds in total.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - body: reads and writes with the transaction it is given. It runs on the caller's actor,
  ///     may suspend, and may use local variables.
  /// - Returns: what `body` returned in the attempt that was committed.
  /// - Throws: what `body` throws; `.aborted` when other commits came first `attempts` times;
  ///   `.cancelled` when the task was cancelled before the commit; `.resourceExhausted` when the
  ///   commit is over 64 MiB; otherwise as a write of one document.
  /// - Complexity: what `body` reads and writes, for each attempt, and once more for each of its
  ///   reads that had to come from disk. After 128 of these in one attempt the cache is too small
  ///   for what `body` reads, and the last run waits on its actor.
  @discardableResult
  public func runTransaction<Result>(
    attempts: Int = 100, durability: Durability? = nil,
    _ body: (Transaction) async throws -> Result
  ) async throws -> Result {
    try refuseTransactionInTransaction()
    return try await run(attempts: attempts, durability: durability, body).result
  }

  /// Like `runTransaction`, and also returns what the commit did.
  package func run<Result>(
    attempts: Int, durability: Durability?, _ body: (Transaction) async throws -> Result
  ) async throws -> (result: Result, commit: CompletedCommit) {
    try await derive(attempts: attempts, durability: durability) { snapshot in
      let moment = now()
      var misses = 0
      while true {
        let mayBlock = misses >= Self.mostMisses
        let transaction = Transaction(
          self, Rows(snapshot, catalog, mayBlock: mayBlock, asOf: moment))
        defer { transaction.end() }
        do {
          let result = try await runBody { try await body(transaction) }
          if transaction.missing == nil {
            return (result, try await read(snapshot, asOf: moment, transaction.finish()))
          }
          transaction.abandon(after: DatabaseError.cold)
        } catch {
          transaction.abandon(after: error)
          if transaction.missing == nil { throw error }
        }
        do {
          if let missing = transaction.missing { try await read(snapshot, asOf: moment, missing) }
          misses += 1
        } catch {
          // The body gets the error from its own read.
          misses = Self.mostMisses
        }
      }
    }
  }

  /// How often an attempt runs again because data must be read from disk.
  private static var mostMisses: Int { 128 }

  /// Derives from snapshots until an attempt can be committed, or throws.
  ///
  /// - Parameter holdsGates: whether the caller has closed gates for it.
  func derive<R>(
    attempts: Int, durability: Durability?, holdsGates: Bool = false,
    _ derive: (Snapshot) async throws -> (R, TransactionOutcome)
  ) async throws -> (result: R, commit: CompletedCommit) {
    try refuseWriteInTransaction()
    let kind = CommitKind.transaction(attempts: attempts, holdsGates: holdsGates)
    let commit = try await commit(kind, durability: durability) {
      (snapshot) throws(DatabaseError) in
      do {
        let (result, outcome) = try await derive(snapshot)
        return Derivation(outcome, result)
      } catch {
        // The app's error: there is nothing to commit.
        return Derivation(outcome: .failure(error), batch: Batch())
      }
    }
    let (result, documents) = try commit.outcome.get()
    return (result, CompletedCommit((documents, commit.receipt), in: self))
  }
}

extension Derivation {
  fileprivate init<R>(_ transaction: TransactionOutcome, _ result: R)
  where Outcome == Result<(R, [WrittenDocument]), any Error> {
    let prepared = transaction.prepared
    let documents = prepared.documents
    let writesTree = prepared.writesTree
    outcome = .success((result, documents))
    batch = prepared.batch
    consequences = prepared.consequences
    contents = prepared.staged
    roots = transaction.roots
    writtenRoots = {
      Set(
        documents.map { ExactText($0.path.segments[0]) } + (writesTree ? [Database.treeGate] : []))
    }
  }
}
