// Where a collection is. A collection needs no creation: it is there while it has documents. It is
// also the query for all of them.

/// A collection's place in a database.
public struct CollectionReference: Sendable, QuerySource {
  /// The database the collection is in.
  public let database: Database
  let place: Result<CollectionPath, DatabaseError>

  init(database: Database, place: Result<CollectionPath, DatabaseError>) {
    self.database = database
    self.place = place
  }

  /// The last segment of the path; empty when the path is wrong.
  public var collectionID: String {
    if case .success(let path) = place { path.collectionID } else { "" }
  }

  /// The path from the root, as in `users/alice/posts`.
  public var path: String {
    switch place {
    case .success(let path): path.description
    case .failure(let error): error.path ?? ""
    }
  }

  /// The document this collection is below; nil at the top.
  public var parent: DocumentReference? {
    guard case .success(let path) = place, let parent = path.parent else { return nil }
    return DocumentReference(database: database, place: .success(parent))
  }

  /// All documents of the collection.
  public var query: Query { Query(database: database, source: place.map { .collection($0) }) }

  /// A place for a new document, with an automatic id of 20 letters and digits.
  public func document() -> DocumentReference {
    document(database.automaticID())
  }

  /// A document of this collection, or one further down when `path` has several segments.
  public func document(_ path: String) -> DocumentReference {
    DocumentReference(
      database: database,
      place: place.appending(path) { (segments) throws(DatabaseError) in
        try DocumentPath(segments: segments)
      })
  }
}

extension CollectionReference: Hashable {
  /// Whether both are the same place in the same database.
  public static func == (left: CollectionReference, right: CollectionReference) -> Bool {
    left.database === right.database && left.place == right.place
  }

  /// Feeds the path.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(place)
  }
}

extension CollectionReference: CustomStringConvertible {
  /// The path.
  public var description: String { path }
}
