// The whole database at one moment, read without suspension: for a main actor that draws from it,
// and for whoever must see several documents as they were together. The read path of ReadPath and
// Executor, on rows that are kept.

internal import OndolEngine

/// All documents as they were at one moment.
///
/// Reads are synchronous, from any actor, and never wait for writers. Of each commit a snapshot
/// shows everything or nothing, and a document whose time was not over when it was taken is in it
/// for as long as it is kept. It keeps the files it reads, so do not keep it for hours.
///
/// What is not in memory is read while the caller's thread waits: from disk in microseconds, from a
/// server in a round trip. A main actor takes a snapshot that has read it already, with
/// `Database.snapshot(warming:_:documents:)`.
public struct DatabaseSnapshot: Sendable {
  /// The database this is a moment of.
  public let database: Database
  private let source: Result<Rows, DatabaseError>

  init(database: Database, rows: Result<Rows, DatabaseError>) {
    self.database = database
    source = rows
  }

  /// The newest commit in it; `.missing` for a database without any.
  public var version: Version {
    guard case .success(let rows) = source else { return .missing }
    return Version(rawValue: rows.snapshot.sequence.rawValue)
  }

  /// The document; a snapshot that does not `exist` when there is none.
  ///
  /// Blocks the thread while a block is read from disk; on a cache hit no system call is made.
  ///
  /// - Throws: as `DocumentReference.getDocument()`; `.failedPrecondition` when the database was
  ///   closed before this snapshot was taken, or since then and the document is not in memory.
  /// - Complexity: as `DocumentReference.getDocument()`.
  public func getDocument(
    _ reference: DocumentReference
  ) throws(DatabaseError) -> DocumentSnapshot {
    let rows = try rows(for: reference.database, reference.path)
    let contents = try DocumentReader(rows: rows).contents(of: try reference.place.get())
    return DocumentSnapshot(reference: reference, contents: contents)
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
  /// - Complexity: one lookup an id.
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

  /// The documents the query finds.
  ///
  /// Blocks the thread while blocks are read from disk.
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
  /// Blocks the thread while blocks are read from disk.
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
  /// All documents as of now, with what these queries and lookups will read in memory already: the
  /// snapshot's own reads of the same do not wait for a disk or a server.
  ///
  ///     let snapshot = try await database.snapshot(warming: cheap, recent, documents: [settings])
  ///     draw(try snapshot.getDocuments(cheap))  // synchronous, on the main actor
  ///
  /// It is read on a thread for that, each query as a whole. What is in memory makes room for
  /// newer things in time, as everything in the cache does (`Options.cacheSize`); a read that comes
  /// later than that, or asks for something else, waits as it does from any other snapshot.
  ///
  /// - Parameters:
  ///   - query: a collection, a collection group or a query of this database.
  ///   - more: others.
  ///   - documents: documents that will be looked up one by one.
  /// - Throws: as `QuerySource.getDocuments()`; `.invalidArgument` for what is in another database.
  /// - Complexity: that of the queries.
  @concurrent
  public func snapshot(
    warming query: any QuerySource, _ more: any QuerySource...,
    documents: [DocumentReference] = []
  ) async throws(DatabaseError) -> DatabaseSnapshot {
    try await snapshot(warming: [query.query] + more.map(\.query), documents)
  }

  /// All documents as of now, with these in memory already: see `snapshot(warming:_:documents:)`.
  ///
  /// - Parameter documents: documents that will be looked up one by one.
  /// - Throws: as `DocumentReference.getDocument()`; `.invalidArgument` for a document of another
  ///   database.
  /// - Complexity: one lookup each; one trip to a server for all.
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

  /// All documents as of now. Cheap; reads from it are synchronous and see one and the same moment,
  /// which Firestore cannot offer. When the database is closed its reads throw
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
