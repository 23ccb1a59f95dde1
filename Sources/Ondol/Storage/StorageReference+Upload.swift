// Putting bytes at a path. The bytes are staged first, which takes as long as they are; then one
// commit writes the path's document, which holds them. So an upload that fails or is cancelled
// leaves what was there, and one that replaces an object never shows half of either.

internal import OndolEngine
public import OndolFoundation

extension StorageReference {
  /// Puts bytes here, in the place of the object that is here. Others see the old object until the
  /// commit and the new one from there on; who reads the old one goes on reading it.
  ///
  /// As in Firebase Storage, nothing of the old object's metadata stays.
  ///
  /// - Parameters:
  ///   - data: the bytes.
  ///   - metadata: what is to be said of the object. The content type is told from the bytes when
  ///     it says none.
  ///   - generation: the generation that the object here must have; 0 when there must be none.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the commit survives; the database's own when nil. The bytes are on the
  ///     device before it, whatever it says.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Returns: the new object's metadata.
  /// - Throws: `.invalidArgument` when the path, the metadata or the digest is wrong; `.aborted` or
  ///   `.alreadyExists` when the object has another generation; `.resourceExhausted` when the disk
  ///   is full; `.cancelled` when the task was cancelled in time, and nothing has changed then.
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

  /// Puts the bytes of a file here, as `putData` does. They are read once, piece by piece; the file
  /// may change or go as soon as this has returned.
  ///
  /// - Parameters:
  ///   - path: the file's.
  ///   - metadata: what is to be said of the object. The content type is told from the bytes when
  ///     it says none.
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

  /// Puts the bytes of a file here, as `putFile(from:)` with its path does.
  ///
  /// - Parameters:
  ///   - url: the file's.
  ///   - metadata: what is to be said of the object. The content type is told from the bytes when
  ///     it says none.
  ///   - generation: the generation that the object here must have; 0 when there must be none.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Throws: `.invalidArgument` when the URL is none of a file; otherwise as with a path.
  /// - Complexity: O(bytes), about three megabytes of them in memory.
  @discardableResult
  public func putFile(
    from url: URL, metadata: StorageMetadata = StorageMetadata(),
    ifGeneration generation: Int64? = nil, expecting expected: BlobDigest? = nil,
    durability: Durability? = nil, progress: (StorageProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> StorageMetadata {
    guard url.isFileURL else {
      throw DatabaseError(.invalidArgument, "\(url) is no file's URL", path: fullPath)
    }
    return try await putFile(
      from: url.path, metadata: metadata, ifGeneration: generation, expecting: expected,
      durability: durability, progress: progress)
  }

  /// Puts the bytes here that a sequence brings chunk by chunk, as `putData` does. The next chunk
  /// is asked for when the one before is taken.
  ///
  /// - Parameters:
  ///   - chunks: the bytes, piece by piece; empty pieces count for nothing.
  ///   - metadata: what is to be said of the object. The content type is told from the bytes when
  ///     it says none.
  ///   - generation: the generation that the object here must have; 0 when there must be none.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Throws: what the sequence throws, and nothing has changed then; otherwise as `putData`.
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

  /// Puts the bytes here that a sequence brings one by one, as with chunks.
  ///
  /// - Parameters:
  ///   - bytes: the bytes.
  ///   - metadata: what is to be said of the object. The content type is told from the bytes when
  ///     it says none.
  ///   - generation: the generation that the object here must have; 0 when there must be none.
  ///   - expected: the digest the bytes must have; not compared when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - progress: called from time to time, on the caller's actor.
  /// - Throws: what the sequence throws, and nothing has changed then; otherwise as `putData`.
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
  /// Bytes that are gathered where they come one by one.
  static let chunk = 1 << 16
}

/// An upload under way.
private struct Upload {
  private let reference: StorageReference
  private let document: DocumentPath
  private let totalBytes: Int?
  private var metadata: StorageMetadata
  /// The first bytes, which tell what kind they are.
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
  /// - Parameter head: the first bytes, `ContentSniffer.length` where there are as many.
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
