// The only way from a snapshot to an acknowledged commit:
//
//   queue    for what only one writer at a time may change
//   derive   a batch from a snapshot
//   commit   the engine refuses the batch when anything it was derived from has changed; then again
//            from a new snapshot, after letting the other commits finish
//   follow   the catalog applies its changes of the commit, and listeners are notified
//
// Documents, batches, transactions, the tree, uploads and upkeep differ in what they derive, and in
// whom they queue with (CommitQueue). Until the commit has its place in the order of commits,
// cancelling the task throws `.cancelled` and nothing has happened. After that, the write
// completes.

internal import OndolEngine

/// What one attempt wants to commit.
struct Derivation<Outcome> {
  /// What the commit returns to its caller, apart from its place.
  var outcome: Outcome
  /// Nothing is committed when it is empty.
  var batch: Batch
  var consequences = CommitConsequences()
  /// The root collections it concerns. Their gates are closed when others come first.
  var roots: Set<ExactText> = []
  /// The root collections it writes to. It must pass their gates.
  var writtenRoots: () -> Set<ExactText> = { [] }
  /// Contents put for this attempt alone, which the commit makes stored.
  var contents: [StagedContent] = []

  /// Moves the batch out. The engine fills in its stamps, and that would copy all of its bytes
  /// while they are also referenced here.
  fileprivate mutating func takeBatch() -> Batch {
    var batch = Batch()
    swap(&batch, &self.batch)
    return batch
  }
}

/// The consequences of a commit.
struct CommitConsequences: Sendable {
  /// Its changes of the catalog, or repetitions of the last change.
  var edits: [CatalogEdit] = []
  /// A family that was removed.
  var forgotten: Family?
  /// Root collections whose documents are read in another way from this commit on.
  var rereadRoots: [String] = []
  /// The earliest expiry of its documents.
  var firstEnd: Int64?
  /// Whether it releases contents.
  var releasesContents = false
  /// The number of documents whose words it stores, by index.
  var searched: [SearchedIndex: Int] = [:]
  /// What a witness has added to it.
  var witnessed: WitnessedRows?
  /// What it changes for synchronisation.
  var synced: SyncedChanges?
}

extension Database {
  /// Commits what `derive` makes of a snapshot. `derive` may be called several times. Returns the
  /// outcome of the committed attempt, and no receipt when there was nothing to commit.
  ///
  /// - Parameter durability: what the commit survives; the database's own when nil.
  func commit<Outcome>(
    _ kind: CommitKind, durability: Durability?,
    _ derive: (Snapshot) async throws(DatabaseError) -> Derivation<Outcome>
  ) async throws(DatabaseError) -> (outcome: Outcome, receipt: CommitReceipt?) {
    var committer = Committer(
      self, kind, OndolEngine.Durability(durability ?? options.durability))
    let start = commitTimes.begin(now)
    do throws(DatabaseError) {
      let commit = try await committer.run(derive)
      committer.leave()
      if commit.receipt != nil { commitTimes.end(start, now) }
      return commit
    } catch {
      committer.leave()
      guard error.code == .deadlineExceeded, error.pendingWrite == nil else { throw error }
      // It was never sent.
      throw PendingWrite.nothing(error)
    }
  }
}

/// One commit, from its first attempt to its last.
private struct Committer {
  private let database: Database
  private let durability: OndolEngine.Durability
  private var queue: CommitQueue
  private var contention: Contention
  private var hasLookedForNews = false
  /// When the call stops waiting for a server.
  private let end: PatienceEnd?

  init(_ database: Database, _ kind: CommitKind, _ durability: OndolEngine.Durability) {
    self.database = database
    self.durability = durability
    queue = CommitQueue(kind, database.latches)
    contention = Contention(kind)
    end = database.engine.patience?.begin()
  }

  mutating func run<Outcome>(
    _ derive: (Snapshot) async throws(DatabaseError) -> Derivation<Outcome>
  ) async throws(DatabaseError) -> (outcome: Outcome, receipt: CommitReceipt?) {
    await database.passGates(of: queue.gates)
    try await queue.enter()
    while true {
      try refuseWhenCancelled("nothing was written")
      contention.begin(in: database)
      let snapshot = try database.engineSnapshot()
      var derivation = try await derive(snapshot)
      guard !derivation.batch.isEmpty else {
        if try await hasNews(behind: snapshot) { continue }
        return (derivation.outcome, nil)
      }
      // A writer that changes the catalog waits for its turn, and then determines its changes
      // again.
      if !derivation.consequences.edits.isEmpty, try await queue.enterFamilies() { continue }
      if queue.isOptimistic, !contention.hasGates {
        await database.passGates(of: derivation.writtenRoots())
      }
      let receipt = try await database.commit(
        derivation.takeBatch(), derivation.consequences, derivation.contents, durability,
        until: end)
      if let receipt { return (derivation.outcome, receipt) }
      // The catalog changed under the batch. The change is visible once its writer has left the
      // queue.
      if try await queue.enterFamilies() { continue }
      try await contention.giveWay(for: derivation.roots, in: database)
    }
  }

  /// Whether, by the time of the first call, another process has committed something that the
  /// snapshot lacks. Without a commit of its own, such as for a transaction that only reads,
  /// nothing else checks this.
  private mutating func hasNews(behind snapshot: Snapshot) async throws(DatabaseError) -> Bool {
    guard database.engine.isOnStore, !hasLookedForNews else { return false }
    hasLookedForNews = true
    try await database.refresh()
    return database.engine.newestCommit.sequence != snapshot.sequence
  }

  /// Releases everything that other writers wait for.
  mutating func leave() {
    contention.end(in: database)
    queue.leave()
  }
}

extension Database {
  /// Commits the batch and carries out its consequences; nil when what it was derived from has
  /// changed. On a server, both complete even when the caller no longer waits.
  @concurrent
  fileprivate func commit(
    _ batch: consuming Batch, _ consequences: CommitConsequences,
    _ contents: [StagedContent], _ durability: OndolEngine.Durability, until end: PatienceEnd?
  ) async throws(DatabaseError) -> CommitReceipt? {
    guard let patience = engine.patience else {
      return try await commit(batch, consequences, contents, durability)
    }
    try refuseWhenCancelled("nothing was written")
    let ticket = CommitTicket()
    batch.ticket = ticket
    // Moved out, so that nothing else references its bytes when its stamps are filled in.
    let parcel = Guarded<Batch?>(batch)
    batch = Batch()
    let waited = await patience.wait(until: end) { [self] () async -> WriteResult in
      var batch = Batch()
      if let given = parcel.withLock({ $0.take() }) { batch = given }
      do throws(DatabaseError) {
        return .success(try await commit(batch, consequences, contents, durability))
      } catch {
        // Unless something else is known, it was not even sent.
        ticket.settle(.notCommitted)
        return .failure(error)
      }
    }
    let words = patience.words(for: path)
    switch waited {
    case .done(let result): return try result.get()
    case .late: throw PendingWrite.error(.deadlineExceeded, words, ticket)
    case .cancelled: throw PendingWrite.error(.cancelled, "the task was cancelled", ticket)
    }
  }

  private typealias WriteResult = Result<CommitReceipt?, DatabaseError>

  private func commit(
    _ batch: consuming Batch, _ consequences: CommitConsequences,
    _ contents: [StagedContent], _ durability: OndolEngine.Durability
  ) async throws(DatabaseError) -> CommitReceipt? {
    do throws(DatabaseError) {
      let receipt = try await commit(batch, consequences, durability)
      let failure = receipt == nil ? DatabaseError(.aborted, "others came first") : nil
      for content in contents { content.finish(after: failure) }
      return receipt
    } catch {
      for content in contents { content.finish(after: error) }
      throw error
    }
  }

  private func commit(
    _ batch: consuming Batch, _ consequences: CommitConsequences,
    _ durability: OndolEngine.Durability
  ) async throws(DatabaseError) -> CommitReceipt? {
    // Deriving may have run the app's code for a long time.
    try refuseWhenCancelled("nothing was written")
    for root in consequences.rereadRoots { catalog.beginChange(of: root) }
    defer { for root in consequences.rereadRoots { catalog.endChange(of: root) } }
    let receipt = try await engine.commitUnlessStale(batch, durability: durability)
    if let receipt { follow(receipt, consequences) }
    return receipt
  }

  private func follow(_ receipt: CommitReceipt, _ consequences: CommitConsequences) {
    for var edit in consequences.edits {
      edit.resolve(receipt.sequence)
      catalog.install(edit.family, at: receipt.sequence)
    }
    if let family = consequences.forgotten { catalog.forget(family, at: receipt.sequence) }
    if let end = consequences.firstEnd { reap(by: end) }
    if !consequences.searched.isEmpty { searches.note(consequences.searched, in: self) }
    if consequences.releasesContents { self.contents.reclaimer.noteRelease() }
    if let changes = consequences.synced { observers.synced.note(changes, at: receipt.sequence) }
    if let rows = consequences.witnessed { catalog.witness?.committed(rows) }
  }
}
