// Reads and writes that happen as if nobody else were there. The writes are kept here, applied to
// what the transaction's snapshot has, and become one batch at the end; reads note what they looked
// at, and the commit is refused when any of that has changed. TransactionRun tries again then.
//
// What a read needs from disk is not waited for on the body's actor: the read throws, says what to
// read, and the body runs again once that is in memory.
//
// A document that was written is read back from the writes. A query after a write runs on the same
// rows with the writes' rows laid above them, indexes and all, so that it needs no rules of its
// own.

internal import OndolEngine

/// What the body of `Database.runTransaction` reads and writes with.
///
/// All reads see one moment, with the transaction's own writes on top of it; reads and writes may
/// come in any order, and queries are possible, none of which Firestore's clients allow. Nothing is
/// visible to others before the whole transaction is committed. The calls do not suspend, and do
/// not wait for a disk: one that would have to throws `.unavailable`, and the body runs again once
/// what it asked for is in memory, whatever it made of the error.
///
/// It is valid within the body that it was handed to, and not `Sendable`: any later call throws
/// `.failedPrecondition`.
public final class Transaction {
  let database: Database
  private var base: Rows
  private var preparation: WritePreparation
  private var tree: TreePreparation
  private(set) var footprint = Footprint()
  /// The base with all writes so far above it, once a query has asked for it.
  private var overlay: Rows?
  private var isOver = false
  /// Reads from disk what a call lacked; nil as long as none did.
  private(set) var missing: Warming?

  /// Reads what has to be in memory.
  typealias Warming = @Sendable (Rows) throws(DatabaseError) -> Void

  /// Reads `rows`, blocking when they may.
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
  /// A document that was written keeps the version it had before; a server timestamp reads as the
  /// present moment, and becomes the commit's.
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
    do throws(DatabaseError) {
      try footprint.add(path, in: base)
      let contents = try DocumentReader(rows: base).contents(of: path)
      return DocumentSnapshot(reference: reference, contents: contents)
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

  /// The documents the query finds, among them those the transaction has written. Documents that
  /// come to match, or cease to, before the commit make the transaction run again; and so does any
  /// other write to the collection, unless the query names documents by their ids.
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

  /// The documents the query finds, completed with those they refer to. What was referred to, or is
  /// missing, counts as read, too.
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

  /// Numbers about a result, the transaction's own writes among it. What comes to change them
  /// before the commit makes the transaction run again, as with `getDocuments(_:)`.
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

  /// What answers the query after the writes so far; what it reads is noted.
  private func executor(of query: Query) throws(DatabaseError) -> Executor {
    try check(query.database, "")
    let executor = try Executor(try query.shape.get(), in: database, try currentRows())
    footprint.add(executor)
    return executor
  }

  /// The rows that a query is asked of after the writes so far; what it may read is noted.
  func noteRead(of query: Query) throws(DatabaseError) -> Rows {
    try executor(of: query).rows
  }

  /// The documents it finds; those that were written with the stamps they had before.
  private func documents(
    of executor: inout Executor
  ) throws(DatabaseError) -> [DocumentSnapshot] {
    let shape = executor.shape
    return try executor.documents().map { document in
      guard let path = try? document.reference.place.get(),
        let written = preparation.document(at: path)
      else { return document }
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

  /// What is read after the writes so far.
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

  /// Notes a read of a node of the tree with all below it.
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

  /// Adds a write that is compiled already, of contents that the commit makes stored.
  func add(
    _ write: DocumentWrite, bringing contents: [StagedContent] = []
  ) throws(DatabaseError) {
    try bring(contents)
    try apply(write)
  }

  /// Has the commit make contents stored that documents of it refer to.
  func bring(_ contents: [StagedContent]) throws(DatabaseError) {
    try check(database, "")
    preparation.bring(contents)
    overlay = nil
  }

  /// Adds a client's write, compiled already; answers what its transforms came to.
  func add(
    _ write: ClientWrite, _ compiled: DocumentWrite
  ) throws(DatabaseError) -> [Value] {
    try check(database, compiled.path.name)
    try apply(compiled)
    return write.transformed(by: preparation)
  }

  /// The root collections that it has to do with so far.
  var roots: Set<ExactText> { footprint.roots.union(preparation.roots) }

  /// What a call lacked, once; the calls after it are answered again.
  func takeMissing() -> Warming? {
    defer { missing = nil }
    return missing
  }

  /// Has the calls from now on wait for a disk.
  func waitForDisk() { base = base.blocking }

  /// Notes what to read when `error` says that it is not in memory.
  func noting(_ error: DatabaseError, _ warming: @escaping Warming) -> DatabaseError {
    if error.isCold, missing == nil { missing = warming }
    return error
  }

  // MARK: - The end

  /// What it comes to, to be committed: the batch of everything written, guarded by everything
  /// read. It may be made of the same rows elsewhere.
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

  /// Lets go of what was put, since nothing is committed.
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
        .invalidArgument, "what is asked for is in another database than the transaction",
        path: path())
    }
    guard !isOver else {
      throw DatabaseError(
        .failedPrecondition,
        "the transaction is over; a transaction can only be used in the body it was handed to",
        path: path())
    }
  }
}
