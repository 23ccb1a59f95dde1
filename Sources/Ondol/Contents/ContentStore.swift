// The contents of a database: bytes that are identified by their digest and stored once, whatever
// holds them. Bytes enter and leave the database here. Rows keep a content stored (ContentKeys). A
// commit that adds a holder writes them (ContentHolding), and the reclaimer removes contents
// without a holder (ContentReclaimer).
//
// A put has two halves. Staging writes the bytes and syncs them. Then a commit refers to them,
// either the holder's own or one that gives the content a lease. A power cut between the two leaves
// bytes that no row refers to, which the reclaimer finds.

internal import OndolEngine

/// The contents of one database.
final class ContentStore: Sendable {
  let engine: Engine
  let contents: Contents
  let catalog: Catalog
  let uses = ContentUses()
  /// Where a ContentSource sits.
  let sourceSeat = WitnessSeat()
  /// Lets only one caller at a time write a content's bytes or reclaim contents.
  let turns = Latches()
  private let staging: StagingTable
  let environment: Environment
  let options: Database.Options
  let reclaiming = Guarded(ContentReclaimer.State())

  init(
    engine: Engine, catalog: Catalog, options: Database.Options, environment: Environment
  ) {
    self.engine = engine
    contents = engine.contents
    staging = StagingTable(turns)
    self.catalog = catalog
    self.options = options
    self.environment = environment
  }

  /// Wall clock in microseconds since 1970.
  func now() -> Int64 { environment.now() }

  /// Reclaims contents without a holder.
  var reclaimer: ContentReclaimer { ContentReclaimer(self) }

  // MARK: - Staging

  /// Begins the upload of a content in pieces.
  func beginIntake() -> ContentIntake { ContentIntake(self) }

  /// Stages a whole content. Its bytes are on the device when this returns. They are removed when
  /// the last uploader has released them, unless a commit refers to them.
  ///
  /// Throws `.invalidArgument` when the bytes do not have the digest `expected`, and
  /// `.resourceExhausted` when the disk is full; then nothing is kept.
  @concurrent
  func stage(
    _ bytes: [UInt8], expecting expected: BlobDigest? = nil
  ) async throws(DatabaseError) -> StagedContent {
    if bytes.count > contents.packedLimit {
      let intake = beginIntake()
      try await intake.append(bytes)
      return try await intake.finish(expecting: expected)
    }
    let digest = ContentHasher.digest(of: bytes)
    if let error = Self.mismatch(digest, expected) { throw error }
    return try await stage(digest, length: bytes.count) { [contents] () throws(EngineError) in
      try await contents.append(bytes, digest: digest.bytes)
    }
  }

  /// Stages a content that has a place of its own already. If the content is stored elsewhere, the
  /// bytes at this place are removed.
  func stage(
    _ digest: BlobDigest, writtenTo place: ContentLocation
  ) async throws(DatabaseError) -> StagedContent {
    let isUsed = Guarded(false)
    defer { if !isUsed.withLock({ $0 }) { contents.discard(place) } }
    return try await stage(digest, length: Int(place.length)) { () throws(EngineError) in
      isUsed.withLock { $0 = true }
      return place
    }
  }

  /// Stages a content whose bytes `write` writes, unless they are stored or another caller has
  /// staged them.
  private func stage(
    _ digest: BlobDigest, length: Int,
    _ write: @Sendable () async throws(EngineError) -> ContentLocation
  ) async throws(DatabaseError) -> StagedContent {
    let use = uses.begin(digest)
    if let bytes = try await staging.begin(digest) {
      return StagedContent(digest, length: length, bytes: bytes, use: use)
    }
    var bytes: StagedBytes?
    defer { staging.end(digest, bytes) }
    if try await isHere(digest), !use.mayVanish {
      return StagedContent(digest, length: length, bytes: nil, use: use)
    }
    try await rethrowing { () async throws(EngineError) in
      bytes = StagedBytes(digest, try await write(), contents: contents, table: staging)
    }
    return StagedContent(digest, length: length, bytes: bytes, use: use)
  }

  private func isHere(_ digest: BlobDigest) async throws(DatabaseError) -> Bool {
    try await read { (rows) throws(DatabaseError) in try rows.presence(of: digest) == .here }
  }

  /// The error for a digest that is not the expected one.
  static func mismatch(_ digest: BlobDigest, _ expected: BlobDigest?) -> DatabaseError? {
    guard let expected, digest != expected else { return nil }
    return DatabaseError(
      .invalidArgument, "the bytes have the digest \(digest.hex), and \(expected.hex) was expected")
  }

  // MARK: - Leases

  /// Makes a staged content stored without a holder: it stays until its lease ends, or until a
  /// document or path holds it.
  func lease(
    _ content: StagedContent, durability: Durability? = nil
  ) async throws(DatabaseError) {
    do throws(DatabaseError) {
      try await commitLease(content, durability ?? options.durability)
      content.finish(after: nil)
    } catch {
      content.finish(after: error)
      throw error
    }
  }

  private func commitLease(
    _ content: StagedContent, _ durability: Durability
  ) async throws(DatabaseError) {
    let end = now() &+ options.blobLease.microseconds
    while true {
      try refuseWhenCancelled("nothing was stored")
      let batch = try await read { (rows) throws(DatabaseError) in
        try Self.leasing(content, until: end, rows)
      }
      let survives = OndolEngine.Durability(durability)
      if try await engine.commitUnlessStale(batch, durability: survives) != nil {
        return reclaimer.expect(by: end)
      }
      await Task.yield()
    }
  }

  private static func leasing(
    _ content: StagedContent, until end: Int64, _ rows: Rows
  ) throws(DatabaseError) -> Batch {
    var batch = Batch()
    batch.basis = rows.snapshot.sequence
    let key = ContentKey.location(content.digest)
    batch.guardUnchanged(key.bytes)
    if try rows.presence(of: content.digest) == .here {
      content.withdraw()
    } else if let location = content.offer(),
      try batch.makeStored(content.digest, at: location, rows)
    {
      // Stored with this commit.
    } else {
      throw DatabaseError(.aborted, "the content has been removed in the meantime; put it again")
    }
    let old = try rows.lease(of: content.digest)
    let lease = ContentLease(end: max(end, old?.end ?? .min))
    batch.put(ContentKey.lease(content.digest).bytes, lease.bytes.bytes)
    return batch
  }

  /// Makes a content whose bytes are elsewhere stored without a holder, as with a lease, unless it
  /// is stored.
  ///
  /// Throws `.invalidArgument` when no content has that many bytes.
  func expect(_ digest: BlobDigest, length: UInt64) async throws(DatabaseError) {
    guard length <= ContentLocation.longest else {
      throw DatabaseError(.invalidArgument, "no content can have \(length) bytes")
    }
    let end = now() &+ options.blobLease.microseconds
    while true {
      try refuseWhenCancelled("nothing was stored")
      let batch = try await read { (rows) throws(DatabaseError) -> Batch? in
        var batch = Batch()
        batch.basis = rows.snapshot.sequence
        guard try rows.presence(of: digest) == .none else { return nil }
        let key = ContentKey.location(digest)
        batch.guardUnchanged(key.bytes)
        batch.put(key.bytes, ContentLocation.away(length).bytes.bytes)
        batch.put(ContentKey.lease(digest).bytes, ContentLease(end: end).bytes.bytes)
        return batch
      }
      guard let batch else { return }
      let survives = OndolEngine.Durability(options.durability)
      if try await engine.commitUnlessStale(batch, durability: survives) != nil {
        return reclaimer.expect(by: end)
      }
      await Task.yield()
    }
  }

  // MARK: - Reading

  /// Opens a content for reading; nil when it is not stored. It is not reclaimed while the reader
  /// exists.
  ///
  /// - Complexity: one lookup of a row; no file is touched.
  func reader(of digest: BlobDigest) async throws(DatabaseError) -> ContentReader? {
    try await reader(of: digest) { (_) throws(DatabaseError) in nil }
  }

  /// Opens the content of a reference; nil when it is not stored.
  ///
  /// Throws `.invalidArgument` when the content is sealed and its stored length does not fit the
  /// reference.
  func reader(of blob: BlobReference) async throws(DatabaseError) -> ContentReader? {
    try await reader(of: blob.digest) { (location) throws(DatabaseError) in
      guard let key = blob.key else { return nil }
      guard let seal = ContentSeal(key, length: blob.length),
        UInt64(seal.storedLength) == location.length
      else {
        throw DatabaseError(
          .invalidArgument, "the content \(blob.digest.hex) does not have \(blob.length) bytes")
      }
      return seal
    }
  }

  private func reader(
    of digest: BlobDigest,
    _ seal: (ContentLocation) throws(DatabaseError) -> ContentSeal?
  ) async throws(DatabaseError) -> ContentReader? {
    let use = uses.begin(digest)
    var isFetched = false
    while true {
      let found = try await read { (rows) throws(DatabaseError) in
        try rows.location(of: digest).map { ($0, $0.isInParts ? rows.snapshot.holdBase() : nil) }
      }
      guard let (location, base) = found else { return nil }
      if !location.isAway {
        return ContentReader(
          location, use: use, seal: try seal(location), base: base, store: self)
      }
      guard let source, !isFetched else {
        throw DatabaseError(
          .unavailable, "the bytes of the content \(digest.hex) are not on this device")
      }
      try await source.fetch(digest, length: location.length)
      isFetched = true
    }
  }

  /// Brings bytes that are elsewhere, if anybody does.
  private var source: (any ContentSource)? {
    sourceSeat.isOccupied ? sourceSeat.occupant as? any ContentSource : nil
  }

  /// The current location of a content.
  func location(of digest: BlobDigest) async throws(DatabaseError) -> ContentLocation? {
    try await read { (rows) throws(DatabaseError) in try rows.location(of: digest) }
  }

  /// Runs `body` with the rows as of now.
  func read<R: Sendable>(
    _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    let snapshot = try rethrowing { () throws(EngineError) in try engine.snapshot() }
    do throws(DatabaseError) {
      return try body(Rows(snapshot, catalog, mayBlock: false))
    } catch {
      guard error.isCold else { throw error }
    }
    return try await snapshot.readInTurns(failingWith: { DatabaseError($0) }) {
      [catalog] (_) throws(DatabaseError) in
      try body(Rows(snapshot, catalog, mayBlock: true))
    }
  }
}

extension Rows {
  /// Whether a content is stored, and its bytes are here.
  func presence(of digest: BlobDigest) throws(DatabaseError) -> ContentPresence {
    var presence = ContentPresence.none
    try withRow(ContentKey.location(digest)) { row in
      presence = ContentLocation.isAway(row) ? .away : .here
    }
    return presence
  }

  /// The location of a content; nil when it is not stored.
  func location(of digest: BlobDigest) throws(DatabaseError) -> ContentLocation? {
    try contentRow(ContentKey.location(digest), of: digest) { (bytes) throws(MalformedBytes) in
      try ContentLocation(bytes)
    }
  }

  /// A content's lease; nil when it has none.
  func lease(of digest: BlobDigest) throws(DatabaseError) -> ContentLease? {
    try contentRow(ContentKey.lease(digest), of: digest) { (bytes) throws(MalformedBytes) in
      try ContentLease(bytes)
    }
  }

  /// The last release of a content; nil when there was none since the last check.
  func release(of digest: BlobDigest) throws(DatabaseError) -> ContentRelease? {
    try contentRow(ContentKey.release(digest), of: digest) { (bytes) throws(MalformedBytes) in
      try ContentRelease(bytes)
    }
  }

  private func contentRow<Content>(
    _ key: [UInt8], of digest: BlobDigest,
    _ decode: (RawSpan) throws(MalformedBytes) -> Content
  ) throws(DatabaseError) -> Content? {
    var content: Result<Content, MalformedBytes>?
    // Not copied first, because a short content is in it as a whole.
    try withRow(key) { row in
      do throws(MalformedBytes) {
        content = .success(try decode(row))
      } catch {
        content = .failure(error)
      }
    }
    do throws(MalformedBytes) {
      return try content?.get()
    } catch {
      throw DatabaseError(
        .dataLoss, "a row of the content \(digest.hex) is damaged: \(error.reason)")
    }
  }
}
