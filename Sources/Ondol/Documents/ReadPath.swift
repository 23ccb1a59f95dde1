// Reading documents by their ids: the short read path. The key is computed from the catalog's
// picture, one row is looked up in a snapshot, and its fields are decoded. On a cache hit nothing
// suspends, so the caller stays on its own executor.

internal import OndolEngine

extension DocumentReference {
  /// The document as of now; a snapshot that does not `exist` when there is none.
  ///
  /// A read begun after a write returned sees it.
  ///
  /// - Throws: `.invalidArgument` when the path is wrong, `.failedPrecondition` when the database
  ///   is closed, `.dataLoss` when stored bytes are damaged.
  /// - Complexity: O(log n) in the documents of the database, and O(size of the document).
  public func getDocument() async throws(DatabaseError) -> DocumentSnapshot {
    let path = try place.get()
    var reader = DocumentReader(database: database, snapshot: try database.snapshot())
    return DocumentSnapshot(reference: self, contents: try await reader.contents(of: path))
  }

  /// The document as of now, as a `Decodable` type.
  ///
  /// - Throws: `.notFound` when there is no document, unless `type` is optional; `DecodingError`
  ///   naming the field; otherwise as `getDocument()`.
  public func getDocument<Content: Decodable>(
    as type: Content.Type
  ) async throws -> Content {
    try await getDocument().data(as: type)
  }
}

extension CollectionReference {
  /// The documents with these ids, in this order, all as of one moment. Where there is none, its
  /// snapshot does not `exist`.
  ///
  /// - Throws: `.invalidArgument` when an id cannot be one; otherwise as
  ///   `DocumentReference.getDocument()`.
  /// - Complexity: one lookup an id.
  public func getDocuments(ids: [String]) async throws(DatabaseError) -> [DocumentSnapshot] {
    let collection = try place.get()
    var reader = DocumentReader(database: database, snapshot: try database.snapshot())
    var documents: [DocumentSnapshot] = []
    documents.reserveCapacity(ids.count)
    for id in ids {
      let path = try collection.document(id)
      let contents = try await reader.contents(of: path)
      documents.append(
        DocumentSnapshot(
          reference: DocumentReference(database: database, place: .success(path)),
          contents: contents))
    }
    return documents
  }
}

/// Reads documents from one snapshot.
struct DocumentReader {
  let database: Database
  let snapshot: Snapshot
  /// The families in use, loaded from the snapshot where the picture was not enough.
  private var families: [ExactText: Family] = [:]

  init(database: Database, snapshot: Snapshot) {
    self.database = database
    self.snapshot = snapshot
  }

  /// The document at `path`, or nil.
  mutating func contents(
    of path: DocumentPath
  ) async throws(DatabaseError) -> DocumentSnapshot.Contents? {
    let collection = path.collection
    let pattern = CollectionPattern(collection)
    guard let entry = try await entry(pattern) else { return nil }
    let key = DocumentKey.key(
      entry.keyspace, ancestors: collection.ancestorIDs, id: path.documentID)
    guard let row = try await snapshot.row(key) else { return nil }
    do throws(MalformedBytes) {
      return try DocumentSnapshot.Contents(row: row.bytes, symbols: entry.symbols)
    } catch {
      // Perhaps a name was added after the picture was taken.
      guard let entry = try await self.entry(pattern, exactly: true) else {
        throw DatabaseError(error, documentAt: path)
      }
      do throws(MalformedBytes) {
        return try DocumentSnapshot.Contents(row: row.bytes, symbols: entry.symbols)
      } catch {
        throw DatabaseError(error, documentAt: path)
      }
    }
  }

  /// What the catalog knows of the pattern: from the picture, or `exactly` as of the snapshot.
  private mutating func entry(
    _ pattern: CollectionPattern, exactly: Bool = false
  ) async throws(DatabaseError) -> CollectionEntry? {
    let root = ExactText(pattern.root)
    if !exactly {
      let family = families[root] ?? database.catalog.picture(of: pattern.root)
      if let entry = family?.collections[pattern] { return entry }
    }
    families[root] = try await database.catalog.family(pattern.root, at: snapshot)
    return families[root]?.collections[pattern]
  }
}

extension DocumentSnapshot.Contents {
  /// Decodes a document's row.
  init(row: RawSpan, symbols: SymbolTable) throws(MalformedBytes) {
    let view = try DocumentView(row)
    stamps = DocumentStamps(view)
    fields = try view.fields(symbols)
  }
}

extension DocumentStamps {
  init(_ view: borrowing DocumentView) {
    version = Version(rawValue: view.version.rawValue)
    updateTime = view.updateTime
    createTime = view.createTime
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
