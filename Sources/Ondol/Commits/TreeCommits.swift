// The write path for the tree, from changes to the acknowledged commit, as WritePath is for
// documents: writers of one place queue, each derives from a snapshot, and the engine refuses what
// was derived from rows that have changed meanwhile. A writer that others keep overtaking, because
// it replaces much, closes the tree's gate for a while.

internal import OndolEngine

extension Database {
  /// What the gate of the tree is called. No collection has such a name.
  static let treeGate = ExactText("/tree")
  /// Attempts before the gate is closed.
  private static let freeAttempts = 3

  /// Commits changes that happen at once.
  @concurrent
  func commit(
    tree changes: [TreeChange], durability: Durability?
  ) async throws(DatabaseError) -> TreeWriteResult {
    try refuseWriteInTransaction(changes.first.map { "\($0.path)" })
    await passGates(of: [Self.treeGate.text])
    let keys = changes.count == 1 ? [LatchKey.node(changes[0].path)] : []
    for key in keys { try await latches.acquire(key) }
    do throws(DatabaseError) {
      let result = try await commitInTurn(durability) { (rows, batch) throws(DatabaseError) in
        var preparation = TreePreparation(rows)
        try preparation.apply(changes)
        preparation.add(to: &batch)
      }
      latches.release(keys)
      return result
    } catch {
      latches.release(keys)
      throw error
    }
  }

  /// Commits the rows of the tree that `prepare` derives from a snapshot, with all that it guards.
  @concurrent
  func commitTree(
    _ durability: Durability?,
    _ prepare: @escaping @Sendable (Rows, inout Batch) throws(DatabaseError) -> Void
  ) async throws(DatabaseError) -> TreeWriteResult {
    try refuseWriteInTransaction()
    await passGates(of: [Self.treeGate.text])
    return try await commitInTurn(durability, prepare)
  }

  private func commitInTurn(
    _ durability: Durability?,
    _ prepare: @escaping @Sendable (Rows, inout Batch) throws(DatabaseError) -> Void
  ) async throws(DatabaseError) -> TreeWriteResult {
    let durability = OndolEngine.Durability(durability ?? options.durability)
    var gates = ClosedGates()
    defer { openGates(gates) }
    var attempts = 0
    var times = AttemptTimes()
    while true {
      let start = now()
      try refuseWhenCancelled("nothing was written")
      let snapshot = try engineSnapshot()
      let batch = try await read(snapshot) { (rows) throws(DatabaseError) in
        var batch = Batch()
        batch.basis = rows.snapshot.sequence
        try prepare(rows, &batch)
        return batch
      }
      guard !batch.isEmpty else {
        return TreeWriteResult(version: .missing, commitTime: Timestamp(unchecked: now()))
      }
      do throws(EngineError) {
        let receipt = try await engine.commit(batch, durability: durability)
        return TreeWriteResult(
          version: Version(rawValue: receipt.sequence.rawValue),
          commitTime: Timestamp(unchecked: receipt.time))
      } catch .stale {
        attempts += 1
        times.note(now() - start, isGated: gates.isAny)
        if attempts >= Self.freeAttempts, !gates.isAny {
          gates = try await closeGates([Self.treeGate], wait: times.wait)
        }
      } catch {
        throw DatabaseError(error)
      }
    }
  }
}

extension TreePreparation {
  /// Makes a batch that of these writes.
  func add(to batch: inout Batch) {
    let changes = finish(into: &batch)
    var footprint = Footprint()
    add(to: &footprint)
    footprint.guardUnchanged(in: &batch)
    batch.note = CommitNote(.documents([]), tree: changes)
  }
}
