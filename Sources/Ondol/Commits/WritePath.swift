// The write path from the caller's hands to the acknowledged commit:
//
//   compile    on the caller, without suspension: WriteCompiler refuses what is wrong
//   queue      one latch a document, so that writers of one document do not race
//   prepare    WritePreparation derives a batch from a snapshot
//   commit     the engine refuses the batch when something it was derived from has changed; then
//              from the snapshot again
//
// Up to the commit's place in the order of commits, cancelling the task throws `.cancelled` and
// nothing has happened; after it, the write completes.

package import OndolEngine

extension Database {
  /// Compiled on the caller, done here: the private half of every public write of one document.
  func write(
    _ reference: DocumentReference, _ intent: WriteIntent, returning: Returning,
    durability: Durability?
  ) async throws(DatabaseError) -> WriteResult {
    let write = DocumentWrite(path: try reference.place.get(), intent: intent)
    let commit = try await commit([write], durability: durability)
    return commit.result(of: write.path, in: self, returning: returning)
  }

  /// Commits the writes, all or none, and makes the contents stored that they bring.
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
    await passGates(of: Set(writes.map(\.path.segments[0])))
    var queue = WriteQueue(latches)
    do throws(DatabaseError) {
      try await queue.enterDocuments(of: writes)
      let commit = try await commitInTurn(
        writes, contents, durability: durability ?? options.durability, &queue)
      queue.leave()
      return commit
    } catch {
      queue.leave()
      throw error
    }
  }

  private func commitInTurn(
    _ writes: [DocumentWrite], _ contents: [StagedContent], durability: Durability,
    _ queue: inout WriteQueue
  ) async throws(DatabaseError) -> CompletedCommit {
    while true {
      try refuseWhenCancelled("nothing was written")
      var prepared = try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
        try WritePreparation.prepare(writes, bringing: contents, in: rows)
      }
      guard !prepared.batch.isEmpty else {
        return CompletedCommit(documents: prepared.documents, receipt: nil, now: now())
      }
      // Whoever changes the catalog waits for its turn, and then looks again what there is to
      // change.
      if !prepared.changedFamilies.isEmpty, !queue.hasFamilies {
        try await queue.enterFamilies(of: writes)
        continue
      }
      do throws(EngineError) {
        let receipt = try await engine.commit(
          prepared.takeBatch(), durability: OndolEngine.Durability(durability))
        for family in prepared.changedFamilies { catalog.install(family, at: receipt.sequence) }
        if let end = prepared.firstEnd { reap(by: end) }
        if prepared.releasesContents { self.contents.reclaimer.noteRelease() }
        return CompletedCommit(documents: prepared.documents, receipt: receipt, now: 0)
      } catch .stale {
        // The catalog changed under the batch. The change is visible once its writer has left the
        // queue.
        if !queue.hasFamilies { try await queue.enterFamilies(of: writes) }
      } catch {
        throw DatabaseError(error)
      }
    }
  }
}

/// The latches one commit holds.
private struct WriteQueue {
  private let latches: Latches
  private var held: [LatchKey] = []
  private(set) var hasFamilies = false

  init(_ latches: Latches) {
    self.latches = latches
  }

  /// All at once where nobody else writes any of the documents; otherwise one after the other, in
  /// the order in which all who queue do so.
  mutating func enterDocuments(of writes: [DocumentWrite]) async throws(DatabaseError) {
    guard writes.count > 1 else {
      for write in writes { try await enter(.document(write.path)) }
      return
    }
    if let taken = latches.acquireAtOnce(writes.lazy.map { LatchKey.document($0.path) }) {
      held = taken
      return
    }
    for path in Set(writes.map(\.path)).sorted() { try await enter(.document(path)) }
  }

  mutating func enterFamilies(of writes: [DocumentWrite]) async throws(DatabaseError) {
    hasFamilies = true
    let roots = Set(writes.map { ExactText($0.path.segments[0]) })
    for root in roots.sorted(by: { ValueOrder.compare($0.text, $1.text) < 0 }) {
      try await enter(.family(root))
    }
  }

  mutating func enter(_ key: LatchKey) async throws(DatabaseError) {
    try await latches.acquire(key)
    held.append(key)
  }

  mutating func leave() {
    latches.release(held)
    held = []
  }
}

/// A commit that was acknowledged, or that had nothing to change.
package struct CompletedCommit: Sendable {
  let documents: [WrittenDocument]
  /// Nil when nothing was changed.
  package let receipt: CommitReceipt?
  /// The time when nothing was changed.
  let now: Int64

  /// What the app is told about one of the documents.
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

  /// The document after the commit, nothing pending any more.
  private func contents(
    _ document: WrittenDocument, _ stamps: DocumentStamps
  ) -> DocumentSnapshot.Contents? {
    document.after.map { after in
      DocumentSnapshot.Contents(
        stamps: stamps, fields: after.all.mapValues { $0.resolvingPending(with: stamps.updateTime) })
    }
  }
}

extension Duration {
  /// Whole microseconds, none below zero, and nothing that overflows.
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
