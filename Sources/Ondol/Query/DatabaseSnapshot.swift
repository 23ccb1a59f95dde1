// The whole database at one moment, read without suspension: for a main actor that draws from it,
// and for code that must see several documents as of one moment. It uses the read path of ReadPath
// and Executor, on rows that the snapshot keeps.

internal import OndolEngine

/// All documents as they were at one moment.
///
/// Reads are synchronous, work from any actor and never wait for writers. A snapshot shows all of a
/// commit or nothing of it. A document that had not expired when the snapshot was taken stays in
/// it. The snapshot keeps the files it reads from being removed, so do not hold it for hours.
///
/// A read of data that is not in memory blocks the calling thread: for microseconds with a disk,
/// for a round trip with a server. On the main actor, take a snapshot that has loaded its data
/// already, with `Database.snapshot(warming:_:documents:)`.
public struct DatabaseSnapshot: Sendable {
  /// The database that the snapshot was taken of.
  public let database: Database
  private let source: Result<Rows, DatabaseError>

  init(database: Database, rows: Result<Rows, DatabaseError>) {
    self.database = database
    source = rows
  }

  /// The newest commit in the snapshot; `.missing` for a database without commits.
  public var version: Version {
    guard case .success(let rows) = source else { return .missing }
    return Version(rawValue: rows.snapshot.sequence.rawValue)
  }

  /// The document; a snapshot that does not `exist` when there is none.
  ///
  /// Blocks the thread while it reads a block from disk. A cache hit makes no system call.
  ///
  /// - Throws: as `DocumentReference.getDocument()`; `.failedPrecondition` when the database was
  ///   closed before this snapshot was taken, or has been closed since and the document is not in
  ///   memory.
  /// - Complexity: as `DocumentReference.getDocument()`.
  public func getDocument(
    _ reference: DocumentReference
  ) throws(DatabaseError) -> DocumentSnapshot {
    let rows = try rows(for: reference.database, reference.path)
    let contents = try DocumentReader(rows: rows).contents(of: try reference.place.get())
    return DocumentSnapshot(reference: reference, contents: contents)
      .marked(in: reference.database)
  }

  /// The document as a `Decodable` type.
  ///
  /// - Throws: as `getDocument(_:)` and `DocumentSnapshot.data(as:)`.
  public func getDocument<Content: Decodable>(
    _ reference: DocumentReference, as type: Content.Type,
    decoder: DocumentDecoder = DocumentDecoder()
  ) throws -> Content {
    try getDocument(reference).data(as: type, decoder: decoder)
  }

  /// The documents of the collection with these ids, in this order.
  ///
  /// - Throws: as `CollectionReference.getDocuments(ids:)`.
  /// - Complexity: one lookup for each id.
  public func getDocuments(
    _ collection: CollectionReference, ids: [String]
  ) throws(DatabaseError) -> [DocumentSnapshot] {
    let rows = try rows(for: collection.database, collection.path)
    let place = try collection.place.get()
    var paths: [DocumentPath] = []
    for id in ids {
      paths.append(try place.document(id))
    }
    return try DocumentReader(rows: rows).documents(at: paths, in: database)
  }

  /// The documents that the query finds.
  ///
  /// Blocks the thread while it reads blocks from disk.
  ///
  /// - Throws: as `QuerySource.getDocuments()`.
  /// - Complexity: as `QuerySource.getDocuments()`.
  public func getDocuments(_ source: some QuerySource) throws(DatabaseError) -> QuerySnapshot {
    let query = source.query
    let rows = try rows(for: query.database, "")
    var executor = try Executor(try query.shape.get(), in: database, rows)
    return try executor.snapshot(of: query)
  }

  /// Numbers about a result.
  ///
  /// Blocks the thread while it reads blocks from disk.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  /// - Complexity: as `AggregateQuery.getAggregation()`.
  public func getAggregation(
    _ aggregate: AggregateQuery
  ) throws(DatabaseError) -> AggregateQuerySnapshot {
    let rows = try rows(for: aggregate.query.database, "")
    var executor = try Executor(try aggregate.query.shape.get(), in: database, rows)
    return try aggregate.aggregate(&executor)
  }

  /// Numbers about the groups of a result; see `getAggregation(_:)`.
  ///
  /// - Throws: as `AggregateQuery.getAggregation()`.
  public func getAggregation(
    _ groups: GroupedAggregateQuery
  ) throws(DatabaseError) -> [AggregateGroup] {
    let query = groups.aggregate.query
    let rows = try rows(for: query.database, "")
    var executor = try Executor(try query.shape.get(), in: database, rows)
    return try groups.groups(&executor)
  }

  func rows(
    for other: Database, _ path: @autoclosure () -> String
  ) throws(DatabaseError) -> Rows {
    guard other === database else {
      throw DatabaseError(
        .invalidArgument, "what is asked for is in another database than the snapshot",
        path: path())
    }
    return try source.get()
  }
}

extension Database {
  /// All documents as of now, with everything in memory that these queries and lookups will read.
  /// The same reads on the snapshot then do not wait for a disk or a server.
  ///
  ///     let snapshot = try await database.snapshot(warming: cheap, recent, documents: [settings])
  ///     draw(try snapshot.getDocuments(cheap))  // synchronous, on the main actor
  ///
  /// The loading runs on a thread of its own and reads each query as a whole. The cache evicts this
  /// data for newer data in time, like everything in it (`Options.cacheSize`). A read after that,
  /// or of anything else, waits as it does with any other snapshot.
  ///
  /// - Parameters:
  ///   - query: a collection, a collection group or a query of this database.
  ///   - more: others.
  ///   - documents: documents that will be looked up one by one.
  /// - Throws: as `QuerySource.getDocuments()`; `.invalidArgument` for a query or document of
  ///   another database.
  /// - Complexity: that of the queries.
  @concurrent
  public func snapshot(
    warming query: any QuerySource, _ more: any QuerySource...,
    documents: [DocumentReference] = []
  ) async throws(DatabaseError) -> DatabaseSnapshot {
    try await snapshot(warming: [query.query] + more.map(\.query), documents)
  }

  /// All documents as of now, with the given ones in memory: see `snapshot(warming:_:documents:)`.
  ///
  /// - Parameter documents: documents that will be looked up one by one.
  /// - Throws: as `DocumentReference.getDocument()`; `.invalidArgument` for a document of another
  ///   database.
  /// - Complexity: one lookup for each; one round trip to a server for all.
  @concurrent
  public func snapshot(
    warming documents: [DocumentReference]
  ) async throws(DatabaseError) -> DatabaseSnapshot {
    try await snapshot(warming: [], documents)
  }

  private func snapshot(
    warming queries: [Query], _ documents: [DocumentReference]
  ) async throws(DatabaseError) -> DatabaseSnapshot {
    let (snapshot, moment) = (try engineSnapshot(), now())
    let warmed = DatabaseSnapshot(
      database: self,
      rows: .success(Rows(snapshot, catalog, mayBlock: true, asOf: moment)))
    for query in queries {
      _ = try warmed.rows(for: query.database, "")
      let shape = try query.shape.get()
      try await read(snapshot, asOf: moment, canBeCancelled: true) {
        [self] (rows) throws(DatabaseError) in
        var executor = try Executor(shape, in: self, rows)
        _ = try executor.snapshot(of: query)
      }
    }
    var paths: [DocumentPath] = []
    for document in documents {
      _ = try warmed.rows(for: document.database, document.path)
      paths.append(try document.place.get())
    }
    try await read(snapshot, asOf: moment, canBeCancelled: true) {
      [self, paths] (rows) throws(DatabaseError) in
      _ = try DocumentReader(rows: rows).documents(at: paths, in: self)
    }
    return warmed
  }

  /// All documents as of now. Taking a snapshot is cheap. Its reads are synchronous and all see the
  /// same moment, which Firestore cannot offer. When the database is closed, reads from it throw
  /// `.failedPrecondition`.
  ///
  /// - Complexity: O(1).
  public func snapshot() -> DatabaseSnapshot {
    let rows = Result { () throws(DatabaseError) in
      Rows(try engineSnapshot(), catalog, mayBlock: true, asOf: now())
    }
    return DatabaseSnapshot(database: self, rows: rows)
  }
}
