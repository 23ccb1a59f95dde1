// The location of a collection. A collection exists while it has documents, and nothing needs to
// create it. It is also the query for all of them.

/// The location of a collection in a database, and the query for all its documents.
///
/// ```swift
/// let items = database.collection("upload")
/// try await items.document("lamp").setData(["name": "Lamp"])
/// let all = try await items.order(by: "name").getDocuments()
/// ```
///
/// As in Firestore, a collection exists while it has documents, and nothing needs to create it.
/// Making a reference reads nothing. When the path is wrong, the call that uses the reference
/// throws.
public struct CollectionReference: Sendable, Hashable, QuerySource {
  /// The database the collection is in.
  public let database: Database
  let place: Result<CollectionPath, DatabaseError>

  /// The last segment of the path; empty when the path is wrong.
  public var collectionID: String {
    if case .success(let path) = place { path.collectionID } else { "" }
  }

  /// The path from the root, as in `users/alice/posts`; when it is wrong, the text it was made
  /// from.
  public var path: String { place.writtenPath }

  /// The document this collection is below; nil at the top.
  public var parent: DocumentReference? {
    guard case .success(let path) = place, let parent = path.parent else { return nil }
    return DocumentReference(database: database, place: .success(parent))
  }

  /// All documents of the collection.
  public var query: Query { Query(database: database, source: place.map { .collection($0) }) }

  /// A reference for a new document, with an automatic id like Firestore's: 20 letters and digits
  /// with 119 random bits. If `Options.automaticID` is set, it makes the id. This call stores
  /// nothing.
  public func document() -> DocumentReference {
    document(database.automaticID())
  }

  /// A document of this collection, or one further down when `path` has several segments.
  ///
  /// - Parameter path: an odd number of segments with `/` between, 1 to 1,500 bytes of UTF-8 each,
  ///   not `.`, `..` or of the form `__…__`. With an invalid path, the calls that use the reference
  ///   throw `.invalidArgument`.
  public func document(_ path: String) -> DocumentReference {
    DocumentReference(database: database, place: place.appending(path))
  }
}

extension CollectionReference: CustomStringConvertible {
  /// The path.
  public var description: String { path }
}
