// The transactions that are held for other programs, and for how long. A program that disappears
// abandons its transaction, so each has two deadlines, and their number is limited.

internal import OndolEngine

/// The held transactions of a database.
package final class HeldTransactions: Sendable {
  /// How many there may be, and for how long.
  package struct Limits: Sendable {
    package var most = 1_000
    /// Microseconds without a call, and in total.
    package var idle: Int64 = 60_000_000
    package var longest: Int64 = 270_000_000

    package init() {}
  }

  private struct Entry: Sendable {
    var transaction: HeldTransaction
    var owner: String
    var begun: Int64
    var used: Int64
  }

  private struct State: Sendable {
    var held: [TransactionID: Entry] = [:]
    /// Attempts that lost, for the attempts that follow them.
    var lost: [TransactionID: (attempt: LostTransaction, time: Int64)] = [:]
    var isWatched = false
  }

  private let database: Database
  private let limits: Limits
  private let state = Guarded(State())

  package init(_ database: Database, _ limits: Limits = Limits()) {
    self.database = database
    self.limits = limits
  }

  /// The number of held transactions.
  package var count: Int { state.withLock { $0.held.count } }

  /// Begins a transaction.
  ///
  /// - Parameters:
  ///   - owner: the only caller that may use it.
  ///   - moment: what it reads; the current state when nil.
  ///   - isReadOnly: whether it may not write.
  ///   - before: the attempt that this one repeats.
  /// - Throws: `.resourceExhausted` when there are too many; `.failedPrecondition` when the
  ///   database is closed.
  package func begin(
    for owner: String, at moment: ReadMoment? = nil, isReadOnly: Bool = false,
    after before: TransactionID? = nil
  ) async throws(DatabaseError) -> HeldTransaction {
    await endExpired()
    let lost = before.flatMap { before in
      state.withLock { $0.lost.removeValue(forKey: before)?.attempt }
    }
    let gates = try await HeldTransaction.closeGates(for: lost, in: database)
    do throws(DatabaseError) {
      let moment = if let moment { moment } else { try database.readMoment() }
      let transaction = HeldTransaction(
        makeID(), at: moment, isReadOnly: isReadOnly, after: lost, gates)
      try hold(transaction, for: owner)
      return transaction
    } catch {
      database.openGates(gates)
      throw error
    }
  }

  private func hold(
    _ transaction: HeldTransaction, for owner: String
  ) throws(DatabaseError) {
    let now = database.now()
    let startsWatch = try state.withLock { (state) throws(DatabaseError) in
      guard state.held.count < limits.most else {
        throw DatabaseError(
          .resourceExhausted,
          "\(limits.most) transactions are open; commit them or roll them back")
      }
      state.held[transaction.id] = Entry(
        transaction: transaction, owner: owner, begun: now, used: now)
      defer { state.isWatched = true }
      return !state.isWatched
    }
    if startsWatch { watch() }
  }

  /// The transaction with this id, for another call.
  ///
  /// - Throws: `.invalidArgument` when there is none, it has expired, or it belongs to another
  ///   owner.
  package func transaction(
    _ id: TransactionID, of owner: String
  ) throws(DatabaseError) -> HeldTransaction {
    let now = database.now()
    let found: HeldTransaction? = state.withLock { state in
      guard let entry = state.held[id], entry.owner == owner, !isOver(entry, at: now) else {
        return nil
      }
      state.held[id]?.used = now
      return entry.transaction
    }
    guard let found else { throw HeldTransaction.over }
    return found
  }

  /// Commits with a transaction, which is over then.
  ///
  /// - Throws: as `transaction(_:of:)` and `HeldTransaction.commit(_:allowedBy:)`.
  package func commit(
    _ id: TransactionID, of owner: String, _ writes: [ClientWrite],
    allowedBy guardian: (any WriteGuard)? = nil
  ) async throws(DatabaseError) -> ClientCommit {
    let transaction = try transaction(id, of: owner)
    defer { state.withLock { _ = $0.held.removeValue(forKey: id) } }
    do throws(DatabaseError) {
      return try await transaction.commit(writes, allowedBy: guardian)
    } catch {
      if error.code == .aborted {
        let (attempt, now) = (await transaction.lost, database.now())
        state.withLock { $0.lost[id] = (attempt, now) }
      }
      throw error
    }
  }

  /// Rolls a transaction back.
  ///
  /// - Throws: as `transaction(_:of:)`.
  package func rollBack(_ id: TransactionID, of owner: String) async throws(DatabaseError) {
    let transaction = try transaction(id, of: owner)
    state.withLock { _ = $0.held.removeValue(forKey: id) }
    await transaction.rollBack()
  }

  // MARK: - Deadlines

  private func isOver(_ entry: Entry, at now: Int64) -> Bool {
    now - entry.used > limits.idle || now - entry.begun > limits.longest
  }

  /// Ends expired transactions. Attempts that are never repeated are forgotten after the same time.
  private func endExpired() async {
    let now = database.now()
    let expired = state.withLock { state in
      let expired = state.held.filter { isOver($0.value, at: now) }
      for id in expired.keys { state.held[id] = nil }
      state.lost = state.lost.filter { now - $0.value.time <= limits.idle }
      return expired.values.map(\.transaction)
    }
    for transaction in expired { await transaction.rollBack() }
  }

  /// Ends transactions while there are any, even when no more calls come.
  private func watch() {
    database.repeatInBackground(every: max(1, limits.idle / 4)) { [weak self] in
      await self?.endExpired()
      return self?.stopsWatching() == false
    }
  }

  /// Whether nothing is left to watch.
  private func stopsWatching() -> Bool {
    state.withLock { state in
      state.isWatched = !state.held.isEmpty || !state.lost.isEmpty
      return !state.isWatched
    }
  }

  private func makeID() -> TransactionID {
    var bytes: [UInt8] = []
    for _ in 0..<2 { bytes.appendBigEndian(database.environment.random()) }
    return TransactionID(bytes)
  }
}
