// The write path for the tree, from changes to the committer, as WritePath is for documents.

internal import OndolEngine

extension Database {
  /// The name of the tree's gate. No collection can have it.
  static let treeGate = ExactText("/tree")

  /// Commits simultaneous changes.
  @concurrent
  func commit(
    tree changes: [TreeChange], durability: Durability?
  ) async throws(DatabaseError) -> TreeWriteResult {
    try refuseWriteInTransaction(changes.first.map { "\($0.path)" })
    return try await commitTree(durability, at: changes.count == 1 ? changes[0].path : nil) {
      (rows, batch) throws(DatabaseError) in
      var preparation = TreePreparation(rows)
      try preparation.apply(changes)
      preparation.add(to: &batch)
    }
  }

  /// Commits the rows of the tree that `prepare` derives from a snapshot, with all their guards.
  ///
  /// - Parameter place: the place with whose other writers it queues, when there is only one.
  @concurrent
  func commitTree(
    _ durability: Durability?, at place: TreePath? = nil,
    _ prepare: @escaping @Sendable (Rows, inout Batch) throws(DatabaseError) -> Void
  ) async throws(DatabaseError) -> TreeWriteResult {
    try refuseWriteInTransaction()
    let commit = try await commit(.tree(place), durability: durability) {
      (snapshot) throws(DatabaseError) in
      let batch = try await read(snapshot) { (rows) throws(DatabaseError) in
        var batch = Batch()
        batch.basis = rows.snapshot.sequence
        try prepare(rows, &batch)
        return batch
      }
      return Derivation(outcome: (), batch: batch, roots: [Self.treeGate])
    }
    return TreeWriteResult(
      version: commit.receipt.map { Version(rawValue: $0.sequence.rawValue) } ?? .missing,
      commitTime: Timestamp(unchecked: commit.receipt?.time ?? now()))
  }
}

extension TreePreparation {
  /// Adds these writes to a batch.
  func add(to batch: inout Batch) {
    let changes = finish(into: &batch)
    var footprint = Footprint()
    add(to: &footprint)
    footprint.guardUnchanged(in: &batch)
    batch.note = CommitNote(.documents([]), tree: changes)
  }
}
