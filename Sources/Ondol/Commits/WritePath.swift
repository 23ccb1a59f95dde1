// The write path of documents, from the caller to the committer:
//
//   compile    on the caller, without suspension: WriteCompiler refuses invalid arguments
//   derive     WritePreparation makes a batch from a snapshot and the writes
//   commit     Committer, which asks for another derivation when other commits came first

package import OndolEngine

extension Database {
  /// The private half of every public write of one document: compiled on the caller, carried out
  /// here.
  func write(
    _ reference: DocumentReference, _ intent: WriteIntent, returning: Returning,
    durability: Durability?
  ) async throws(DatabaseError) -> WriteResult {
    let write = DocumentWrite(path: try reference.place.get(), intent: intent)
    let commit = try await commit([write], durability: durability)
    return commit.result(of: write.path, in: self, returning: returning)
  }

  /// Commits the writes, all or none, and makes their contents stored.
  func commit(
    _ writes: [DocumentWrite], bringing contents: [StagedContent], durability: Durability?
  ) async throws(DatabaseError) -> CompletedCommit {
    do throws(DatabaseError) {
      let commit = try await commit(writes, durability: durability, bringing: contents)
      for content in contents { content.finish(after: nil) }
      return commit
    } catch {
      for content in contents { content.finish(after: error) }
      throw error
    }
  }

  /// Commits the writes, all or none.
  @concurrent
  func commit(
    _ writes: [DocumentWrite], durability: Durability?, bringing contents: [StagedContent] = []
  ) async throws(DatabaseError) -> CompletedCommit {
    try refuseWriteInTransaction(writes.first.map { "\($0.path)" })
    let commit = try await commit(.documents(writes), durability: durability) {
      (snapshot) throws(DatabaseError) in
      let stored = try await storedRows(of: writes, in: snapshot)
      return Derivation(
        try await read(snapshot) { (rows) throws(DatabaseError) in
          try WritePreparation.prepare(writes, of: stored, bringing: contents, in: rows)
        })
    }
    return CompletedCommit(commit, in: self)
  }
}

extension Derivation<[WrittenDocument]> {
  init(_ prepared: consuming PreparedCommit) {
    outcome = prepared.documents
    batch = prepared.batch
    consequences = prepared.consequences
  }
}

/// A commit that was acknowledged, or that had nothing to change.
package struct CompletedCommit: Sendable {
  let documents: [WrittenDocument]
  /// Nil when nothing was changed.
  package let receipt: CommitReceipt?
  /// The current time, when nothing was changed.
  let now: Int64

  init(
    _ commit: (outcome: [WrittenDocument], receipt: CommitReceipt?), in database: Database
  ) {
    documents = commit.outcome
    receipt = commit.receipt
    now = receipt == nil ? database.now() : 0
  }

  /// The result for the app about one of the documents.
  func result(
    of path: DocumentPath, in database: Database, returning: Returning
  ) -> WriteResult {
    guard let document = documents.first(where: { $0.path == path }) else {
      preconditionFailure("the commit did not write \(path)")
    }
    let reference = DocumentReference(database: database, place: .success(path))
    let stamps = stamps(of: document)
    return WriteResult(
      version: stamps.version, commitTime: stamps.updateTime,
      before: returning.contains(.before)
        ? DocumentSnapshot(reference: reference, contents: document.before) : nil,
      after: returning.contains(.after)
        ? DocumentSnapshot(reference: reference, contents: contents(document, stamps)) : nil,
      change: FieldChange(
        before: document.visible, after: document.after, time: stamps.updateTime))
  }

  /// When each document last changed; nil for one that does not exist.
  var updateTimes: [DocumentPath: Timestamp?] {
    Dictionary(
      documents.map { ($0.path, $0.after == nil ? nil : stamps(of: $0).updateTime) },
      uniquingKeysWith: { first, _ in first })
  }

  private func stamps(of document: WrittenDocument) -> DocumentStamps {
    guard let receipt, document.isChanged else {
      let time = Timestamp(unchecked: now)
      return document.before?.stamps
        ?? DocumentStamps(version: .missing, updateTime: time, createTime: time)
    }
    let time = Timestamp(unchecked: receipt.time)
    return DocumentStamps(
      version: Version(rawValue: receipt.sequence.rawValue), updateTime: time,
      createTime: document.before?.stamps.createTime ?? time)
  }

  /// The document after the commit, with nothing pending.
  private func contents(
    _ document: WrittenDocument, _ stamps: DocumentStamps
  ) -> DocumentSnapshot.Contents? {
    document.after.map { after in
      DocumentSnapshot.Contents(
        stamps: stamps, fields: after.all.mapValues { $0.resolvingPending(with: stamps.updateTime) }
      )
    }
  }
}

extension Duration {
  /// Whole microseconds, never negative, without overflow.
  var microseconds: Int64 {
    let (seconds, attoseconds) = components
    if seconds < 0 || attoseconds < 0 { return 0 }
    if seconds > .max / 2_000_000 { return .max }
    return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
  }
}

extension OndolEngine.Durability {
  init(_ durability: Durability) {
    switch durability {
    case .memory: self = .memory
    case .process: self = .process
    case .periodic(let pause): self = .periodic(microseconds: pause.microseconds)
    case .power: self = .power
    }
  }
}
