// Which bytes a person's documents may refer to. Contents have no owner: they are stored once and
// named by their digest, and a document that names one can have its bytes read. So a digest that
// somebody has seen, or worked out from a file that many people have, would open what others keep
// in private. So who writes a reference has put these bytes, or can read them already.
//
// What somebody put is noted below the account's own document, where no path of theirs leads, for
// as long as the bytes wait for a document. Who holds what is known to the database.

public import Ondol

extension UserDatabase {
  /// Stores bytes, for a document's field to hold.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - contentType: a MIME type; seen from the bytes when nil.
  /// - Returns: what goes into a field of this person's documents, public or private, within the
  ///   database's `Options.blobLease`. `UserDocument.data(in:)` gives the bytes back.
  /// - Throws: `.unauthenticated`; as `Storage.put`.
  /// - Complexity: as `Storage.put`, and one small commit.
  public func put(
    _ data: some Collection<UInt8> & Sendable, contentType: String? = nil
  ) async throws(DatabaseError) -> BlobReference {
    try await check()
    let blob = try await accounts.database.storage.put(data, contentType: contentType)
    try await note(blob)
    return blob
  }

  /// Stores bytes for documents of a collection whose root has a key of its own; see
  /// `Storage.put(_:for:contentType:expecting:durability:)`.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - collection: a collection of this person's.
  ///   - contentType: a MIME type; seen from the bytes when nil.
  /// - Returns: as `put(_:contentType:)`.
  /// - Throws: `.unauthenticated`; as the call of `Storage`.
  /// - Complexity: as that, and one small commit.
  public func put(
    _ data: some Collection<UInt8> & Sendable, for collection: UserCollection,
    contentType: String? = nil
  ) async throws(DatabaseError) -> BlobReference {
    try await check()
    let blob = try await accounts.database.storage.put(
      data, for: collection.reference, contentType: contentType)
    try await note(blob)
    return blob
  }

  /// Notes that the person put bytes.
  private func note(_ blob: BlobReference) async throws(DatabaseError) {
    do {
      try await accounts.database.runTransaction { transaction in
        _ = try accounts.session(session.token, in: transaction)
        let end = try accounts.moment(accounts.database.blobLease, after: accounts.now())
        try transaction.setData(
          from: PutRecord(expiresAt: end),
          forDocument: accounts.places.puts(of: uid).document(blob.digest.hex))
      }
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw Self.databaseError(AuthError(error))
    }
  }

  /// Throws `.permissionDenied` for a reference to bytes that the person may not have.
  ///
  /// - Parameter stored: the document as it is.
  func check(
    _ references: [CompiledWrite.Reference], in stored: DocumentSnapshot, _ record: AccountRecord,
    _ transaction: Transaction
  ) throws(DatabaseError) {
    guard !references.isEmpty else { return }
    var known = stored.data().contents
    if let profile = record.profile {
      let profile = try transaction.getDocument(accounts.database.document(profile))
      known.formUnion(profile.data().contents)
    }
    for reference in references where !known.contains(reference.blob.digest) {
      guard try mayHave(reference.blob.digest, transaction) else {
        // The same whether anybody has the bytes or not.
        throw DatabaseError(
          .permissionDenied, "this person has not put these bytes and has no document with them",
          suggestion: "put the bytes with put(_:)", path: stored.reference.path,
          field: reference.field)
      }
      known.insert(reference.blob.digest)
    }
  }

  /// Whether the person put the bytes, or a document has them that the person may read.
  private func mayHave(
    _ digest: BlobDigest, _ transaction: Transaction
  ) throws(DatabaseError) -> Bool {
    let places = accounts.places
    if try transaction.getDocument(places.puts(of: uid).document(digest.hex)).exists { return true }
    if try transaction.holds(digest, below: places.privateRoot(uid)) { return true }
    return try transaction.holds(digest, below: places.publicRoot)
  }
}
