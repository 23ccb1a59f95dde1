// Bytes and documents in one commit, which makes orphans and dangling paths impossible. Putting
// bytes stages them, which is the slow part. The commit then refers to them together with the
// documents. Without a commit, they are reclaimed.

internal import OndolEngine

extension Transaction {
  /// Puts bytes at a path. They become visible together with everything else that the transaction
  /// writes.
  ///
  ///     try await database.runTransaction { transaction in
  ///       try await transaction.putData(png, at: "images/lamp.png")
  ///       try transaction.setData(from: item, forDocument: items.document(item.id))
  ///     }
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - path: where the object goes.
  ///   - metadata: the object's metadata. Without a content type, that is detected from the bytes.
  ///   - generation: the generation that an object there must have; 0 when there must be none, any
  ///     when nil.
  /// - Returns: the content, as a value for a document's field.
  /// - Throws: as `StorageReference.putData`; `.failedPrecondition` when the transaction is over.
  /// - Complexity: O(bytes), written and synced; only hashed when they are stored already, as in
  ///   every attempt but the first.
  @discardableResult
  public func putData(
    _ data: some Collection<UInt8> & Sendable, at path: String,
    metadata: StorageMetadata = StorageMetadata(), ifGeneration generation: Int64? = nil
  ) async throws(DatabaseError) -> BlobReference {
    let reference = database.storage.reference(withPath: path)
    let document = try check(reference)
    try metadata.check()
    let bytes = Array(data)
    let staged = try await database.contents.stage(bytes)
    let write = try metadata.put(
      staged, head: Array(bytes.prefix(ContentSniffer.length)), at: document,
      StorageCondition(generation: generation))
    try add(write, bringing: [staged])
    let type = metadata.contentType ?? ContentSniffer.contentType(of: bytes, isWhole: true)
    return try BlobReference(
      digest: staged.digest, length: staged.length, contentType: type, path: reference.fullPath)
  }

  /// Stores bytes for a document that the transaction writes to refer to. Bytes that no document
  /// refers to at the commit are reclaimed.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - contentType: detected from the bytes when nil.
  /// - Returns: the content, as a value for a document's field.
  /// - Throws: as `Storage.put`; `.failedPrecondition` when the transaction is over.
  /// - Complexity: O(bytes), written and synced; only hashed when they are stored already, as in
  ///   every attempt but the first.
  public func put(
    _ data: some Collection<UInt8> & Sendable, contentType: String? = nil
  ) async throws(DatabaseError) -> BlobReference {
    try check(database, "")
    let bytes = Array(data)
    let staged = try await database.contents.stage(bytes)
    let type = contentType ?? ContentSniffer.contentType(of: bytes, isWhole: true)
    let blob = try BlobReference(digest: staged.digest, length: staged.length, contentType: type)
    try bring([staged])
    return blob
  }

  /// Stores bytes for documents of a collection with a key of its own that the transaction writes,
  /// like `Storage.put(_:for:contentType:expecting:durability:)`. Bytes that no document refers to
  /// at the commit are reclaimed.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - collection: the collection, or one below a document of it.
  ///   - contentType: detected from the bytes when nil.
  /// - Returns: the content, as a value for a document's field.
  /// - Throws: as with `Storage`; `.failedPrecondition` when the transaction is over.
  /// - Complexity: O(bytes), sealed, written and synced in every attempt.
  public func put(
    _ data: some Collection<UInt8> & Sendable, for collection: CollectionReference,
    contentType: String? = nil
  ) async throws(DatabaseError) -> BlobReference {
    try check(database, "")
    let sealed = try await database.stage(Array(data), for: collection, contentType: contentType)
    try bring([sealed.content])
    return sealed.blob
  }

  /// The metadata of the object at a path, as the transaction has left it; nil when there is none.
  ///
  /// - Parameter path: the object's path.
  /// - Throws: as `getDocument(_:)`.
  public func getMetadata(at path: String) throws(DatabaseError) -> StorageMetadata? {
    try metadata(of: database.storage.reference(withPath: path))
  }

  /// Deletes the object at a path.
  ///
  /// - Parameters:
  ///   - path: the object's path.
  ///   - generation: the generation that the object must have; any when nil.
  /// - Throws: `.notFound` when there is no object. If a document still links to the path at the
  ///   end of the transaction, the commit throws `.failedPrecondition`.
  public func deleteObject(
    at path: String, ifGeneration generation: Int64? = nil
  ) throws(DatabaseError) {
    try deleteObject(database.storage.reference(withPath: path), generation)
  }

  // MARK: - Objects

  func metadata(of reference: StorageReference) throws(DatabaseError) -> StorageMetadata? {
    let path = try check(reference)
    return StorageMetadata(
      try getDocument(DocumentReference(database: database, place: .success(path))))
  }

  func deleteObject(
    _ reference: StorageReference, _ generation: Int64? = nil
  ) throws(DatabaseError) {
    let condition = StorageCondition(exists: true, generation: generation)
    try add(
      DocumentWrite(
        path: try check(reference), intent: WriteCompiler.delete(precondition: .object(condition))))
  }

  /// Puts the object at one path at another path as well.
  func copyObject(
    from source: StorageReference, to target: StorageReference, _ condition: StorageCondition
  ) throws(DatabaseError) {
    guard let metadata = try metadata(of: source), let digest = metadata.sha256 else {
      throw StorageCondition.missing(source.fullPath)
    }
    let content = try BlobReference(digest: digest, length: metadata.size)
    let intent = WriteIntent(
      change: .replace(fields: metadata.fields(for: content, metadata.checksums)),
      precondition: .object(condition))
    try add(DocumentWrite(path: try check(target), intent: intent))
  }

  /// Checks a reference for this transaction; returns its document.
  private func check(_ reference: StorageReference) throws(DatabaseError) -> DocumentPath {
    let path = try reference.document()
    return try check(DocumentReference(database: reference.database, place: .success(path)))
  }
}

extension WriteBatch {
  /// Adds a put of bytes at a path. They are written when the batch is committed.
  ///
  /// - Parameters:
  ///   - data: the bytes, kept in memory until the commit.
  ///   - path: where the object goes.
  ///   - metadata: the object's metadata. Without a content type, that is detected from the bytes.
  ///   - generation: the generation that an object there must have; 0 when there must be none, any
  ///     when nil.
  /// - Returns: the batch.
  /// - Throws: `.invalidArgument` when the path or the metadata is wrong. All other errors of
  ///   `StorageReference.putData` are thrown by `commit(durability:)`.
  @discardableResult
  public func putData(
    _ data: some Collection<UInt8> & Sendable, at path: String,
    metadata: StorageMetadata = StorageMetadata(), ifGeneration generation: Int64? = nil
  ) throws(DatabaseError) -> WriteBatch {
    let document = try database.storage.reference(withPath: path).document()
    try metadata.check()
    try add(
      StoragePut(
        document: document, bytes: Array(data), metadata: metadata,
        condition: StorageCondition(generation: generation)))
    return self
  }

  /// Adds a delete of the object at a path; the commit throws `.notFound` when there is none.
  ///
  /// - Parameter path: the object's path.
  /// - Returns: the batch.
  /// - Throws: `.invalidArgument` when the path is wrong.
  @discardableResult
  public func deleteObject(at path: String) throws(DatabaseError) -> WriteBatch {
    let document = try database.storage.reference(withPath: path).document()
    let condition = StorageCondition(exists: true)
    try add(
      DocumentWrite(
        path: document, intent: WriteCompiler.delete(precondition: .object(condition))))
    return self
  }
}
