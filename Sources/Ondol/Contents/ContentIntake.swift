// The upload of a content, piece by piece: on the write path before everything else. Up to the size
// that fits a pack, the content is collected in memory, because its digest must be known first. A
// longer one goes directly to a place of its own: a file or, on a store, parts. The digest is
// computed while a file's thread writes.

internal import Crypto
internal import OndolEngine

/// The SHA-256 of bytes that arrive in pieces.
struct ContentHasher: Sendable {
  private var hash = SHA256()

  mutating func update(_ bytes: [UInt8]) { hash.update(data: bytes) }

  mutating func update(_ piece: Range<Int>, of bytes: [UInt8]) { hash.update(data: bytes[piece]) }

  func finalize() -> BlobDigest {
    guard let digest = BlobDigest(bytes: Array(hash.finalize())) else {
      preconditionFailure("a SHA-256 has 32 bytes")
    }
    return digest
  }

  static func digest(of bytes: [UInt8]) -> BlobDigest {
    var hasher = ContentHasher()
    hasher.update(bytes)
    return hasher.finalize()
  }
}

/// Uploads one content. Memory holds one or two pieces of it, however long it is.
actor ContentIntake {
  private let store: ContentStore
  private var hasher = ContentHasher()
  /// Bytes that have not been handed to the file yet.
  private var buffer: [UInt8] = []
  private var writer: (any ContentWriter)?
  /// Bytes so far.
  private(set) var length = 0

  init(_ store: ContentStore) {
    self.store = store
  }

  /// Adds bytes.
  func append(_ chunk: [UInt8]) async throws(DatabaseError) {
    length += chunk.count
    if buffer.isEmpty { buffer = chunk } else { buffer += chunk }
    guard writer != nil || buffer.count > store.contents.packedLimit else { return }
    let piece = ContentFileWriter.pieceLength
    let whole = buffer
    buffer = []
    var start = 0
    while whole.count - start >= piece {
      try await write(start..<(start + piece), of: whole)
      start += piece
    }
    buffer = Array(whole[start...])
  }

  /// Ends the content. Its bytes are on the device when this returns.
  ///
  /// Throws `.invalidArgument` when the bytes do not have the digest `expected`; then nothing is
  /// kept.
  func finish(
    expecting expected: BlobDigest? = nil
  ) async throws(DatabaseError) -> StagedContent {
    guard writer != nil || buffer.count > store.contents.packedLimit else {
      let bytes = buffer
      buffer = []
      return try await store.stage(bytes, expecting: expected)
    }
    if !buffer.isEmpty { try await write(0..<buffer.count, of: buffer) }
    buffer = []
    guard let writer else { preconditionFailure("a long content has a writer") }
    let digest = hasher.finalize()
    if let error = ContentStore.mismatch(digest, expected) {
      await abandon()
      throw error
    }
    self.writer = nil
    let place: ContentLocation
    do throws(EngineError) {
      place = try await writer.finish()
    } catch {
      throw Self.failure(error)
    }
    return try await store.stage(digest, writtenTo: place)
  }

  /// Runs `body`, which passes on the bytes and finishes; discards the bytes when it throws.
  nonisolated func filled<E: Error>(
    by body: () async throws(E) -> StagedContent
  ) async throws(E) -> StagedContent {
    do throws(E) {
      return try await body()
    } catch {
      await abandon()
      throw error
    }
  }

  /// Discards the bytes so far.
  func abandon() async {
    buffer = []
    await writer?.abandon()
    writer = nil
  }

  private static func failure(_ error: EngineError) -> DatabaseError {
    guard error == .stale else { return DatabaseError(error) }
    return DatabaseError(
      .aborted, "the upload counts as abandoned, or the server has lost a part; put it again")
  }

  private func write(_ piece: Range<Int>, of bytes: [UInt8]) async throws(DatabaseError) {
    do throws(EngineError) {
      let writer = if let writer { writer } else { try await store.contents.beginLarge() }
      self.writer = writer
      try await writer.write(piece, of: bytes)
    } catch {
      await abandon()
      throw Self.failure(error)
    }
    hasher.update(piece, of: bytes)
  }
}
