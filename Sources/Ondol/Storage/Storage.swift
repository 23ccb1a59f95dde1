// The entry point of storage: `database.storage`. Files by path, as in Firebase Storage, and
// contents without a path, for documents to refer to. Start reading about blobs here. HolderChanges
// has the holders of contents, and ContentStore the location of their bytes.

internal import OndolEngine
public import OndolFoundation

extension Database {
  /// The database's files and blobs.
  public var storage: Storage { Storage(database: self) }
}

/// Files and blobs, stored beside the documents and in the same commits.
///
/// Bytes are stored once, however many paths and documents have them. They stay as long as at least
/// one holder keeps them: a path, a `BlobReference` in a document, or a linked field of a document
/// (see `CollectionReference.linkBlobs(field:under:progress:)`). Bytes without a holder are
/// reclaimed in the background.
///
/// Errors have the codes of `DatabaseError`. Those of Firebase Storage become:
///
/// | Firebase Storage | here |
/// |---|---|
/// | objectNotFound | `.notFound` |
/// | quotaExceeded | `.resourceExhausted`: the disk is full |
/// | unauthorized | `.permissionDenied`: the system denies this process access to the files |
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

  /// The location at `path`. Leading, trailing and repeated `/` are ignored. With an invalid path,
  /// over 1,024 bytes or with a control character, the calls that use the reference throw.
  ///
  /// - Parameter path: names with `/` between, up to 1,024 bytes of UTF-8.
  public func reference(withPath path: String) -> StorageReference {
    StorageReference(database: database, path: StoragePath.normal(path))
  }

  // MARK: - Contents without a path

  /// Stores bytes for a document to refer to. Put the reference into a field before the lease ends,
  /// after a day by default (`Options.blobLease`). From then on the document holds the content.
  /// Bytes that are stored already are not stored again.
  ///
  ///     let blob = try await storage.put(png)
  ///     try await items.document("lamp").updateData(["photo": blob])
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - contentType: detected from the bytes when nil.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the lease survives; the database's own when nil. The bytes themselves are
  ///     always synced.
  /// - Throws: `.invalidArgument` when the bytes have another digest; `.resourceExhausted` when the
  ///   disk is full; `.cancelled` when the task was cancelled, and then nothing is stored.
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

  /// Stores bytes for documents of a collection with a key of its own to refer to. The bytes are
  /// sealed, so that dropping the collection also erases them, from the database and from every
  /// copy without keys.
  ///
  ///     let scan = try await storage.put(pdf, for: records)
  ///     try await records.document("a").updateData(["scan": scan])
  ///
  /// They are sealed under a key that only the reference contains, and the reference is in the
  /// document. A document of a collection without a key of its own cannot refer to them. The
  /// reference's digest is that of the sealed bytes, and bytes that are put twice are stored twice.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - collection: the collection, or one below a document of it.
  ///   - contentType: detected from the bytes when nil.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: as with `put(_:contentType:expecting:durability:)`.
  /// - Throws: `.failedPrecondition` when the collection has no key of its own; `.permissionDenied`
  ///   when that key is missing; `.invalidArgument` when the collection belongs to another
  ///   database; `.unimplemented` on a server; otherwise as
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
  ///   - blob: the content.
  ///   - maxSize: the most bytes that the caller has room for; no limit when nil.
  /// - Throws: `.notFound` when the content is not stored any more; `.resourceExhausted` when it is
  ///   longer than `maxSize`; `.dataLoss`, naming the file and the holders of the content, when its
  ///   bytes are damaged.
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
  ///   - range: the positions of the bytes; a range that goes beyond the end stops there. All bytes
  ///     when nil.
  public func bytes(of blob: BlobReference, in range: Range<Int>? = nil) -> StorageBytes {
    StorageBytes(range) { [database] () throws(DatabaseError) in
      try await database.reader(of: blob)
    }
  }
}

extension Database {
  /// Opens the content stored under a digest for reading.
  ///
  /// Throws `.notFound` when it is not stored.
  func reader(
    of digest: BlobDigest, named name: @autoclosure () -> String
  ) async throws(DatabaseError) -> ContentReader {
    guard let reader = try await contents.reader(of: digest) else { throw .notStored(name()) }
    return reader
  }

  /// Opens the content of a reference for reading.
  ///
  /// Throws `.notFound` when it is not stored; `.invalidArgument` when the reference does not fit
  /// the stored content.
  func reader(of blob: BlobReference) async throws(DatabaseError) -> ContentReader {
    guard let reader = try await contents.reader(of: blob) else { throw .notStored("\(blob)") }
    return reader
  }
}

extension DatabaseError {
  fileprivate static func notStored(_ name: String) -> DatabaseError {
    DatabaseError(.notFound, "the content is not stored any more: it had no holder", path: name)
  }
}

extension ContentReader {
  /// The most bytes read at once.
  static let pieceLength = 1 << 20

  /// All bytes.
  func data(
    maxSize: Int?, named name: @autoclosure () -> String
  ) async throws(DatabaseError) -> Data {
    if let maxSize, length > maxSize {
      throw DatabaseError(
        .resourceExhausted, "there are \(length) bytes, and \(maxSize) were allowed", path: name())
    }
    // Most contents are one piece, which is copied once.
    if length <= Self.pieceLength { return Data(try await read(0..<length)) }
    var data = Data(capacity: length)
    while data.count < length {
      try refuseWhenCancelled()
      data += try await read(data.count..<min(length, data.count + Self.pieceLength))
    }
    return data
  }

}
