// The one way from a picture of the database to an acknowledged commit:
//
//   queue    for what one writer at a time works on
//   derive   a batch from a snapshot
//   commit   the engine refuses the batch when anything it was derived from has changed; then from
//            a new snapshot again, after giving way to those who came first
//   follow   the catalog has what the commit changed of it, and who waits for the rest is told
//
// Documents, batches, transactions, the tree, uploads and upkeep differ in what they derive, and in
// whom they queue with (CommitQueue). Up to the commit's place in the order of commits, cancelling
// the task throws `.cancelled` and nothing has happened; after it, the write completes.

internal import OndolEngine

/// What one attempt wants committed.
struct Derivation<Outcome> {
  /// What the commit is to tell its caller, beside its place.
  var outcome: Outcome
  /// Nothing is committed when it is empty.
  var batch: Batch
  var consequences = CommitConsequences()
  /// The root collections it has to do with, whose gates are closed when others come first.
  var roots: Set<ExactText> = []
  /// Those it writes to, whose gates it has to pass.
  var writtenRoots: () -> Set<ExactText> = { [] }
  /// Contents put for this attempt alone, which the commit makes stored.
  var contents: [StagedContent] = []

  /// Gives the batch away. Whoever commits it fills in its stamps, which copies all of its bytes
  /// when they are still held here.
  fileprivate mutating func takeBatch() -> Batch {
    var batch = Batch()
    swap(&batch, &self.batch)
    return batch
  }
}

/// What follows from a commit.
struct CommitConsequences: Sendable {
  /// What it changes of the catalog, or repeats of its last change.
  var edits: [CatalogEdit] = []
  /// A family that is no more.
  var forgotten: Family?
  /// Root collections whose documents are read in another way from this commit on.
  var rereadRoots: [String] = []
  /// The moment the first of the documents ends.
  var firstEnd: Int64?
  /// Whether it lets go of contents.
  var releasesContents = false
  /// Documents whose words it puts, by index.
  var searched: [SearchedIndex: Int] = [:]
}

extension Database {
  /// Commits what `derive` makes of a snapshot, which may be asked several times. Answers with the
  /// outcome of the attempt that was committed, and no receipt when there was nothing to commit.
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
      // It did not come as far as to be sent.
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
  /// When the call has waited for a server for long enough.
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
      // Whoever changes the catalog waits for its turn, and then looks again what there is to
      // change.
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

  /// Whether something was committed elsewhere, by the time this is asked first, that the snapshot
  /// lacks: nobody else looks at what commits nothing, such as a transaction that only reads.
  private mutating func hasNews(behind snapshot: Snapshot) async throws(DatabaseError) -> Bool {
    guard database.engine.isOnStore, !hasLookedForNews else { return false }
    hasLookedForNews = true
    try await database.refresh()
    return database.engine.newestCommit.sequence != snapshot.sequence
  }

  /// Lets go of all that others wait for.
  mutating func leave() {
    contention.end(in: database)
    queue.leave()
  }
}

extension Database {
  /// Commits the batch, and sees to what follows; nil when what it was derived from has changed.
  /// On a server both go on to their end when nobody waits for them any more.
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
    // Given away, so that nobody else holds its bytes when its stamps are filled in.
    let parcel = Guarded<Batch?>(batch)
    batch = Batch()
    let waited = await patience.wait(until: end) { [self] () async -> WriteResult in
      var batch = Batch()
      if let given = parcel.withLock({ $0.take() }) { batch = given }
      do throws(DatabaseError) {
        return .success(try await commit(batch, consequences, contents, durability))
      } catch {
        // Unless it is known better, it was not even sent.
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
    // What was derived may have taken the app's code long.
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
  }
}
