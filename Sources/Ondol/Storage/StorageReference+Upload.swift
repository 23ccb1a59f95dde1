// Puts bytes at a path. The bytes are staged first, which takes time in proportion to their length.
// Then one commit writes the path's document, which holds them. So an upload that fails or is
// cancelled changes nothing, and one that replaces an object never shows half of either.

internal import OndolEngine
public import OndolFoundation

extension StorageReference {
  /// Puts bytes here, and replaces an existing object. Readers see the old object until the commit
  /// and the new one afterwards. A reader of the old one continues to read it.
  ///
  /// As in Firebase Storage, nothing of the old object's metadata stays.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - metadata: the object's metadata. Without a content type, that is detected from the bytes.
  ///   - generation: the generation that the object here must have; 0 when there must be none.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the commit survives; the database's own when nil. The bytes are always on
  ///     the device before the commit.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Returns: the new object's metadata.
  /// - Throws: `.invalidArgument` when the path, the metadata or the digest is wrong; `.aborted` or
  ///   `.alreadyExists` when the object has another generation; `.resourceExhausted` when the disk
  ///   is full; `.cancelled` when the task was cancelled in time, and then nothing has changed.
  /// - Complexity: O(bytes), written and synced; only hashed when they are stored already.
  @discardableResult
  public func putData(
    _ data: some Collection<UInt8> & Sendable, metadata: StorageMetadata = StorageMetadata(),
    ifGeneration generation: Int64? = nil, expecting expected: BlobDigest? = nil,
    durability: Durability? = nil, progress: (StorageProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> StorageMetadata {
    var upload = try Upload(self, metadata, totalBytes: data.count)
    let bytes = Array(data)
    upload.note(bytes)
    progress(StorageProgress(completedBytes: 0, totalBytes: bytes.count))
    let staged = try await database.contents.stage(bytes, expecting: expected)
    progress(StorageProgress(completedBytes: bytes.count, totalBytes: bytes.count))
    return try await upload.commit(staged, StorageCondition(generation: generation), durability)
  }

  /// Puts the bytes of a file here, like `putData`. The file is read once, piece by piece. It may
  /// change or be removed as soon as this has returned.
  ///
  /// - Parameters:
  ///   - path: the file's path.
  ///   - metadata: the object's metadata. Without a content type, that is detected from the bytes.
  ///   - generation: the generation that the object here must have; 0 when there must be none.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Throws: `.notFound` or `.permissionDenied` when the file cannot be read, `.aborted` when its
  ///   length changes meanwhile; otherwise as `putData`.
  /// - Complexity: O(bytes), about three megabytes of them in memory.
  @discardableResult
  public func putFile(
    from path: String, metadata: StorageMetadata = StorageMetadata(),
    ifGeneration generation: Int64? = nil, expecting expected: BlobDigest? = nil,
    durability: Durability? = nil, progress: (StorageProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> StorageMetadata {
    var file = try await LocalFile.open(path, in: database)
    var upload = try Upload(self, metadata, totalBytes: file.length)
    let intake = database.contents.beginIntake()
    let staged = try await intake.filled { () throws(DatabaseError) in
      progress(StorageProgress(completedBytes: 0, totalBytes: file.length))
      while let chunk = try await file.next() {
        try await upload.take(chunk, intake, progress)
      }
      return try await intake.finish(expecting: expected)
    }
    return try await upload.commit(staged, StorageCondition(generation: generation), durability)
  }

  /// Puts the bytes of a file here, like `putFile(from:)` with its path.
  ///
  /// - Parameters:
  ///   - url: the file's URL.
  ///   - metadata: the object's metadata. Without a content type, that is detected from the bytes.
  ///   - generation: the generation that the object here must have; 0 when there must be none.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Throws: `.invalidArgument` when the URL is not a file's; otherwise as with a path.
  /// - Complexity: O(bytes), about three megabytes of them in memory.
  @discardableResult
  public func putFile(
    from url: URL, metadata: StorageMetadata = StorageMetadata(),
    ifGeneration generation: Int64? = nil, expecting expected: BlobDigest? = nil,
    durability: Durability? = nil, progress: (StorageProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> StorageMetadata {
    guard url.isFileURL else {
      throw DatabaseError(.invalidArgument, "\(url) is not a file's URL", path: fullPath)
    }
    return try await putFile(
      from: url.path, metadata: metadata, ifGeneration: generation, expecting: expected,
      durability: durability, progress: progress)
  }

  /// Puts the bytes of a sequence of chunks here, like `putData`. It requests the next chunk when
  /// it has taken the previous one.
  ///
  /// - Parameters:
  ///   - chunks: the bytes, piece by piece; empty pieces are ignored.
  ///   - metadata: the object's metadata. Without a content type, that is detected from the bytes.
  ///   - generation: the generation that the object here must have; 0 when there must be none.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Throws: what the sequence throws, and then nothing has changed; otherwise as `putData`.
  /// - Complexity: O(bytes), about three megabytes and a chunk of them in memory.
  @discardableResult
  public func put<Chunks: AsyncSequence>(
    _ chunks: Chunks, metadata: StorageMetadata = StorageMetadata(),
    ifGeneration generation: Int64? = nil, expecting expected: BlobDigest? = nil,
    durability: Durability? = nil, progress: (StorageProgress) -> Void = { _ in }
  ) async throws -> StorageMetadata where Chunks.Element: Collection<UInt8> {
    var upload = try Upload(self, metadata, totalBytes: nil)
    let intake = database.contents.beginIntake()
    let staged = try await intake.filled {
      for try await chunk in chunks { try await upload.take(Array(chunk), intake, progress) }
      return try await intake.finish(expecting: expected)
    }
    return try await upload.commit(staged, StorageCondition(generation: generation), durability)
  }

  /// Puts the bytes of a sequence of single bytes here, as with chunks.
  ///
  /// - Parameters:
  ///   - bytes: the bytes.
  ///   - metadata: the object's metadata. Without a content type, that is detected from the bytes.
  ///   - generation: the generation that the object here must have; 0 when there must be none.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Throws: what the sequence throws, and then nothing has changed; otherwise as `putData`.
  /// - Complexity: O(bytes), about three megabytes of them in memory. Chunks are faster.
  @discardableResult
  public func put<Bytes: AsyncSequence>(
    _ bytes: Bytes, metadata: StorageMetadata = StorageMetadata(),
    ifGeneration generation: Int64? = nil, expecting expected: BlobDigest? = nil,
    durability: Durability? = nil, progress: (StorageProgress) -> Void = { _ in }
  ) async throws -> StorageMetadata where Bytes.Element == UInt8 {
    var upload = try Upload(self, metadata, totalBytes: nil)
    let intake = database.contents.beginIntake()
    let staged = try await intake.filled {
      var chunk: [UInt8] = []
      for try await byte in bytes {
        chunk.append(byte)
        if chunk.count == ByteCount.chunk {
          try await upload.take(chunk, intake, progress)
          chunk.removeAll(keepingCapacity: true)
        }
      }
      if !chunk.isEmpty { try await upload.take(chunk, intake, progress) }
      return try await intake.finish(expecting: expected)
    }
    return try await upload.commit(staged, StorageCondition(generation: generation), durability)
  }
}

private enum ByteCount {
  /// How many single bytes are collected into a chunk.
  static let chunk = 1 << 16
}

/// An upload under way.
private struct Upload {
  private let reference: StorageReference
  private let document: DocumentPath
  private let totalBytes: Int?
  private var metadata: StorageMetadata
  /// The first bytes, from which the content type is detected.
  private var head: [UInt8] = []
  private var length = 0

  init(
    _ reference: StorageReference, _ metadata: StorageMetadata, totalBytes: Int?
  ) throws(DatabaseError) {
    self.reference = reference
    self.metadata = metadata
    self.totalBytes = totalBytes
    document = try reference.document()
    try metadata.check()
  }

  mutating func note(_ bytes: [UInt8]) {
    length += bytes.count
    if head.count < ContentSniffer.length {
      head += bytes.prefix(ContentSniffer.length - head.count)
    }
  }

  /// Hands a chunk on.
  mutating func take(
    _ chunk: [UInt8], _ intake: ContentIntake, _ progress: (StorageProgress) -> Void
  ) async throws(DatabaseError) {
    try refuseWhenCancelled("nothing was put")
    note(chunk)
    try await intake.append(chunk)
    progress(StorageProgress(completedBytes: length, totalBytes: totalBytes))
  }

  /// Writes the path's document.
  mutating func commit(
    _ staged: StagedContent, _ condition: StorageCondition, _ durability: Durability?
  ) async throws(DatabaseError) -> StorageMetadata {
    let write = try metadata.put(
      staged, head: head, at: document, condition)
    let commit = try await reference.database.commit(
      [write], bringing: [staged], durability: durability)
    return try commit.metadata(of: document, in: reference.database)
  }
}

extension StorageMetadata {
  /// The write that puts a content at a path. Sets the content type when there is none.
  ///
  /// - Parameter head: the first bytes: `ContentSniffer.length` of them, or all when there are
  ///   fewer.
  func put(
    _ staged: StagedContent, head: [UInt8], at document: DocumentPath,
    _ condition: StorageCondition = StorageCondition()
  ) throws(DatabaseError) -> DocumentWrite {
    var metadata = self
    if metadata.contentType == nil {
      metadata.contentType = ContentSniffer.contentType(
        of: head, isWhole: head.count == staged.length)
    }
    let content = try BlobReference(digest: staged.digest, length: staged.length)
    return DocumentWrite(
      path: document,
      intent: WriteIntent(
        change: .replace(fields: metadata.fields(for: content)), precondition: .object(condition)))
  }
}

extension CompletedCommit {
  /// The metadata of an object that the commit wrote.
  func metadata(
    of document: DocumentPath, in database: Database
  ) throws(DatabaseError) -> StorageMetadata {
    let after = result(of: document, in: database, returning: .after).after
    guard let after, let metadata = StorageMetadata(after) else {
      throw DatabaseError(.internal, "an object without metadata was written", path: document.name)
    }
    return metadata
  }
}

extension StorageMetadata {
  /// The metadata in a path's document; nil when there is no document, or it is not a path's.
  init?(_ document: DocumentSnapshot) {
    guard let path = (try? document.reference.place.get())?.storagePath,
      let contents = document.contents
    else { return nil }
    self.init(path: path, contents.fields, updated: contents.stamps.updateTime)
  }
}
