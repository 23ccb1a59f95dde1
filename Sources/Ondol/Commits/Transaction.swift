// Reads and writes in isolation. The writes are kept here, applied to the transaction's snapshot,
// and become one batch at the end. Reads record what they looked at, and the commit is refused when
// any of that has changed. TransactionRun then tries again.
//
// A read that needs data from disk does not wait on the body's actor: it throws and records what to
// load, and the body runs again once that is in memory.
//
// A written document is read back from the writes. A query after a write runs on the same rows with
// the writes' rows on top, indexes included, so it needs no rules of its own.

internal import OndolEngine

/// What the body of `Database.runTransaction` reads and writes with.
///
/// All reads see one moment, with the transaction's own writes on top. Reads and writes may come in
/// any order, and queries are possible. Firestore's clients allow none of this. Nothing is visible
/// to others before the whole transaction is committed. The calls do not suspend, and do not wait
/// for a disk. A call that would have to wait throws `.unavailable`, and the body runs again once
/// the data is in memory, however it handles the error.
///
/// A transaction is valid only within the body that receives it, and is not `Sendable`: any later
/// call throws `.failedPrecondition`.
public final class Transaction {
  let database: Database
  /// The rows before the transaction's writes.
  private(set) var base: Rows
  private var preparation: WritePreparation
  private var tree: TreePreparation
  private(set) var footprint = Footprint()
  /// The base with all writes so far on top, once a query has needed it.
  private var overlay: Rows?
  private var isOver = false
  /// Loads from disk what a call lacked; nil while no call lacked anything.
  private(set) var missing: Warming?

  /// Loads what must be in memory.
  typealias Warming = @Sendable (Rows) throws(DatabaseError) -> Void

  /// Reads `rows`; blocks if they may.
  init(_ database: Database, _ rows: Rows) {
    self.database = database
    base = rows.atOneMoment
    preparation = WritePreparation(base)
    tree = TreePreparation(base)
  }

  // MARK: - Reading

  /// The document as of the transaction's moment, or as the transaction has written it; a snapshot
  /// that does not `exist` when there is none.
  ///
  /// A written document keeps its previous version. A server timestamp reads as the current time,
  /// and becomes the commit's.
  ///
  /// - Throws: as `DocumentReference.getDocument()`; `.failedPrecondition` when the transaction is
  ///   over.
  public func getDocument(
    _ reference: DocumentReference
  ) throws(DatabaseError) -> DocumentSnapshot {
    let path = try check(reference)
    if let written = preparation.document(at: path) {
      return DocumentSnapshot(reference: reference, contents: contents(written))
    }
    return try getStoredDocument(reference)
  }

  /// The document as of the transaction's moment, without the transaction's own writes. It counts
  /// as read.
  func getStoredDocument(
    _ reference: DocumentReference
  ) throws(DatabaseError) -> DocumentSnapshot {
    let path = try check(reference)
    do throws(DatabaseError) {
      try footprint.add(path, in: base)
      let contents = try DocumentReader(rows: base).contents(of: path)
      return DocumentSnapshot(reference: reference, contents: contents).marked(in: database)
    } catch {
      throw noting(error) { (rows) throws(DatabaseError) in try rows.warm(path) }
    }
  }

  /// The document as a `Decodable` type.
  ///
  /// - Throws: as `getDocument(_:)` and `DocumentSnapshot.data(as:)`.
  public func getDocument<Content: Decodable>(
    _ reference: DocumentReference, as type: Content.Type,
    decoder: DocumentDecoder = DocumentDecoder()
  ) throws(DatabaseError) -> Content {
    try getDocument(reference).data(as: type, decoder: decoder)
  }

  /// The documents that the query finds, including those the transaction has written. If other
  /// commits make documents match or cease to match before this one commits, the transaction runs
  /// again. Any other write to the collection has the same effect, unless the query names documents
  /// by their ids.
  ///
  /// - Throws: as `QuerySource.getDocuments()`; `.failedPrecondition` when the transaction is over.
  /// - Complexity: as `QuerySource.getDocuments()`; after a write, also O(n log n) in the writes so
  ///   far.
  public func getDocuments(_ source: some QuerySource) throws(DatabaseError) -> QuerySnapshot {
    let query = source.query
    do throws(DatabaseError) {
      var executor = try executor(of: query)
      let found = try documents(of: &executor)
      return QuerySnapshot(
        query: query, documents: found, try executor.end(of: found),
        unreadable: executor.unreadable)
    } catch {
      throw noting(error) { [database] (rows) throws(DatabaseError) in
        var executor = try Executor(try query.shape.get(), in: database, rows)
        _ = try executor.documents()
      }
    }
  }

  /// The documents that the query finds, completed with those they refer to. Referenced documents,
  /// existing or missing, also count as read.
  ///
  /// - Throws: as `LookupQuery.getDocuments()`; `.failedPrecondition` when the transaction is over.
  /// - Complexity: as `LookupQuery.getDocuments()`; after a write, also O(n log n) in the writes so
  ///   far.
  public func getDocuments(_ lookup: LookupQuery) throws(DatabaseError) -> QuerySnapshot {
    do throws(DatabaseError) {
      var executor = try executor(of: lookup.query)
      let found = try documents(of: &executor)
      let end = try executor.end(of: found, keepsKeys: true)
      let completed = try lookup.complete(found, executor.rows)
      for path in completed.referred.keys { try footprint.add(path, in: base) }
      return QuerySnapshot(
        query: lookup.query, documents: completed.documents, end,
        unreadable: executor.unreadable.adding(completed.unreadable, in: database))
    } catch {
      throw noting(error) { (rows) throws(DatabaseError) in _ = try lookup.find(in: rows) }
    }
  }

  /// Numbers about a result, including the transaction's own writes. If another commit changes them
  /// before this one commits, the transaction runs again, as with `getDocuments(_:)`.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`; `.failedPrecondition` when the transaction is
  ///   over.
  /// - Complexity: as `AggregateQuery.getAggregation()`; after a write, also O(n log n) in the
  ///   writes so far.
  public func getAggregation(
    _ aggregate: AggregateQuery
  ) throws(DatabaseError) -> AggregateQuerySnapshot {
    do throws(DatabaseError) {
      var executor = try executor(of: aggregate.query)
      return try aggregate.aggregate(&executor)
    } catch {
      throw noting(error) { [database] (rows) throws(DatabaseError) in
        var executor = try Executor(try aggregate.query.shape.get(), in: database, rows)
        _ = try aggregate.aggregate(&executor)
      }
    }
  }

  /// Numbers about the groups of a result; see `getAggregation(_:)`.
  ///
  /// - Throws: as `getAggregation(_:)`.
  public func getAggregation(
    _ groups: GroupedAggregateQuery
  ) throws(DatabaseError) -> [AggregateGroup] {
    do throws(DatabaseError) {
      var executor = try executor(of: groups.aggregate.query)
      return try groups.groups(&executor)
    } catch {
      throw noting(error) { [database] (rows) throws(DatabaseError) in
        var executor = try Executor(try groups.aggregate.query.shape.get(), in: database, rows)
        _ = try groups.groups(&executor)
      }
    }
  }

  /// An executor of the query on top of the writes so far; records what it reads.
  private func executor(of query: Query) throws(DatabaseError) -> Executor {
    try check(query.database, "")
    let executor = try Executor(try query.shape.get(), in: database, try currentRows())
    footprint.add(executor)
    footprint.note(query, in: base)
    return executor
  }

  /// The rows for a query on top of the writes so far; records what it may read.
  func noteRead(of query: Query) throws(DatabaseError) -> Rows {
    try executor(of: query).rows
  }

  /// Records what a pipeline reads.
  func noteRead(of read: PipelineRead) throws(DatabaseError) {
    switch read {
    case .query(let executor): footprint.add(executor)
    case .document(let path): try footprint.add(path, in: base)
    }
  }

  /// The documents it finds; written ones have their previous stamps.
  private func documents(
    of executor: inout Executor
  ) throws(DatabaseError) -> [DocumentSnapshot] {
    let shape = executor.shape
    let isWitnessed = base.catalog.seat.isOccupied
    return try executor.documents().map { document in
      guard let path = try? document.reference.place.get() else { return document }
      if isWitnessed { footprint.note(path, in: base) }
      guard let written = preparation.document(at: path) else { return document }
      return shape.shown(
        DocumentSnapshot(reference: document.reference, contents: contents(written)))
    }
  }

  /// The documents below `path`.
  func readDescendants(of path: DocumentPath) throws(DatabaseError) -> [DocumentPath] {
    do throws(DatabaseError) {
      let rows = try currentRows()
      let collections = try rows.collections(below: path)
      footprint.add(below: path, collections)
      return try rows.documents(in: collections)
    } catch {
      throw noting(error) { (rows) throws(DatabaseError) in
        _ = try rows.documents(in: rows.collections(below: path))
      }
    }
  }

  /// The rows to read after the writes so far.
  func currentRows() throws(DatabaseError) -> Rows {
    if preparation.isEmpty, tree.isEmpty { return base }
    if let overlay { return overlay }
    let prepared = try preparation.finish(with: tree, isToBeRead: true)
    let snapshot = base.snapshot.overlaid(by: prepared.batch, time: database.now())
    let catalog = Catalog(
      copying: base.catalog, adding: prepared.consequences.edits.map(\.family),
      without: prepared.unsettledIndexes)
    let rows = Rows(snapshot, catalog, mayBlock: base.mayBlock, asOf: base.moment)
    overlay = rows
    return rows
  }

  /// A document as this transaction has written it.
  private func contents(_ written: WrittenDocument) -> DocumentSnapshot.Contents? {
    let now = Timestamp(unchecked: database.now())
    return written.after.map { fields in
      DocumentSnapshot.Contents(
        stamps: written.before?.stamps
          ?? DocumentStamps(version: .missing, updateTime: now, createTime: now),
        fields: fields.all.mapValues { $0.resolvingPending(with: now) })
    }
  }

  // MARK: - Writing

  func add(
    _ reference: DocumentReference, _ version: Version?,
    _ compile: () throws(DatabaseError) -> WriteIntent
  ) throws(DatabaseError) {
    let path = try check(reference)
    do throws(DatabaseError) {
      var intent = try compile()
      if let version { intent.precondition = .version(version) }
      try apply(DocumentWrite(path: path, intent: intent))
    } catch {
      throw error.at(path: "\(path)")
    }
  }

  private func apply(_ write: DocumentWrite) throws(DatabaseError) {
    do throws(DatabaseError) {
      try preparation.apply(write)
      overlay = nil
    } catch {
      throw noting(error) { (rows) throws(DatabaseError) in
        try rows.warm(write.path)
        _ = try WritePreparation.prepare([write], in: rows)
      }
    }
  }

  /// Records a read of a node of the tree with everything below it.
  func noteTreeRead(of path: TreePath) {
    footprint.add(path.range)
    footprint.add(root: Database.treeGate)
  }

  func addTree(_ changes: [TreeChange]) throws(DatabaseError) {
    footprint.add(root: Database.treeGate)
    do throws(DatabaseError) {
      try tree.apply(changes)
      overlay = nil
    } catch {
      throw noting(error) { (rows) throws(DatabaseError) in
        var tree = TreePreparation(rows)
        try tree.apply(changes)
      }
    }
  }

  /// Adds a compiled write, with contents that the commit makes stored.
  func add(
    _ write: DocumentWrite, bringing contents: [StagedContent] = []
  ) throws(DatabaseError) {
    try bring(contents)
    try apply(write)
  }

  /// Makes the commit store contents that its documents refer to.
  func bring(_ contents: [StagedContent]) throws(DatabaseError) {
    try check(database, "")
    preparation.bring(contents)
    overlay = nil
  }

  /// Has the commit store the contents of fields that are not stored, as contents whose bytes are
  /// elsewhere.
  package func expectContents(of fields: [String: Value]) {
    preparation.expect(fields.exchangedContents)
  }

  /// Keeps the transaction's writes from the witness of commits, which makes them itself.
  package func leaveUnwitnessed() { preparation.leaveUnwitnessed() }

  /// Adds a client's write. A server's rules are not asked.
  ///
  /// - Throws: as `Database.commit(_:as:durability:)`; `.failedPrecondition` when the transaction
  ///   is over.
  package func add(_ write: ClientWrite) throws(DatabaseError) {
    _ = try add(write, try write.compiled())
  }

  /// Adds a client's compiled write; returns the results of its transforms.
  func add(
    _ write: ClientWrite, _ compiled: DocumentWrite
  ) throws(DatabaseError) -> [Value] {
    try check(database, compiled.path.name)
    try apply(compiled)
    return write.transformed(by: preparation)
  }

  /// What is recorded of a group, and the answer to its writes when it is committed already.
  func answer(
    _ group: WriteGroup, _ writes: ClientWrites
  ) throws(DatabaseError) -> (answer: ClientCommit?, record: WriteStreamRecord?) {
    _ = try getStoredDocument(database.document(group.path))
    do throws(DatabaseError) {
      return try writes.answer(group, in: base)
    } catch {
      throw noting(error) { (rows) throws(DatabaseError) in
        _ = try writes.answer(group, in: rows)
      }
    }
  }

  /// The root collections that it concerns so far.
  var roots: Set<ExactText> { footprint.roots.union(preparation.roots) }

  /// What a call lacked, once; calls after it are answered again.
  func takeMissing() -> Warming? {
    defer { missing = nil }
    return missing
  }

  /// Makes further calls wait for the disk.
  func waitForDisk() { base = base.blocking }

  /// Records what to load when `error` says that it is not in memory.
  func noting(_ error: DatabaseError, _ warming: @escaping Warming) -> DatabaseError {
    if error.isCold, missing == nil { missing = warming }
    return error
  }

  // MARK: - The end

  /// What to commit: the batch of everything written, guarded by everything read. It may be made
  /// from the same rows on another thread.
  func finish() -> @Sendable (Rows) throws(DatabaseError) -> TransactionOutcome {
    isOver = true
    let roots = roots
    return { [preparation, footprint, tree] (rows) throws(DatabaseError) in
      var preparation = preparation.reading(rows)
      let prepared = try preparation.finish(guarding: footprint, with: tree)
      return TransactionOutcome(prepared: prepared, roots: roots)
    }
  }

  /// Refuses further calls.
  func end() {
    isOver = true
  }

  /// Releases what was put, because nothing is committed.
  func abandon(after error: any Error) {
    let failure = error as? DatabaseError ?? DatabaseError(.aborted, "\(error)")
    for content in preparation.staged { content.finish(after: failure) }
  }

  func check(_ reference: DocumentReference) throws(DatabaseError) -> DocumentPath {
    let path = try reference.place.get()
    try check(reference.database, "\(path)")
    return path
  }

  func check(
    _ other: Database, _ path: @autoclosure () -> String
  ) throws(DatabaseError) {
    // The attempt is of no use any more.
    if missing != nil { throw .cold }
    guard other === database else {
      throw DatabaseError(
        .invalidArgument, "the reference belongs to another database than the transaction",
        path: path())
    }
    guard !isOver else {
      throw DatabaseError(
        .failedPrecondition,
        "the transaction has ended; use a transaction only in the body that received it",
        path: path())
    }
  }
}
