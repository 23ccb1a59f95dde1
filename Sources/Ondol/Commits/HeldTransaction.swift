// A transaction whose body is another program: it reads in some calls and commits, or rolls back,
// in a later one. It is the same Transaction that runTransaction passes to a closure, held between
// calls. The only difference is who runs it again: the other program decides that.
//
// Nothing is locked meanwhile. The transaction holds a snapshot, which keeps the files and versions
// that it reads. So every held transaction ends, after some idle time or after its longest lifetime
// (HeldTransactions).

internal import OndolEngine

/// Identifies a held transaction: 16 random bytes, which cannot be guessed.
package struct TransactionID: Sendable, Hashable {
  package let bytes: [UInt8]

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }
}

/// What the next attempt must know of a transaction that lost.
struct LostTransaction: Sendable {
  /// How many attempts were lost.
  var losses: Int
  var roots: Set<ExactText>
  /// Microseconds that the attempt took.
  var duration: Int64
}

/// A transaction between two calls.
package actor HeldTransaction {
  /// Attempts before gates hold other writers.
  private static let freeAttempts = 3
  /// How often one call reads missing data from disk and starts again; after that it waits for the
  /// disk instead.
  private static let mostMisses = 128

  package nonisolated let id: TransactionID
  /// The moment that all of its reads see.
  package nonisolated let moment: ReadMoment
  private let transaction: Transaction
  private let isReadOnly: Bool
  private let start: Int64
  private let losses: Int
  private var gates: ClosedGates
  /// Whether nobody may use it any more. Its own commit may still run.
  private var isOver = false
  private var hasEnded = false

  /// - Parameters:
  ///   - lost: the previous attempt.
  ///   - gates: closed for this attempt.
  init(
    _ id: TransactionID, at moment: ReadMoment, isReadOnly: Bool, after lost: LostTransaction?,
    _ gates: ClosedGates
  ) {
    self.id = id
    self.moment = moment
    self.isReadOnly = isReadOnly
    transaction = Transaction(moment.database, moment.rows)
    start = moment.database.now()
    losses = lost?.losses ?? 0
    self.gates = gates
  }

  /// Closes gates for a transaction that lost often enough.
  static func closeGates(
    for lost: LostTransaction?, in database: Database
  ) async throws(DatabaseError) -> ClosedGates {
    guard let lost, lost.losses >= freeAttempts else { return ClosedGates() }
    let wait = min(max(2 * lost.duration, Gates.shortestWait), Gates.longestWait)
    return try await database.closeGates(lost.roots, wait: wait)
  }

  /// Reads with the transaction, which records what was read.
  ///
  /// - Throws: what `body` throws; `.invalidArgument` after the end.
  package func read<R: Sendable>(
    _ body: @Sendable (Transaction) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    guard !isOver else { throw Self.over }
    return try await attempt(body)
  }

  private func attempt<R: Sendable>(
    _ body: @Sendable (Transaction) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    var misses = 0
    while true {
      // It may have expired while data was read from disk.
      guard !hasEnded else { throw Self.over }
      do throws(DatabaseError) {
        return try body(transaction)
      } catch {
        guard let missing = transaction.takeMissing() else { throw error }
        misses += 1
        if misses > Self.mostMisses { transaction.waitForDisk() } else { try await warm(missing) }
      }
    }
  }

  private func warm(_ missing: @escaping Transaction.Warming) async throws(DatabaseError) {
    try await moment.read(missing)
  }

  /// Commits the writes if the guard allows them and nothing that was read has changed. The
  /// transaction is over then.
  ///
  /// - Throws: `.aborted` when other commits changed what was read; the guard's error; otherwise as
  ///   `Database.commit(_:durability:)`.
  package func commit(
    _ writes: [ClientWrite], allowedBy guardian: (any WriteGuard)? = nil
  ) async throws(DatabaseError) -> ClientCommit {
    guard !isOver else { throw Self.over }
    isOver = true
    defer { release() }
    guard !isReadOnly || writes.isEmpty else {
      throw DatabaseError(.invalidArgument, "a read-only transaction cannot write")
    }
    let database = moment.database
    let writes = try ClientWrites(writes, now: try await database.seeBasis(of: writes))
    var (transformed, changes) = ([[Value]](), [ProposedWrites.Change]())
    for (write, compiled) in zip(writes.writes, writes.compiled) {
      let added = try await attempt { [changes] (transaction) throws(DatabaseError) in
        try transaction.add(write, compiled, after: changes, allowedBy: guardian)
      }
      transformed.append(added.transformed)
      if let change = added.change { changes.append(change) }
    }
    try await attempt { [changes] (transaction) throws(DatabaseError) in
      try transaction.check(changes, with: guardian)
    }
    let (moment, finish) = (moment, transaction.finish())
    do {
      let (_, commit) = try await moment.database.derive(
        attempts: 1, durability: nil, holdsGates: gates.isAny
      ) { _ in ((), try await moment.read(finish)) }
      return writes.answer(commit, transformed)
    } catch {
      throw error as? DatabaseError ?? DatabaseError(.unknown, "\(error)")
    }
  }

  /// Rolls back. Nothing is written.
  package func rollBack() {
    isOver = true
    release()
  }

  /// What the next attempt must know of this one.
  var lost: LostTransaction {
    LostTransaction(
      losses: losses + 1, roots: transaction.roots, duration: moment.database.now() - start)
  }

  private func release() {
    hasEnded = true
    transaction.end()
    moment.database.openGates(gates)
    gates = ClosedGates()
  }

  static let over = DatabaseError(
    .invalidArgument, "The referenced transaction has expired or is no longer valid.")
}
