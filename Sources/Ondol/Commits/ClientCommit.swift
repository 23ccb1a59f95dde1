// Commits of a client's writes: the write path of documents. It also returns the result of each
// write's transforms, as Firestore's protocol requires.

internal import OndolEngine

/// The result of a client's commit.
package struct ClientCommit: Sendable {
  /// The result of one write.
  package struct Answer: Sendable {
    /// When the document last changed, by this write or before; nil when it does not exist any
    /// more.
    package let updateTime: Timestamp?
    /// The value that each transform stored, in their order. Null for those of arrays.
    package let transformed: [Value]
  }

  /// One for each write, in their order.
  package let answers: [Answer]
  /// When it was committed; the current time when there was nothing to change.
  package let time: Timestamp
}

/// Compiled writes, with the results of their transforms so far.
struct ClientWrites: Sendable {
  let writes: [ClientWrite]
  let compiled: [DocumentWrite]

  /// Throws the errors of the writes that do not depend on what is stored.
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

  /// What is recorded of a group, and the answer to one that is committed already, from the present
  /// documents.
  ///
  /// Throws the error of a group that was refused already, and `ForeignGroup.error`.
  func answer(
    _ group: WriteGroup, in rows: Rows
  ) throws(DatabaseError) -> (answer: ClientCommit?, record: WriteStreamRecord?) {
    guard let record = try rows.record(of: group) else { return (nil, nil) }
    switch record.knowledge(of: group) {
    case .new: return (nil, record)
    case .refused(let error): throw error
    case .foreign: throw ForeignGroup.error
    case .committed(let time): return (try repeated(committed: time, group, in: rows), record)
    }
  }

  /// The answer to a group that was committed at a time.
  private func repeated(
    committed time: Timestamp, _ group: WriteGroup, in rows: Rows
  ) throws(DatabaseError) -> ClientCommit {
    let reader = DocumentReader(rows: rows)
    var answers: [ClientCommit.Answer] = []
    for write in writes {
      let contents = try reader.contents(of: write.path)
      var updateTime = contents?.stamps.updateTime
      // Later changes are not what this group came to.
      if group.name != nil {
        let isGone = write.isDelete || write.isVerify && contents == nil
        updateTime = isGone ? nil : min(updateTime ?? time, time)
      }
      answers.append(
        ClientCommit.Answer(
          updateTime: updateTime, transformed: write.transformed { contents?.value(at: $0) }))
    }
    return ClientCommit(answers: answers, time: time)
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

/// What a client's commit leaves for its answer.
enum ClientOutcome: Sendable {
  case committed([WrittenDocument], transformed: [[Value]])
  case repeated(ClientCommit)
}

extension ClientWrites {
  /// Prepares the writes, and the one that records their group.
  fileprivate func prepare(
    _ record: DocumentWrite?, _ stored: StoredRows?, in rows: Rows
  ) throws(DatabaseError) -> (PreparedCommit, transformed: [[Value]]) {
    var preparation = WritePreparation(rows)
    var transformed: [[Value]] = []
    for (place, write) in compiled.enumerated() {
      try preparation.apply(write, stored?[place])
      transformed.append(writes[place].transformed(by: preparation))
    }
    if let record { try preparation.apply(record, stored?[compiled.count]) }
    return (try preparation.finish(), transformed)
  }
}

extension ClientWrite {
  /// What the transforms of this write came to, by what the document has at their paths.
  fileprivate func transformed(_ value: (FieldNames) -> Value?) -> [Value] {
    transforms.map { transform in
      switch transform.value.operation {
      case .arrayUnion, .arrayRemove: .null
      default: value(transform.path) ?? .null
      }
    }
  }

  /// The same, of the last write so far.
  func transformed(by preparation: WritePreparation) -> [Value] {
    transformed { preparation.value(at: $0, of: path) }
  }
}

extension Database {
  /// Commits a client's writes in their order, all or none. Several may be to one document.
  ///
  /// - Parameter group: which group of a stream these are. A group that is committed already is not
  ///   committed again: the answer then has the documents' present values. One that was refused is
  ///   refused again.
  /// - Throws: `.invalidArgument` naming the document and the field; `.notFound`, `.alreadyExists`
  ///   or `.failedPrecondition` naming the document that is not as a write's condition says;
  ///   otherwise as `WriteBatch.commit(durability:)`.
  /// - Complexity: as `WriteBatch.commit(durability:)`.
  @concurrent
  package func commit(
    _ writes: [ClientWrite], as group: WriteGroup? = nil, durability: Durability? = nil
  ) async throws(DatabaseError) -> ClientCommit {
    let writes = try ClientWrites(writes, now: try await seeBasis(of: writes))
    let all = writes.compiled + (group.map { [$0.place] } ?? [])
    let (outcome, receipt) = try await commit(
      .documents(all), durability: durability
    ) { (snapshot) throws(DatabaseError) in
      var record: DocumentWrite?
      if let group {
        let moment = now()
        let (answer, known) = try await read(snapshot, asOf: moment) {
          (rows) throws(DatabaseError) in try writes.answer(group, in: rows)
        }
        if let answer { return Derivation(outcome: ClientOutcome.repeated(answer), batch: Batch()) }
        record = group.write(at: moment, after: known)
      }
      let stored = try await storedRows(of: all, in: snapshot)
      let (prepared, transformed) = try await read(snapshot) {
        [record] (rows) throws(DatabaseError) in
        try writes.prepare(record, stored, in: rows)
      }
      return Derivation(
        outcome: .committed(prepared.documents, transformed: transformed), batch: prepared.batch,
        consequences: prepared.consequences)
    }
    switch outcome {
    case .repeated(let commit): return commit
    case .committed(let documents, let transformed):
      return writes.answer(CompletedCommit((documents, receipt), in: self), transformed)
    }
  }

  /// Sees what other processes of the store may have committed for these writes: contents, which
  /// would count as missing, and states of documents that a client has seen there, which would
  /// count as others.
  ///
  /// - Returns: the latest time, in microseconds since 1970, at which a document can have been
  ///   updated. A commit's time may be ahead of this process's clock.
  func seeBasis(of writes: [ClientWrite]) async throws(DatabaseError) -> Int64 {
    if isOnStore {
      let newest = engine.newestCommit.time
      let isBehind = writes.contains { write in
        if case .updated(let time) = write.condition, time.microsecondsSince1970 > newest {
          return true
        }
        return !write.contents.isEmpty
      }
      if isBehind { try await refresh() }
    }
    return max(now(), engine.newestCommit.time)
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
