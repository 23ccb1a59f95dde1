// A signed-in person's data, divided as in CloudKit: a private database for its owner alone, and a
// public one that all users read and in which each document belongs to its creator. Every call
// first checks that the session is valid and who owns the document. A write checks in its own
// transaction, so no write follows the end of a session. UserDatabase+Contents checks the bytes
// that a document refers to.
//
// It keeps a service from mixing up its users. It is no security boundary inside the process: code
// with the `Database` can access all of it.

public import Ondol

extension Accounts {
  /// The data that only the session's owner sees: collections below `privateData/UID`.
  ///
  /// - Parameter session: the owner's session. Each call checks that it is valid.
  public func privateDatabase(for session: Session) -> UserDatabase {
    UserDatabase(accounts: self, session: session, scope: .private)
  }

  /// The data that every signed-in user reads, and of which each changes their own: collections
  /// below `publicData/all`.
  ///
  /// - Parameter session: the session that reads and writes. Each call checks that it is valid.
  public func publicDatabase(for session: Session) -> UserDatabase {
    UserDatabase(accounts: self, session: session, scope: .public)
  }
}

/// The private or the public data of a signed-in user.
///
/// ```swift
/// let notes = user.privateDatabase.collection("notes")
/// try await notes.document("today").setData(["text": "buy tea"])
/// let posts = user.publicDatabase.collection("posts")
/// try await posts.addDocument(["text": "hello"])  // its field ownerID is the user's uid
/// ```
///
/// All calls throw `.unauthenticated` when the session is over, and `.permissionDenied` for another
/// user's public document. A write throws `.permissionDenied`, with the field's name, for a
/// reference to bytes that this person neither put with `put(_:contentType:)` nor can read in a
/// document. Knowing the digest of bytes gives no right to them.
public struct UserDatabase: Sendable {
  /// Who sees the data.
  public enum Scope: Sendable, Hashable {
    /// Only its owner.
    case `private`
    /// All signed-in users; its owner changes it.
    case `public`
  }

  /// The field of a public document that has its owner's uid. Every write sets it, even if the data
  /// contains another value.
  public static let ownerField = "ownerID"

  let accounts: Accounts
  let session: Session
  /// Which of the two databases this is.
  public let scope: Scope

  /// The collection at a path below the root.
  ///
  /// - Parameter path: an odd number of segments, as in `notes` or `notes/n1/pages`.
  public func collection(_ path: String) -> UserCollection {
    UserCollection(database: self, reference: root.collection(path))
  }

  /// The document at a path below the root.
  ///
  /// - Parameter path: an even number of segments, as in `notes/n1`.
  public func document(_ path: String) -> UserDocument {
    var segments = path.split(separator: "/", omittingEmptySubsequences: false)
    let id = segments.popLast().map(String.init) ?? ""
    return collection(segments.joined(separator: "/")).document(id)
  }

  // MARK: - Steps

  var uid: String { session.account.uid }

  private var root: DocumentReference {
    scope == .private ? accounts.places.privateRoot(uid) : accounts.places.publicRoot
  }

  /// Throws `.unauthenticated` when the session is over.
  func check() async throws(DatabaseError) {
    do throws(AuthError) {
      _ = try await accounts.session(forToken: session.token)
    } catch {
      throw Self.databaseError(error)
    }
  }

  /// Checks the session, then reads.
  func reading<Result>(
    _ body: () async throws(DatabaseError) -> Result
  ) async throws(DatabaseError) -> Result {
    try await check()
    return try await body()
  }

  /// Writes one of the owner's documents, in one transaction with the checks.
  func writing(
    _ document: DocumentReference, _ write: CompiledWrite
  ) async throws(DatabaseError) {
    let references = write.references
    do {
      try await accounts.database.runTransaction { transaction in
        let record = try accounts.session(session.token, in: transaction).record
        let stored = try transaction.getDocument(document)
        if scope == .public, stored.exists, stored[FieldPath(Self.ownerField)] as String? != uid {
          throw DatabaseError(
            .permissionDenied, "the document belongs to someone else", path: document.path)
        }
        try check(references, in: stored, record, transaction)
        try transaction.apply(write)
        if scope == .public, try transaction.getDocument(document).exists {
          try transaction.updateData([Self.ownerField: uid], forDocument: document)
        }
      }
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw Self.databaseError(AuthError(error))
    }
  }

  static func databaseError(_ error: AuthError) -> DatabaseError {
    error.databaseError ?? DatabaseError(.unauthenticated, error.message)
  }
}

/// A document of a signed-in user.
public struct UserDocument: Sendable {
  let database: UserDatabase
  let reference: DocumentReference

  /// The last segment of its path.
  public var documentID: String { reference.documentID }

  /// A collection below this document.
  ///
  /// - Parameter id: the collection's path below this document.
  public func collection(_ id: String) -> UserCollection {
    UserCollection(database: database, reference: reference.collection(id))
  }

  /// Gets the document, whether it exists or not.
  ///
  /// - Throws: `.unauthenticated`; otherwise as `DocumentReference.getDocument()`.
  public func getDocument() async throws(DatabaseError) -> DocumentSnapshot {
    try await database.reading { () async throws(DatabaseError) in
      try await reference.getDocument()
    }
  }

  /// Returns the bytes that a field refers to.
  ///
  /// - Parameter field: a field with a `BlobReference`.
  /// - Throws: `.unauthenticated`; `.notFound` when there is no such document, or no bytes in the
  ///   field.
  /// - Complexity: O(bytes).
  public func data(in field: FieldPath) async throws(DatabaseError) -> [UInt8] {
    guard let blob = try await getDocument()[field] as BlobReference? else {
      throw DatabaseError(.notFound, "no bytes are in \(field)", path: reference.path)
    }
    return Array(try await reference.database.storage.data(of: blob))
  }

  /// Sets all fields, or only the given fields with `merge`.
  ///
  /// - Parameters:
  ///   - data: the fields.
  ///   - merge: whether the other fields stay.
  /// - Throws: `.unauthenticated`, `.permissionDenied`; otherwise as `DocumentReference.setData`.
  public func setData(
    _ data: [String: (any FieldContent)?], merge: Bool = false
  ) async throws(DatabaseError) {
    try await database.writing(reference, try .set(data, merge: merge, reference))
  }

  /// Sets all fields from a value.
  ///
  /// - Parameter content: the value.
  /// - Throws: `.unauthenticated`, `.permissionDenied`; otherwise as `DocumentReference.setData`.
  public func setData<Content: Encodable>(from content: Content) async throws(DatabaseError) {
    try await database.writing(reference, try .set(from: content, reference))
  }

  /// Changes some fields of an existing document.
  ///
  /// - Parameter data: the fields; paths with dots lead into maps.
  /// - Throws: `.unauthenticated`, `.permissionDenied`, `.notFound`; otherwise as
  ///   `DocumentReference.updateData`.
  public func updateData(_ data: [String: (any FieldContent)?]) async throws(DatabaseError) {
    try await database.writing(reference, try .update(data, reference))
  }

  /// Deletes the document, if it exists. Collections below it stay.
  ///
  /// - Throws: `.unauthenticated`, `.permissionDenied`.
  public func delete() async throws(DatabaseError) {
    try await database.writing(reference, try .delete(reference))
  }

  /// The document and each later state of it, while the session is valid.
  public var snapshots: UserUpdates<DocumentSnapshot> {
    UserUpdates(database: database, updates: reference.snapshots)
  }
}

/// A collection of a signed-in user.
public struct UserCollection: Sendable {
  let database: UserDatabase
  let reference: CollectionReference

  /// A document of this collection.
  ///
  /// - Parameter id: the document's id.
  public func document(_ id: String) -> UserDocument {
    UserDocument(database: database, reference: reference.document(id))
  }

  /// Adds a document under a generated id.
  ///
  /// - Parameter data: the fields.
  /// - Returns: the document.
  /// - Throws: `.unauthenticated`, `.permissionDenied`; otherwise as
  ///   `CollectionReference.addDocument`.
  @discardableResult
  public func addDocument(
    _ data: [String: (any FieldContent)?]
  ) async throws(DatabaseError) -> UserDocument {
    let document = UserDocument(database: database, reference: reference.document())
    try await document.setData(data)
    return document
  }

  /// Adds a document from a value under a generated id.
  ///
  /// - Parameter content: the value.
  /// - Returns: the document.
  /// - Throws: `.unauthenticated`, `.permissionDenied`; otherwise as
  ///   `CollectionReference.addDocument`.
  @discardableResult
  public func addDocument<Content: Encodable>(
    from content: Content
  ) async throws(DatabaseError) -> UserDocument {
    let document = UserDocument(database: database, reference: reference.document())
    try await document.setData(from: content)
    return document
  }

  /// Gets documents of this collection.
  ///
  /// - Parameters:
  ///   - filter: the filter; nil for all documents.
  ///   - field: the field that orders them; nil for their ids.
  ///   - descending: whether the order is descending.
  ///   - limit: the largest number of documents; nil for no limit.
  ///   - cursor: the page starts after it: the `cursor` of the previous page.
  /// - Throws: `.unauthenticated`; otherwise as `Query.getDocuments()`.
  public func getDocuments(
    where filter: Filter? = nil, orderedBy field: FieldPath? = nil, descending: Bool = false,
    limit: Int? = nil, after cursor: QueryCursor? = nil
  ) async throws(DatabaseError) -> QuerySnapshot {
    let query = query(filter, field, descending, limit).start(after: cursor)
    return try await database.reading { () async throws(DatabaseError) in
      try await query.getDocuments()
    }
  }

  /// The documents and each later state of them, while the session is valid.
  ///
  /// - Parameters:
  ///   - filter: the filter; nil for all documents.
  ///   - field: the field that orders them; nil for their ids.
  ///   - descending: whether the order is descending.
  ///   - limit: the largest number of documents; nil for no limit.
  public func snapshots(
    where filter: Filter? = nil, orderedBy field: FieldPath? = nil, descending: Bool = false,
    limit: Int? = nil
  ) -> UserUpdates<QuerySnapshot> {
    UserUpdates(database: database, updates: query(filter, field, descending, limit).snapshots)
  }

  private func query(
    _ filter: Filter?, _ field: FieldPath?, _ descending: Bool, _ limit: Int?
  ) -> Query {
    var query = reference.query
    if let filter { query = query.whereFilter(filter) }
    if let field { query = query.order(by: field, descending: descending) }
    if let limit { query = query.limit(to: limit) }
    return query
  }
}

/// The states of a person's document or query as it changes. Throws `.unauthenticated` instead of
/// the first state after the end of the session.
public struct UserUpdates<Element: Sendable>: AsyncSequence, Sendable {
  /// The type of error.
  public typealias Failure = DatabaseError

  let database: UserDatabase
  let updates: Updates<Element>

  /// Listens, from now on.
  public func makeAsyncIterator() -> Iterator {
    Iterator(database: database, updates: updates.makeAsyncIterator())
  }

  /// One listener.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let database: UserDatabase
    fileprivate var updates: Updates<Element>.Iterator

    /// The next state; nil when the task is cancelled or the database is closed.
    ///
    /// - Throws: `.unauthenticated` when the session is over; otherwise as the query itself.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(DatabaseError) -> Element? {
      guard let element = try await updates.next(isolation: actor) else { return nil }
      try await database.check()
      return element
    }
  }
}
