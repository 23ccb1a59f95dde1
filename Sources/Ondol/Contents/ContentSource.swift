// Brings bytes that are elsewhere. A synchronised database has documents before it has their
// contents: the location of such a content has only its length. A reader asks the source, if there
// is one, and waits. So checks, backups and dumps find nothing missing, and no reader knows of a
// network.

internal import OndolEngine

/// Has the bytes of contents that are not here.
package protocol ContentSource: AnyObject, Sendable {
  /// Stores the bytes of a content, by `Database.beginArrival`.
  ///
  /// - Throws: `.unavailable` when they cannot be had now; `.dataLoss` when they are others.
  func fetch(_ digest: BlobDigest, length: UInt64) async throws(DatabaseError)
}

/// A content whose bytes are elsewhere, or are to be there as well.
package struct ExchangedContent: Sendable, Hashable {
  /// The SHA-256 of the stored bytes.
  package let digest: BlobDigest
  /// How many bytes are stored.
  package let length: UInt64

  package init(digest: BlobDigest, length: UInt64) {
    self.digest = digest
    self.length = length
  }

  /// The stored bytes, as a value of a document's field.
  package var reference: BlobReference {
    get throws(DatabaseError) {
      try BlobReference(digest: digest, length: Int(clamping: length))
    }
  }
}

extension BlobReference {
  /// What is stored of the content; nil when no content can have that many bytes.
  package var exchanged: ExchangedContent? {
    guard let key else {
      guard UInt64(length) <= ContentLocation.longest else { return nil }
      return ExchangedContent(digest: digest, length: UInt64(length))
    }
    return ContentSeal(key, length: length).map {
      ExchangedContent(digest: digest, length: UInt64($0.storedLength))
    }
  }
}

extension [String: Value] {
  /// The contents that the fields refer to, each once, in the order of their digests.
  package var exchangedContents: [ExchangedContent] {
    var found: [BlobDigest: ExchangedContent] = [:]
    forEachBlob { found[$0.digest] = $0.exchanged }
    return found.values.sorted { $0.digest < $1.digest }
  }
}

/// Bytes of a content on their way here. End it with `finish()` or `abandon()`.
package struct ContentArrival: Sendable {
  private let content: ExchangedContent
  private let store: ContentStore
  private let intake: ContentIntake

  fileprivate init(_ content: ExchangedContent, _ store: ContentStore) {
    self.content = content
    self.store = store
    intake = store.beginIntake()
  }

  /// Bytes so far.
  package var length: UInt64 { get async { UInt64(clamping: await intake.length) } }

  /// Adds bytes.
  ///
  /// - Throws: `.dataLoss` when there are more than the content has; `.resourceExhausted` when the
  ///   disk is full.
  package func append(_ bytes: [UInt8]) async throws(DatabaseError) {
    let length = await length
    guard UInt64(bytes.count) <= content.length - min(length, content.length) else {
      throw content.isWrong("more bytes than \(content.length)")
    }
    try await intake.append(bytes)
  }

  /// Stores the content, with or without a holder.
  ///
  /// - Throws: `.dataLoss` when the bytes are others, or too few; otherwise as writes do.
  package func finish() async throws(DatabaseError) {
    let length = await length
    guard length == content.length else {
      throw content.isWrong("\(length) bytes, not \(content.length)")
    }
    let staged: StagedContent
    do throws(DatabaseError) {
      staged = try await intake.finish(expecting: content.digest)
    } catch {
      guard error.code == .invalidArgument else { throw error }
      throw content.isWrong("other bytes")
    }
    try await store.lease(staged)
  }

  /// Discards the bytes so far.
  package func abandon() async { await intake.abandon() }
}

extension ExchangedContent {
  fileprivate func isWrong(_ reason: String) -> DatabaseError {
    DatabaseError(.dataLoss, "the server has sent \(reason) for the content \(digest.hex)")
  }
}

extension Database {
  /// Has a source asked for bytes that are elsewhere; false when there is another one.
  package func attach(_ source: any ContentSource) -> Bool {
    contents.sourceSeat.exchange(nil, for: source)
  }

  /// Ends what `attach` began.
  package func detach(_ source: any ContentSource) {
    _ = contents.sourceSeat.exchange(source, for: nil)
  }

  /// Begins to store the bytes of a content.
  package func beginArrival(of content: ExchangedContent) -> ContentArrival {
    ContentArrival(content, contents)
  }

  /// Whether a content is stored with its bytes.
  package func hasBytes(of digest: BlobDigest) async throws(DatabaseError) -> Bool {
    try await contents.read { (rows) throws(DatabaseError) in
      try rows.presence(of: digest) == .here
    }
  }

  /// Some contents whose bytes are elsewhere, after `digest`, in the order of their digests.
  ///
  /// - Returns: the contents, and where to go on; nil at the end.
  package func contentsAway(
    after digest: BlobDigest?, atMost limit: Int
  ) async throws(DatabaseError) -> (contents: [ExchangedContent], last: BlobDigest?) {
    let found = try await contents.read { (rows) throws(DatabaseError) in
      try rows.locations(after: digest, atMost: limit)
    }
    let away = found.filter(\.1.isAway).map { ExchangedContent(digest: $0, length: $1.length) }
    return (away, found.count < limit ? nil : found.last?.0)
  }

  /// Stored bytes of a content in a range.
  ///
  /// - Throws: `.notFound` when it is not stored; `.unavailable` when its bytes are elsewhere.
  package func storedBytes(
    of digest: BlobDigest, in range: Range<Int>
  ) async throws(DatabaseError) -> [UInt8] {
    guard let reader = try await contents.reader(of: digest) else {
      throw DatabaseError(.notFound, "the content \(digest.hex) is not stored any more")
    }
    return try await reader.read(range.clamped(to: 0..<reader.length))
  }

  /// Some documents that hold a content. Those of collections with keys of their own, which no row
  /// names, are left out, and so are storage paths.
  package func documents(
    holding digest: BlobDigest, atMost limit: Int
  ) async throws(DatabaseError) -> [DocumentPath] {
    try await contents.read { (rows) throws(DatabaseError) in
      var found: [DocumentPath] = []
      var namer = RowNamer(rows)
      try rows.forEachHolder(of: digest) { (row) throws(DatabaseError) in
        if row.starts(with: DerivedRows.keyspace.prefix) { return true }
        if let path = try namer.document(of: row), path.storagePath == nil { found.append(path) }
        return found.count < limit
      }
      return found
    }
  }
}
