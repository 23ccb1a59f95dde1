// Commits of a client's writes: the write path of documents, which also answers what each write's
// transforms came to, as Firestore's protocol wants it.

internal import OndolEngine

/// What a client's commit came to.
package struct ClientCommit: Sendable {
  /// What one write came to.
  package struct Answer: Sendable {
    /// When the document changed last, by this write or before; nil when there is none any more.
    package let updateTime: Timestamp?
    /// What each transform stored, in their order. Null for those of arrays.
    package let transformed: [Value]
  }

  /// One for each write, in their order.
  package let answers: [Answer]
  /// When it was committed; the present, when there was nothing to change.
  package let time: Timestamp
}

/// Writes that are compiled, with what their transforms came to so far.
struct ClientWrites: Sendable {
  let writes: [ClientWrite]
  let compiled: [DocumentWrite]

  /// Throws what is wrong with the writes, whatever is stored.
  ///
  /// - Parameter now: microseconds since 1970.
  init(_ writes: [ClientWrite], now: Int64) throws(DatabaseError) {
    self.writes = writes
    var compiled: [DocumentWrite] = []
    compiled.reserveCapacity(writes.count)
    for write in writes {
      if case .updated(let time) = write.condition, time.microsecondsSince1970 > now {
        throw DatabaseError(
          .invalidArgument, "no document was updated at \(time), which is in the future",
          path: write.path.name)
      }
      compiled.append(try write.compiled())
    }
    self.compiled = compiled
  }

  /// What the commit tells the client.
  func answer(_ commit: CompletedCommit, _ transformed: [[Value]]) -> ClientCommit {
    let time = Timestamp(unchecked: commit.receipt?.time ?? commit.now)
    let updates = commit.updateTimes
    let answers = zip(writes, transformed).map { write, values in
      ClientCommit.Answer(
        updateTime: updates[write.path] ?? nil,
        transformed: values.map { $0.resolvingPending(with: time) })
    }
    return ClientCommit(answers: answers, time: time)
  }
}

extension ClientWrite {
  /// What the transforms of this write, the last so far, came to.
  func transformed(by preparation: WritePreparation) -> [Value] {
    transforms.map { transform in
      switch transform.value.operation {
      case .arrayUnion, .arrayRemove: .null
      default: preparation.value(at: transform.path, of: path) ?? .null
      }
    }
  }
}

extension Database {
  /// Commits a client's writes in their order, all or none. Several may be to one document.
  ///
  /// - Throws: `.invalidArgument` naming the document and the field; `.notFound`, `.alreadyExists`
  ///   or `.failedPrecondition` naming the document that is not as a write's condition says;
  ///   otherwise as `WriteBatch.commit(durability:)`.
  /// - Complexity: as `WriteBatch.commit(durability:)`.
  @concurrent
  package func commit(
    _ writes: [ClientWrite], durability: Durability? = nil
  ) async throws(DatabaseError) -> ClientCommit {
    // A commit's time may be a little ahead of the clock.
    let writes = try ClientWrites(writes, now: max(now(), engine.newestCommit.time))
    let (outcome, receipt) = try await commit(
      .documents(writes.compiled), durability: durability
    ) { (snapshot) throws(DatabaseError) in
      let stored = try await storedRows(of: writes.compiled, in: snapshot)
      let (prepared, transformed) = try await read(snapshot) { (rows) throws(DatabaseError) in
        var preparation = WritePreparation(rows)
        var transformed: [[Value]] = []
        for (place, write) in writes.compiled.enumerated() {
          try preparation.apply(write, stored?[place])
          transformed.append(writes.writes[place].transformed(by: preparation))
        }
        return (try preparation.finish(), transformed)
      }
      return Derivation(
        outcome: (documents: prepared.documents, transformed: transformed),
        batch: prepared.batch, consequences: prepared.consequences)
    }
    let commit = CompletedCommit((outcome.documents, receipt), in: self)
    return writes.answer(commit, outcome.transformed)
  }

  /// Commits one write.
  ///
  /// - Returns: the document as the write left it; one that does not `exist` after a delete.
  /// - Throws: as `commit(_:durability:)`.
  package func write(_ write: ClientWrite) async throws(DatabaseError) -> DocumentSnapshot {
    let reference = document(write.path)
    let result = try await self.write(
      reference, write.compiled().intent, returning: .after, durability: nil)
    return result.after ?? DocumentSnapshot(reference: reference, contents: nil)
  }
}
