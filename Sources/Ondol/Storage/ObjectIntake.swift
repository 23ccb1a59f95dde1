// Bytes that a server receives for an object, before the transaction that stores it. They are
// staged once, however often the transaction runs. So what a caller may do is decided in the
// transaction that commits the object, and costs no second copy of the bytes.

internal import OndolEngine

/// Receives the bytes of a content, piece by piece. End it with `finish()` or `abandon()`.
package struct ObjectIntake: Sendable {
  /// Small pieces are collected up to this size.
  private static let bufferLength = 1 << 20

  private let intake: ContentIntake
  private var checksums = RunningChecksums()
  private var buffer: [UInt8] = []
  /// Bytes so far.
  package private(set) var length = 0

  package init(_ database: Database) {
    intake = database.contents.beginIntake()
  }

  /// Adds bytes.
  ///
  /// - Throws: `.resourceExhausted` when the disk is full.
  /// - Complexity: O(bytes), with about three megabytes of the content in memory.
  package mutating func append(_ piece: [UInt8]) async throws(DatabaseError) {
    length += piece.count
    checksums.update(piece)
    buffer += piece
    guard buffer.count >= Self.bufferLength else { return }
    let whole = buffer
    buffer = []
    try await intake.append(whole)
  }

  /// Ends the content. Its bytes are on the device when this returns, and are removed with the
  /// returned value unless a commit refers to them.
  ///
  /// - Throws: as `append(_:)`.
  package mutating func finish() async throws(DatabaseError) -> ObjectContent {
    let rest = buffer
    buffer = []
    if !rest.isEmpty { try await intake.append(rest) }
    return ObjectContent(try await intake.finish(), checksums.finalize())
  }

  /// Discards the bytes so far.
  package func abandon() async {
    await intake.abandon()
  }
}

/// A content that a transaction can store at a path or refer to in a document.
package struct ObjectContent: Sendable {
  let digest: BlobDigest
  /// Bytes in it.
  package let length: Int
  /// Nil when nobody has computed them.
  package let checksums: ContentChecksums?
  /// Bytes that no commit refers to yet; nil for a content that a document or a path holds.
  private let staged: StagedContent?

  init(_ staged: StagedContent, _ checksums: ContentChecksums) {
    digest = staged.digest
    length = staged.length
    self.checksums = checksums
    self.staged = staged
  }

  /// A content that a document or a path holds.
  package init(_ blob: BlobReference, _ checksums: ContentChecksums?) {
    digest = blob.digest
    length = blob.length
    self.checksums = checksums
    staged = nil
  }

  /// The content of an object; nil for metadata that is no object's.
  package init?(of metadata: StorageMetadata) {
    guard let blob = metadata.blob else { return nil }
    self.init(blob, metadata.checksums)
  }

  /// What an attempt of a transaction brings. Each needs its own, because it ends with the attempt.
  fileprivate var brought: [StagedContent] { staged.map { [$0.shared()] } ?? [] }

  /// Whether the bytes have this digest.
  package func isOf(_ digest: BlobDigest) -> Bool { self.digest == digest }

  /// As a value of a document's field.
  fileprivate var reference: BlobReference {
    get throws(DatabaseError) { try BlobReference(digest: digest, length: length) }
  }
}

extension Transaction {
  /// Puts a content at a path. Nothing of an earlier object's metadata stays.
  ///
  /// - Throws: `.invalidArgument` when the path or the metadata is wrong.
  package func putObject(
    _ content: ObjectContent, at path: String, _ metadata: StorageMetadata
  ) throws(DatabaseError) {
    let document = try checkedObject(path)
    try metadata.check()
    let fields = metadata.fields(for: try content.reference, content.checksums)
    try add(
      DocumentWrite(path: document, intent: WriteIntent(change: .replace(fields: fields))),
      bringing: content.brought)
  }

  /// Changes the assigned properties of an object's metadata.
  ///
  /// - Throws: `.notFound` when there is no object, `.invalidArgument` when the metadata is wrong.
  package func updateObject(
    at path: String, _ metadata: StorageMetadata
  ) throws(DatabaseError) {
    try metadata.check()
    try add(
      DocumentWrite(
        path: try checkedObject(path), intent: metadata.update(StorageCondition(exists: true))))
  }

  /// Makes the commit store a content that a document of the transaction refers to.
  ///
  /// - Returns: the value for the document's field.
  package func bring(_ content: ObjectContent) throws(DatabaseError) -> BlobReference {
    try bring(content.brought)
    return try content.reference
  }

  private func checkedObject(_ path: String) throws(DatabaseError) -> DocumentPath {
    let place = try StorageReference(database: database, path: path).document()
    return try check(DocumentReference(database: database, place: .success(place)))
  }
}

extension Database {
  /// Commits what `body` does with the object at a path.
  ///
  /// - Parameters:
  ///   - path: in its normal form.
  ///   - body: puts or updates the object.
  /// - Returns: the object's metadata after the commit.
  /// - Throws: what `body` throws, and as `runTransaction(attempts:durability:_:)`.
  package func commitObject(
    at path: String, _ body: (Transaction) async throws -> Void
  ) async throws -> StorageMetadata {
    let document = try StorageReference(database: self, path: path).document()
    let commit = try await run(attempts: 100, durability: nil, body).commit
    return try commit.metadata(of: document, in: self)
  }

  /// Stores a content that no document or path holds yet; it stays as long as one that is put
  /// without a holder. Does nothing for a content that is held.
  package func keep(_ content: ObjectContent) async throws(DatabaseError) {
    // The client relies on it from now on, whatever commits of this database survive otherwise.
    for staged in content.brought { try await contents.lease(staged, durability: .power) }
  }

  /// Opens a content for reading; nil when it is not stored.
  ///
  /// - Throws: `.unavailable` when its bytes are elsewhere.
  package func open(_ digest: BlobDigest) async throws(DatabaseError) -> OpenedContent? {
    try await contents.reader(of: digest).map { OpenedContent(reader: $0) }
  }

  /// Opens the content of an object for reading; nil when it is not stored any more, because the
  /// object has been replaced or deleted since.
  package func open(
    _ metadata: StorageMetadata
  ) async throws(DatabaseError) -> OpenedContent? {
    guard let digest = metadata.sha256, let reader = try await contents.reader(of: digest) else {
      return nil
    }
    return OpenedContent(reader: reader)
  }
}

/// A content that stays stored while it is read.
package struct OpenedContent: Sendable {
  fileprivate let reader: ContentReader

  /// How many bytes are stored.
  package var length: Int { reader.length }

  /// The bytes in a range, piece by piece.
  package func bytes(in range: Range<Int>) -> StorageBytes {
    StorageBytes(range) { [reader] () throws(DatabaseError) in reader }
  }
}

extension MomentDocuments {
  /// The metadata of the object at a path; nil when there is none.
  ///
  /// - Parameter path: in its normal form.
  /// - Throws: `.invalidArgument` when there can be no object at the path; otherwise as
  ///   `document(at:)`.
  package func object(at path: String) throws(DatabaseError) -> StorageMetadata? {
    StorageMetadata(
      try document(at: try StorageReference(database: database, path: path).document()))
  }
}

extension Storage {
  /// Refuses a name that is no object's path in its normal form: nothing else is found by it.
  ///
  /// - Throws: `.invalidArgument`.
  package func check(name: String) throws(DatabaseError) {
    _ = try StorageReference(database: database, path: name).document()
  }
}
