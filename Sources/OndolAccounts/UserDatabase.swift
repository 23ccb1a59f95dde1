// A signed-in person's data, as CloudKit divides it: a private database that nobody else sees, and
// a public one that all see and where each document is its maker's. Every call asks first whether
// the session still stands and whose the document is; a write asks in its own transaction, so that
// nothing is written after the end of a session. Which bytes it may refer to is asked in
// UserDatabase+Contents.
//
// It keeps a service from mixing up its people. It is no wall inside the process: whoever has the
// `Database` has all of it.

public import Ondol

extension Accounts {
  /// What the owner of a session alone sees: collections below `privateData/UID`.
  ///
  /// - Parameter session: whose data it is; each call asks whether it still stands.
  public func privateDatabase(for session: Session) -> UserDatabase {
    UserDatabase(accounts: self, session: session, scope: .private)
  }

  /// What all see who are signed in, and each changes of their own: collections below
  /// `publicData/all`.
  ///
  /// - Parameter session: who it is that reads and writes; each call asks whether it still stands.
  public func publicDatabase(for session: Session) -> UserDatabase {
    UserDatabase(accounts: self, session: session, scope: .public)
  }
}

/// The private or the public data of somebody who is signed in.
///
/// ```swift
/// let notes = user.privateDatabase.collection("notes")
/// try await notes.document("today").setData(["text": "buy tea"])
/// let posts = user.publicDatabase.collection("posts")
/// try await posts.addDocument(["text": "hello"])  // its field ownerID is the user's uid
/// ```
///
/// All calls throw `.unauthenticated` when the session is over, and `.permissionDenied` for a
/// public document that is somebody else's. Writes throw `.permissionDenied`, naming the field, for
/// a reference to bytes that this person neither put with `put(_:contentType:)` nor finds in a
/// document that they may read: to know the digest of somebody's bytes is not to have them.
public struct UserDatabase: Sendable {
  /// Who sees the data.
  public enum Scope: Sendable, Hashable {
    /// Its owner alone.
    case `private`
    /// All who are signed in; its owner changes it.
    case `public`
  }

  /// The field of a public document that has its owner's uid. Writes set it, whatever they say.
  public static let ownerField = "ownerID"

  let accounts: Accounts
  let session: Session
  /// Which of the two it is.
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

  /// Reads after the check.
  func reading<Result>(
    _ body: () async throws(DatabaseError) -> Result
  ) async throws(DatabaseError) -> Result {
    try await check()
    return try await body()
  }

  /// Writes a document of the owner's, in one transaction with the checks.
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
            .permissionDenied, "the document is somebody else's", path: document.path)
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

/// A document of somebody who is signed in.
public struct UserDocument: Sendable {
  let database: UserDatabase
  let reference: DocumentReference

  /// The last segment of its path.
  public var documentID: String { reference.documentID }

  /// A collection below it.
  ///
  /// - Parameter id: the collection's path below this document.
  public func collection(_ id: String) -> UserCollection {
    UserCollection(database: database, reference: reference.collection(id))
  }

  /// The document, there or not.
  ///
  /// - Throws: `.unauthenticated`; as `DocumentReference.getDocument()`.
  public func getDocument() async throws(DatabaseError) -> DocumentSnapshot {
    try await database.reading { () async throws(DatabaseError) in
      try await reference.getDocument()
    }
  }

  /// The bytes that a field holds.
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

  /// Sets all its fields, or those given when `merge`.
  ///
  /// - Parameters:
  ///   - data: the fields.
  ///   - merge: whether fields that are not given stay.
  /// - Throws: `.unauthenticated`, `.permissionDenied`; as `DocumentReference.setData`.
  public func setData(
    _ data: [String: (any FieldContent)?], merge: Bool = false
  ) async throws(DatabaseError) {
    try await database.writing(reference, try .set(data, merge: merge, reference))
  }

  /// Sets all its fields from a value.
  ///
  /// - Parameter content: the value.
  /// - Throws: `.unauthenticated`, `.permissionDenied`; as `DocumentReference.setData`.
  public func setData<Content: Encodable>(from content: Content) async throws(DatabaseError) {
    try await database.writing(reference, try .set(from: content, reference))
  }

  /// Changes some fields of a document that is there.
  ///
  /// - Parameter data: the fields; paths with dots lead into maps.
  /// - Throws: `.unauthenticated`, `.permissionDenied`, `.notFound`; as
  ///   `DocumentReference.updateData`.
  public func updateData(_ data: [String: (any FieldContent)?]) async throws(DatabaseError) {
    try await database.writing(reference, try .update(data, reference))
  }

  /// Removes it; no error when there is none. Collections below it stay.
  ///
  /// - Throws: `.unauthenticated`, `.permissionDenied`.
  public func delete() async throws(DatabaseError) {
    try await database.writing(reference, try .delete(reference))
  }

  /// The document, and every later state of it, for as long as the session stands.
  public var snapshots: UserUpdates<DocumentSnapshot> {
    UserUpdates(database: database, updates: reference.snapshots)
  }
}

/// A collection of somebody who is signed in.
public struct UserCollection: Sendable {
  let database: UserDatabase
  let reference: CollectionReference

  /// A document of it.
  ///
  /// - Parameter id: the document's id.
  public func document(_ id: String) -> UserDocument {
    UserDocument(database: database, reference: reference.document(id))
  }

  /// Adds a document under an id of its own.
  ///
  /// - Parameter data: the fields.
  /// - Returns: the document.
  /// - Throws: `.unauthenticated`, `.permissionDenied`; as `CollectionReference.addDocument`.
  @discardableResult
  public func addDocument(
    _ data: [String: (any FieldContent)?]
  ) async throws(DatabaseError) -> UserDocument {
    let document = UserDocument(database: database, reference: reference.document())
    try await document.setData(data)
    return document
  }

  /// Adds a document from a value under an id of its own.
  ///
  /// - Parameter content: the value.
  /// - Returns: the document.
  /// - Throws: `.unauthenticated`, `.permissionDenied`; as `CollectionReference.addDocument`.
  @discardableResult
  public func addDocument<Content: Encodable>(
    from content: Content
  ) async throws(DatabaseError) -> UserDocument {
    let document = UserDocument(database: database, reference: reference.document())
    try await document.setData(from: content)
    return document
  }

  /// Its documents.
  ///
  /// - Parameters:
  ///   - filter: which of them; all when nil.
  ///   - field: what they are ordered by; their ids when nil.
  ///   - descending: whether the order is turned round.
  ///   - limit: how many at most; all when nil.
  ///   - cursor: begins after it: the `cursor` of the page before.
  /// - Throws: `.unauthenticated`; as `Query.getDocuments()`.
  public func getDocuments(
    where filter: Filter? = nil, orderedBy field: FieldPath? = nil, descending: Bool = false,
    limit: Int? = nil, after cursor: QueryCursor? = nil
  ) async throws(DatabaseError) -> QuerySnapshot {
    let query = query(filter, field, descending, limit).start(after: cursor)
    return try await database.reading { () async throws(DatabaseError) in
      try await query.getDocuments()
    }
  }

  /// Its documents, and every later state of them, for as long as the session stands.
  ///
  /// - Parameters:
  ///   - filter: which of them; all when nil.
  ///   - field: what they are ordered by; their ids when nil.
  ///   - descending: whether the order is turned round.
  ///   - limit: how many at most; all when nil.
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

/// What a person's document or query is, as it changes. Throws `.unauthenticated` in the place of
/// the first state after the end of the session.
public struct UserUpdates<Element: Sendable>: AsyncSequence, Sendable {
  /// What listening throws.
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
    /// - Throws: `.unauthenticated` when the session is over; what the query itself would.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(DatabaseError) -> Element? {
      guard let element = try await updates.next(isolation: actor) else { return nil }
      try await database.check()
      return element
    }
  }
}
