// The way into storage: `database.storage`. Files by path, as in Firebase Storage, and contents
// without a path, for documents to refer to. Start reading blobs here; who holds what is in
// HolderChanges, where the bytes are in ContentStore.

internal import OndolEngine
public import OndolFoundation

extension Database {
  /// The database's files and blobs.
  public var storage: Storage { Storage(database: self) }
}

/// Files and blobs, kept beside the documents and in the same commits.
///
/// Bytes are stored once, however many paths and documents have them, and stay for as long as one
/// of these holds them: a path, a `BlobReference` in a document, or a linked field of one (see
/// `CollectionReference.linkBlobs(field:under:progress:)`). What nobody holds any more is reclaimed
/// in the background.
///
/// Errors have the codes of `DatabaseError`. Those of Firebase Storage become:
///
/// | Firebase Storage | here |
/// |---|---|
/// | objectNotFound | `.notFound` |
/// | quotaExceeded | `.resourceExhausted`: the disk is full |
/// | unauthorized | `.permissionDenied`: the system does not let this process at the files |
/// | nonMatchingChecksum | `.invalidArgument` for bytes that are put, `.dataLoss` for stored ones |
/// | downloadSizeExceeded | `.resourceExhausted` |
/// | cancelled | `.cancelled` |
/// | invalidArgument, pathError | `.invalidArgument` |
/// | bucketMismatch | `.invalidArgument`: a URL of another database |
/// | internalError, unknown | `.internal` |
///
/// The others, about buckets, projects, signing in and retries, have no meaning here.
public struct Storage: Sendable {
  /// The database the storage belongs to.
  public let database: Database

  /// The root, which is a folder.
  public func reference() -> StorageReference { StorageReference(database: database, path: "") }

  /// The place at `path`. Leading, trailing and repeated `/` mean nothing. A path that cannot be
  /// one, over 1,024 bytes or with a control character, makes the calls throw that use it.
  ///
  /// - Parameter path: names with `/` between, up to 1,024 bytes of UTF-8.
  public func reference(withPath path: String) -> StorageReference {
    StorageReference(database: database, path: StoragePath.normal(path))
  }

  // MARK: - Contents without a path

  /// Stores bytes for a document to refer to. Put the reference into a field before the lease ends,
  /// a day by default (`Options.blobLease`); the document holds the content from then on. Bytes
  /// that are stored already are not stored again.
  ///
  ///     let blob = try await storage.put(png)
  ///     try await items.document("lamp").updateData(["photo": blob])
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - contentType: told from the bytes when nil.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the lease survives; the database's own when nil. The bytes themselves are
  ///     synced in any case.
  /// - Throws: `.invalidArgument` when the bytes have another digest; `.resourceExhausted` when the
  ///   disk is full; `.cancelled` when the task was cancelled, and nothing is stored then.
  /// - Complexity: O(bytes), written and synced; only hashed when they are stored already.
  public func put(
    _ data: some Collection<UInt8> & Sendable, contentType: String? = nil,
    expecting expected: BlobDigest? = nil, durability: Durability? = nil
  ) async throws(DatabaseError) -> BlobReference {
    let bytes = Array(data)
    let staged = try await database.contents.stage(bytes, expecting: expected)
    let type = contentType ?? ContentSniffer.contentType(of: bytes, isWhole: true)
    let blob = try BlobReference(digest: staged.digest, length: staged.length, contentType: type)
    try await database.contents.lease(staged, durability: durability)
    return blob
  }

  /// Stores bytes for documents of a collection with a key of its own to refer to: sealed, so that
  /// dropping the collection erases them, too, from the database and from every copy without keys.
  ///
  ///     let scan = try await storage.put(pdf, for: records)
  ///     try await records.document("a").updateData(["scan": scan])
  ///
  /// They are sealed under a key that only the reference has, which stands in the document. A
  /// document of a collection without a key of its own cannot refer to them. The reference's digest
  /// is that of the sealed bytes, and bytes that are put twice are stored twice.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - collection: the collection, or one below a document of it.
  ///   - contentType: told from the bytes when nil.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: as with `put(_:contentType:expecting:durability:)`.
  /// - Throws: `.failedPrecondition` when the collection has no key of its own;
  ///   `.permissionDenied` when that is not here; `.invalidArgument` when the collection is of
  ///   another database; `.unimplemented` on a server; otherwise as
  ///   `put(_:contentType:expecting:durability:)`.
  /// - Complexity: O(bytes), sealed, written and synced; two copies of them in memory.
  public func put(
    _ data: some Collection<UInt8> & Sendable, for collection: CollectionReference,
    contentType: String? = nil, expecting expected: BlobDigest? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> BlobReference {
    let sealed = try await database.stage(
      Array(data), for: collection, contentType: contentType, expecting: expected)
    try await database.contents.lease(sealed.content, durability: durability)
    return sealed.blob
  }

  /// The bytes of a content.
  ///
  /// - Parameters:
  ///   - blob: which content.
  ///   - maxSize: bytes that the caller has room for; no limit when nil.
  /// - Throws: `.notFound` when the content is not stored any more; `.resourceExhausted` when it is
  ///   longer than `maxSize`; `.dataLoss` naming the file and who holds the content when its bytes
  ///   are damaged.
  /// - Complexity: O(bytes), all of them in memory.
  public func data(
    of blob: BlobReference, maxSize: Int? = nil
  ) async throws(DatabaseError) -> Data {
    let reader = try await database.reader(of: blob)
    return try await reader.data(maxSize: maxSize, named: "\(blob)")
  }

  /// The bytes of a content, or some of them, piece by piece; see `StorageReference.bytes(in:)`.
  ///
  /// - Parameters:
  ///   - blob: the content.
  ///   - range: the places of the bytes; a range that goes behind the end stops there. All bytes
  ///     when nil.
  public func bytes(of blob: BlobReference, in range: Range<Int>? = nil) -> StorageBytes {
    StorageBytes(range) { [database] () throws(DatabaseError) in
      try await database.reader(of: blob)
    }
  }
}

extension Database {
  /// Opens what is stored under a digest for reading.
  ///
  /// Throws `.notFound` when it is not stored.
  func reader(
    of digest: BlobDigest, named name: @autoclosure () -> String
  ) async throws(DatabaseError) -> ContentReader {
    guard let reader = try await contents.reader(of: digest) else { throw .notStored(name()) }
    return reader
  }

  /// Opens what a reference is of for reading.
  ///
  /// Throws `.notFound` when it is not stored; `.invalidArgument` when the reference cannot be of
  /// what is.
  func reader(of blob: BlobReference) async throws(DatabaseError) -> ContentReader {
    guard let reader = try await contents.reader(of: blob) else { throw .notStored("\(blob)") }
    return reader
  }
}

extension DatabaseError {
  fileprivate static func notStored(_ name: String) -> DatabaseError {
    DatabaseError(.notFound, "the content is not stored any more: nobody held it", path: name)
  }
}

extension ContentReader {
  /// Bytes that are read at once.
  static let pieceLength = 1 << 20

  /// All bytes.
  func data(
    maxSize: Int?, named name: @autoclosure () -> String
  ) async throws(DatabaseError) -> Data {
    if let maxSize, length > maxSize {
      throw DatabaseError(
        .resourceExhausted, "there are \(length) bytes, and \(maxSize) were allowed", path: name())
    }
    // Most are one piece, which is copied once.
    if length <= Self.pieceLength { return Data(try await read(0..<length)) }
    var data = Data(capacity: length)
    while data.count < length {
      try refuseWhenCancelled()
      data += try await read(data.count..<min(length, data.count + Self.pieceLength))
    }
    return data
  }

}
