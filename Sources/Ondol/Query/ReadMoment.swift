// The database at one moment, read without blocking the calling thread: a server answers calls from
// it. Like DatabaseSnapshot, with the commit's time and with reads that suspend.

internal import OndolEngine

/// All documents as of one commit.
package struct ReadMoment: Sendable {
  package let database: Database
  private let snapshot: Snapshot
  let point: CommitPoint
  /// Decides which documents have expired, in microseconds since 1970.
  private let now: Int64

  init(_ database: Database) throws(DatabaseError) {
    self.database = database
    (snapshot, point) = try database.datedSnapshot()
    now = database.now()
  }

  private init(_ database: Database, _ snapshot: Snapshot, _ point: CommitPoint, now: Int64) {
    self.database = database
    self.snapshot = snapshot
    self.point = point
    self.now = now
  }

  /// The documents as of an earlier commit; nil when some of them may be gone.
  ///
  /// - Parameters:
  ///   - version: the commit.
  ///   - time: when it was made.
  package func earlier(_ version: Version, at time: Timestamp) -> ReadMoment? {
    let point = CommitPoint(
      sequence: SequenceNumber(rawValue: version.rawValue), time: time.microsecondsSince1970)
    return snapshot.earlier(point.sequence).map { ReadMoment(database, $0, point, now: now) }
  }

  /// The newest commit in it.
  package var version: Version { Version(rawValue: point.sequence.rawValue) }

  /// When that commit was made.
  package var time: Timestamp { Timestamp(unchecked: point.time) }

  /// The commit's token, whether or not changes are kept.
  package var token: ChangeToken { ChangeToken(identity: database.engine.identity, point: point) }

  /// The same moment, for code that evaluates as of a commit.
  var dated: DatedSnapshot { (snapshot, point) }

  /// Its rows, for reads that must not block.
  var rows: Rows { Rows(snapshot, database.catalog, mayBlock: false, asOf: now) }

  /// Its rows: read here when they are in memory, otherwise on another thread.
  func read<R: Sendable>(
    _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    try await database.read(snapshot, asOf: now, canBeCancelled: true, body)
  }

  /// The documents at these paths, in this order; a snapshot that does not `exist` for a missing
  /// one.
  ///
  /// - Throws: as `DocumentReference.getDocument()`.
  /// - Complexity: one lookup each.
  package func documents(
    at paths: [DocumentPath]
  ) async throws(DatabaseError) -> [DocumentSnapshot] {
    try await read { [database] (rows) throws(DatabaseError) in
      try DocumentReader(rows: rows).documents(at: paths, in: database)
    }
  }

  /// Runs code that finds out in its course which documents it needs, for example because one names
  /// the next. It runs again when one of them must come from disk.
  ///
  /// - Throws: what `body` throws. `body` must rethrow the errors of its reads.
  package func withDocuments<R: Sendable>(
    _ body: @escaping @Sendable (MomentDocuments) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    try await read { [database] (rows) throws(DatabaseError) in
      try body(MomentDocuments(reader: DocumentReader(rows: rows), database: database))
    }
  }

  /// The documents of a query's result one after the other, with bounded memory.
  package func documents(of query: Query) -> QueryDocuments.AsyncIterator {
    QueryDocuments.AsyncIterator(QueryPages(query, at: snapshot, asOf: now))
  }

  /// Numbers about a result.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  /// - Complexity: as `AggregateQuery.getAggregation()`, on one thread.
  package func aggregation(
    _ aggregate: AggregateQuery
  ) async throws(DatabaseError) -> AggregateQuerySnapshot {
    let shape = try aggregate.query.shape.get()
    return try await read { [database] (rows) throws(DatabaseError) in
      var executor = try Executor(shape, in: database, rows)
      return try aggregate.aggregate(&executor)
    }
  }
}

/// The documents as of a moment, for code that reads them one at a time.
package struct MomentDocuments {
  fileprivate let reader: DocumentReader
  let database: Database

  /// The document at a path; a snapshot that does not `exist` when there is none.
  ///
  /// - Throws: as `DocumentReference.getDocument()`.
  /// - Complexity: one lookup.
  package func document(at path: DocumentPath) throws(DatabaseError) -> DocumentSnapshot {
    DocumentSnapshot(
      reference: database.document(path), contents: try reader.contents(of: path))
  }
}

extension ReadMoment {
  /// The ids of the collections below a document, or at the top, in their order.
  ///
  /// - Throws: as `DocumentReference.listCollections()`.
  package func collectionIDs(below parent: DocumentPath?) async throws(DatabaseError) -> [String] {
    try await read { (rows) throws(DatabaseError) in
      guard let parent else { return try rows.collectionIDs() }
      return try rows.collectionIDs(below: parent)
    }
  }

  /// The ids that collections have at any depth, in their order.
  ///
  /// - Throws: as `Database.listCollections()`.
  package func collectionGroupIDs() async throws(DatabaseError) -> [String] {
    try await read { (rows) throws(DatabaseError) in try rows.collectionGroupIDs() }
  }

  /// The ids of the documents of a collection, in their order. Includes the ids of documents that
  /// do not exist but have others below them.
  ///
  /// - Throws: `.dataLoss` when stored bytes are damaged.
  /// - Complexity: one lookup for each id and for each collection below such documents.
  package func documentIDs(
    in collection: CollectionPath, after last: String?, atMost count: Int
  ) async throws(DatabaseError) -> [String] {
    try await read { (rows) throws(DatabaseError) in
      try rows.documentIDs(in: collection, after: last, atMost: count)
    }
  }
}

extension Database {
  /// All documents as of now.
  ///
  /// - Throws: `.failedPrecondition` when the database is closed.
  /// - Complexity: O(1).
  package func readMoment() throws(DatabaseError) -> ReadMoment { try ReadMoment(self) }

  /// Returns once every visible commit has been announced to the handlers that receive commits.
  package func finishAnnouncing() async {
    await engine.finishAnnouncing(through: engine.newestCommit.sequence)
  }
}
