// The bytes that a person's documents may refer to. Contents have no owner: the database stores
// each once under its digest, and a document that refers to one gives access to its bytes. A digest
// can leak, and anyone with a common file can compute it, so a digest alone must not open other
// people's private bytes. To write a reference, a person must have put the bytes or be able to read
// them already.
//
// The database notes each put below the account's own document, out of reach of any user's path,
// for as long as the bytes wait for a document. It already knows which documents refer to a
// content.

public import Ondol

extension UserDatabase {
  /// Stores bytes for a field of a document.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - contentType: a MIME type; nil detects it from the bytes.
  /// - Returns: a reference for a field of this person's documents, public or private, valid within
  ///   the database's `Options.blobLease`. `UserDocument.data(in:)` returns the bytes.
  /// - Throws: `.unauthenticated`; otherwise as `Storage.put`.
  /// - Complexity: as `Storage.put`, and one small commit.
  public func put(
    _ data: some Collection<UInt8> & Sendable, contentType: String? = nil
  ) async throws(DatabaseError) -> BlobReference {
    try await check()
    let blob = try await accounts.database.storage.put(data, contentType: contentType)
    try await note(blob)
    return blob
  }

  /// Stores bytes for documents of a collection whose root has its own key; see
  /// `Storage.put(_:for:contentType:expecting:durability:)`.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - collection: one of this person's collections.
  ///   - contentType: a MIME type; nil detects it from the bytes.
  /// - Returns: as `put(_:contentType:)`.
  /// - Throws: `.unauthenticated`; otherwise as that call of `Storage`.
  /// - Complexity: as that call, and one small commit.
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

  /// Records that the person put bytes.
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

  /// Throws `.permissionDenied` for a reference to bytes that the person may not use.
  ///
  /// - Parameter stored: the document before the write.
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
        // The error does not depend on whether the database has the bytes.
        throw DatabaseError(
          .permissionDenied, "this person has not put these bytes and has no document with them",
          suggestion: "put the bytes with put(_:)", path: stored.reference.path,
          field: reference.field)
      }
      known.insert(reference.blob.digest)
    }
  }

  /// Returns whether the person put the bytes, or may read a document that refers to them.
  private func mayHave(
    _ digest: BlobDigest, _ transaction: Transaction
  ) throws(DatabaseError) -> Bool {
    let places = accounts.places
    if try transaction.getDocument(places.puts(of: uid).document(digest.hex)).exists { return true }
    if try transaction.holds(digest, below: places.privateRoot(uid)) { return true }
    return try transaction.holds(digest, below: places.publicRoot)
  }
}
