// Reads documents by their ids: the short read path. It computes the key from the cached catalog,
// looks up one row in a snapshot and checks it. Fields are decoded on request. On a cache hit
// nothing suspends, so the caller stays on its own executor.

internal import OndolEngine

extension DocumentReference {
  /// The document as of now; a snapshot that does not `exist` when there is none.
  ///
  /// A read that begins after a write has returned sees that write. There is no equivalent of
  /// Firestore's `source:`, because there is only one source.
  ///
  /// - Throws: `.invalidArgument` when the path is wrong, `.failedPrecondition` when the database
  ///   is closed, `.dataLoss` when stored bytes are damaged.
  /// - Complexity: O(log n) in the documents of the database, and one pass over the document's
  ///   bytes to copy and check them.
  public func getDocument() async throws(DatabaseError) -> DocumentSnapshot {
    try database.refuseReadInTransaction(try? place.get().name)
    return try await readDocument()
  }

  /// Like `getDocument()`, but also works in the body of a transaction.
  func readDocument() async throws(DatabaseError) -> DocumentSnapshot {
    let path = try place.get()
    let contents = try await database.read(try database.engineSnapshot(), isOfOne: true) {
      (rows) throws(DatabaseError) in
      try DocumentReader(rows: rows).contents(of: path)
    }
    return DocumentSnapshot(reference: self, contents: contents).marked(in: database)
  }

  /// The document as of now, as a `Decodable` type.
  ///
  /// - Parameters:
  ///   - type: the type to decode. An optional type gives nil when there is no document.
  ///   - decoder: how names and dates were stored, and defaults for fields that are missing.
  /// - Throws: as `DocumentSnapshot.data(as:decoder:)` when there is no document or it does not
  ///   fit; otherwise as `getDocument()`.
  /// - Complexity: as `getDocument()`, and O(size of the fields `type` asks for).
  public func getDocument<Content: Decodable>(
    as type: Content.Type, decoder: DocumentDecoder = DocumentDecoder()
  ) async throws(DatabaseError) -> Content {
    try await getDocument().data(as: type, decoder: decoder)
  }
}

extension DocumentSnapshot {
  /// The document with what synchronisation knows of it now.
  func marked(in database: Database) -> DocumentSnapshot {
    database.observers.synced.isActive ? database.observers.synced.marked([self])[0] : self
  }
}

extension CollectionReference {
  /// The documents with these ids, in this order, all as of one moment. The snapshot of a missing
  /// document does not `exist`. Firestore's clients lack this.
  ///
  /// - Parameter ids: any number of ids, repetitions included.
  /// - Throws: `.invalidArgument` for an invalid id; otherwise as
  ///   `DocumentReference.getDocument()`.
  /// - Complexity: one lookup for each id.
  public func getDocuments(ids: [String]) async throws(DatabaseError) -> [DocumentSnapshot] {
    let collection = try place.get()
    try database.refuseReadInTransaction("\(collection)")
    var paths: [DocumentPath] = []
    paths.reserveCapacity(ids.count)
    for id in ids {
      paths.append(try collection.document(id))
    }
    return try await database.read(try database.engineSnapshot()) {
      [database, paths] (rows) throws(DatabaseError) in
      try DocumentReader(rows: rows).documents(at: paths, in: database)
    }
  }
}

extension Rows {
  /// Reads a document and its collection, so that both are in memory.
  func warm(_ path: DocumentPath) throws(DatabaseError) {
    _ = try catalog.family(path.segments[0], in: self)
    _ = try DocumentReader(rows: self).contents(of: path)
  }
}

/// Reads documents from one snapshot.
struct DocumentReader {
  let rows: Rows

  /// The document at `path`, or nil.
  ///
  /// - Parameter evenOver: whether an expired document counts, as long as it is stored.
  func contents(
    of path: DocumentPath, evenOver: Bool = false
  ) throws(DatabaseError) -> DocumentSnapshot.Contents? {
    guard let entry = try entry(path) else { return nil }
    guard let row = try rows.row(DocumentKey.key(entry.keyspace, path)) else { return nil }
    let contents: DocumentSnapshot.Contents
    do throws(MalformedBytes) {
      contents = try DocumentSnapshot.Contents(row: row, symbols: entry.symbols)
    } catch {
      // A name may have been added after the picture was taken.
      guard let entry = try exactEntry(path) else {
        throw DatabaseError(error, documentAt: path)
      }
      do throws(MalformedBytes) {
        contents = try DocumentSnapshot.Contents(row: row, symbols: entry.symbols)
      } catch {
        throw DatabaseError(error, documentAt: path)
      }
    }
    return try shown(contents, entry, path, evenOver: evenOver)
  }

  /// The document as reads show it; nil when it has expired.
  private func shown(
    _ stored: DocumentSnapshot.Contents, _ entry: CollectionEntry, _ path: DocumentPath,
    evenOver: Bool
  ) throws(DatabaseError) -> DocumentSnapshot.Contents? {
    var contents = stored
    do throws(DatabaseError) {
      if !entry.schema.epochs.isEmpty,
        let pending = rows.pendingUpgrade(of: CollectionPattern(collectionOf: path), entry)
      {
        contents = try pending.apply(stored, at: path)
      }
    } catch {
      // An expired document does not exist, readable or not.
      guard error.isUnreadable, !evenOver, isOver(stored, entry) else { throw error }
      return nil
    }
    return !evenOver && isOver(contents, entry) ? nil : contents
  }

  private func isOver(_ contents: DocumentSnapshot.Contents, _ entry: CollectionEntry) -> Bool {
    entry.timeToLive != nil && entry.isOver(contents, at: rows.moment)
  }

  /// The documents at the paths, in this order; snapshots that do not `exist` for missing ones.
  func documents(
    at paths: [DocumentPath], in database: Database
  ) throws(DatabaseError) -> [DocumentSnapshot] {
    var documents: [DocumentSnapshot] = []
    documents.reserveCapacity(paths.count)
    let reader = DocumentReader(rows: rows.atOneMoment)
    for path in paths {
      let reference = DocumentReference(database: database, place: .success(path))
      let contents = try reader.contents(of: path)
      documents.append(DocumentSnapshot(reference: reference, contents: contents))
    }
    return database.observers.synced.marked(documents)
  }

  /// The catalog's entry of the document's collection, from the picture if that is right for these
  /// rows.
  private func entry(_ path: DocumentPath) throws(DatabaseError) -> CollectionEntry? {
    let pictured = rows.catalog.pictured(collectionOf: path, at: rows.snapshot.sequence)
    if let pictured { return pictured }
    return try exactEntry(path)
  }

  /// The catalog's entry as of these rows.
  private func exactEntry(_ path: DocumentPath) throws(DatabaseError) -> CollectionEntry? {
    let pattern = CollectionPattern(collectionOf: path)
    return try rows.entry(of: pattern)
  }
}

extension DatabaseError {
  init(_ error: MalformedBytes, documentAt path: DocumentPath) {
    self.init(
      .dataLoss,
      "the document's bytes are damaged at \(error.offset): \(error.reason); restore a backup",
      path: "\(path)")
  }
}
