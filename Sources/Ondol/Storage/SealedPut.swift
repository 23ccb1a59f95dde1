// Uploads of contents for collections with keys of their own: they are sealed, and then staged like
// all others.

internal import OndolEngine

extension Database {
  /// Seals bytes for documents of a collection with a key of its own, and stages the sealed bytes.
  ///
  /// Throws `.failedPrecondition` when the collection has no such key, `.permissionDenied` when the
  /// key is missing, and `.unimplemented` on a server.
  @concurrent
  func stage(
    _ bytes: [UInt8], for collection: CollectionReference, contentType: String?,
    expecting expected: BlobDigest? = nil
  ) async throws(DatabaseError) -> (content: StagedContent, blob: BlobReference) {
    let path = try collection.place.get()
    try refuseOwnKeys()
    guard collection.database === self else {
      throw DatabaseError(
        .invalidArgument, "the collection belongs to another database", path: "\(path)")
    }
    guard try await family(path.segments[0])?.hasOwnKey == true else {
      throw DatabaseError(
        .failedPrecondition, "the collection has no key of its own to keep the content with",
        suggestion: "create it with createWithOwnKey(), or put the content with put(_:)",
        path: "\(path)")
    }
    if let expected,
      let error = ContentStore.mismatch(ContentHasher.digest(of: bytes), expected)
    {
      throw error
    }
    let key = BlobKey.random()
    guard let seal = ContentSeal(key, length: bytes.count) else {
      throw DatabaseError(.resourceExhausted, "no content can have \(bytes.count) bytes")
    }
    let content = try await contents.stage(seal.seal(bytes))
    let type = contentType ?? ContentSniffer.contentType(of: bytes, isWhole: true)
    let blob = try BlobReference(
      digest: content.digest, length: bytes.count, contentType: type, key: key)
    return (content, blob)
  }
}
