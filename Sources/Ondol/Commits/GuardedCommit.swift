// Commits of a client's writes that a guard allows first: a server's rules, for instance. The guard
// sees each document before and after the writes, and may read others. All of it is read by the
// transaction that commits the writes. So nothing that the guard has seen changes before the
// commit.

internal import OndolEngine

/// Decides whether a client's writes may be committed.
package protocol WriteGuard: Sendable {
  /// Allows the writes by returning.
  ///
  /// The transaction may ask several times. Errors of `writes` must be rethrown.
  ///
  /// - Throws: `.permissionDenied` to refuse the writes.
  func check(_ writes: ProposedWrites) throws(DatabaseError)

  /// Whether the client may know a document as it is stored. If not, it does not learn which
  /// condition of its write failed.
  func mayRead(
    _ document: DocumentSnapshot, _ writes: ProposedWrites
  ) throws(DatabaseError) -> Bool
}

/// A client's writes before their commit.
package struct ProposedWrites {
  /// One write.
  package struct Change: Sendable {
    package let write: ClientWrite
    /// The document before this write, with the writes before it.
    package let before: DocumentSnapshot
    /// The document after this write. A server timestamp reads as the present time.
    package let after: DocumentSnapshot
  }

  /// The writes in their order; without the last ones if a condition failed.
  package let changes: [Change]
  fileprivate let transaction: Transaction

  /// Another document, or one of those that are written.
  ///
  /// - Parameter afterWrites: whether to see it after all writes instead of before them.
  /// - Throws: as `DocumentReference.getDocument()`.
  package func document(
    at path: DocumentPath, afterWrites: Bool
  ) throws(DatabaseError) -> DocumentSnapshot {
    let reference = transaction.database.document(path)
    return afterWrites
      ? try transaction.getDocument(reference) : try transaction.getStoredDocument(reference)
  }
}

/// What a query must find when a client's writes are committed.
package struct ExpectedResult: Sendable {
  fileprivate let query: Query
  fileprivate let isExpected: @Sendable ([DocumentPath]) -> Bool

  /// - Parameter isExpected: whether the result may have these documents, in its order.
  package init(of query: Query, _ isExpected: @escaping @Sendable ([DocumentPath]) -> Bool) {
    self.query = query
    self.isExpected = isExpected
  }
}

extension Transaction {
  /// Throws `.failedPrecondition` unless a query finds what is expected, before any write.
  fileprivate func check(_ expected: ExpectedResult) throws(DatabaseError) {
    var found: [DocumentPath] = []
    for document in try getDocuments(expected.query).documents {
      found.append(try document.reference.place.get())
    }
    guard expected.isExpected(found) else {
      throw DatabaseError(
        .failedPrecondition,
        "other documents meet a query of the transaction now than those it was made for")
    }
  }

  /// Adds a client's write. It may be called again after it threw, as nothing was added then.
  ///
  /// - Parameters:
  ///   - earlier: what the commit's earlier writes do.
  ///   - guardian: nil when nobody needs to allow the writes.
  /// - Returns: the results of the write's transforms, and for a guard what the write does.
  func add(
    _ write: ClientWrite, _ compiled: DocumentWrite, after earlier: [ProposedWrites.Change],
    allowedBy guardian: (any WriteGuard)?
  ) throws(DatabaseError) -> (transformed: [Value], change: ProposedWrites.Change?) {
    guard let guardian else { return (try add(write, compiled), nil) }
    let reference = database.document(write.path)
    let before = try getDocument(reference)
    let transformed: [Value]
    do throws(DatabaseError) {
      transformed = try add(write, compiled)
    } catch {
      let writes = ProposedWrites(changes: earlier, transaction: self)
      guard missing == nil, try !guardian.mayRead(before, writes) else { throw error }
      throw .refused
    }
    let after = try getDocument(reference)
    return (transformed, ProposedWrites.Change(write: write, before: before, after: after))
  }

  /// Asks the guard about all writes, which have been added.
  func check(
    _ changes: [ProposedWrites.Change], with guardian: (any WriteGuard)?
  ) throws(DatabaseError) {
    try guardian?.check(ProposedWrites(changes: changes, transaction: self))
  }
}

extension DatabaseError {
  /// A refusal in Firestore's words, which do not say why.
  package static var refused: DatabaseError {
    DatabaseError(.permissionDenied, "Missing or insufficient permissions.")
  }
}

extension Database {
  /// Commits a client's writes as `commit(_:as:durability:)` does, if a guard allows them and
  /// queries find what they must.
  ///
  /// - Parameters:
  ///   - guardian: nil when nobody needs to allow the writes.
  ///   - expected: what queries must find before the writes.
  /// - Throws: as `commit(_:as:durability:)`, what the guard throws, and `.aborted` when other
  ///   commits changed what it had read a hundred times.
  /// - Complexity: as `runTransaction(attempts:durability:_:)`.
  package func commit(
    _ writes: [ClientWrite], as group: WriteGroup? = nil, allowedBy guardian: (any WriteGuard)?,
    expecting expected: [ExpectedResult] = []
  ) async throws(DatabaseError) -> ClientCommit {
    let writes = try ClientWrites(writes, now: try await seeBasis(of: writes))
    do {
      let (outcome, commit) = try await run(attempts: 100, durability: nil) {
        transaction -> ClientOutcome in
        var record: DocumentWrite?
        if let group {
          let (answer, known) = try transaction.answer(group, writes)
          if let answer { return .repeated(answer) }
          record = group.write(at: now(), after: known)
        }
        for one in expected { try transaction.check(one) }
        var (transformed, changes) = ([[Value]](), [ProposedWrites.Change]())
        for (write, compiled) in zip(writes.writes, writes.compiled) {
          let added = try transaction.add(
            write, compiled, after: changes, allowedBy: guardian)
          transformed.append(added.transformed)
          if let change = added.change { changes.append(change) }
        }
        try transaction.check(changes, with: guardian)
        if let record { try transaction.add(record) }
        return .committed([], transformed: transformed)
      }
      switch outcome {
      case .repeated(let known): return known
      case .committed(_, let transformed): return writes.answer(commit, transformed)
      }
    } catch {
      throw error as? DatabaseError ?? DatabaseError(.unknown, "\(error)")
    }
  }
}
