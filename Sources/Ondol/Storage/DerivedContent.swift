// Makes contents from others, once: `derive("thumbnail-256") { … }`. A second caller waits for the
// first and finds its result.

internal import OndolEngine
public import OndolFoundation

extension StorageReference {
  /// The bytes that `make` makes of the bytes here. They are made once, kept with these bytes and
  /// reclaimed with them.
  ///
  ///     let thumbnail = try await photo.derive("thumbnail-256") { bytes in
  ///       try makeThumbnail(bytes)
  ///     }
  ///     let pixels = try await storage.data(of: thumbnail)
  ///
  /// The derived content belongs to the bytes, not to the path: a copy of the object also has it,
  /// and other bytes put here have their own. Concurrent calls with the same name make it once.
  ///
  /// - Parameters:
  ///   - name: identifies what is made. Another way to make it needs another name. At most 1,000
  ///     bytes.
  ///   - maxSize: the most bytes that the caller has room for.
  ///   - contentType: detected from the new bytes when nil.
  ///   - make: makes the bytes from those of the object. Not called when they exist.
  /// - Throws: what `make` throws, and then nothing is stored; `.notFound` when there is no object;
  ///   `.invalidArgument` when the name is empty or too long; otherwise as `data(maxSize:)` and
  ///   `Storage.put`.
  /// - Complexity: two lookups when the bytes exist.
  public func derive(
    _ name: String, maxSize: Int = .max, contentType: String? = nil,
    _ make: (Data) async throws -> some Collection<UInt8> & Sendable
  ) async throws -> BlobReference {
    try await database.derive(
      name, from: try await open(), maxSize: maxSize, contentType: contentType, make)
  }
}

extension Storage {
  /// The bytes that `make` makes of a content: like
  /// `StorageReference.derive(_:maxSize:contentType:_:)`.
  ///
  /// - Parameters:
  ///   - name: identifies what is made: 1 to 1,000 bytes of UTF-8.
  ///   - blob: the content to make it from.
  ///   - maxSize: the most bytes that the caller has room for.
  ///   - contentType: detected from the new bytes when nil.
  ///   - make: receives the bytes and makes others from them. Not called when that was done before.
  /// - Throws: what `make` throws, and then nothing is stored; `.notFound` when the content is not
  ///   stored any more; `.invalidArgument` when it was put for a collection with a key of its own;
  ///   otherwise as with an object.
  /// - Complexity: two lookups when the bytes exist.
  public func derive(
    _ name: String, from blob: BlobReference, maxSize: Int = .max, contentType: String? = nil,
    _ make: (Data) async throws -> some Collection<UInt8> & Sendable
  ) async throws -> BlobReference {
    if blob.isSealed {
      throw DatabaseError(
        .invalidArgument,
        "\(blob) was put for a collection with a key of its own, and what is made of it would be"
          + " kept without that key",
        suggestion: "put what was made for the collection, and refer to it in the document")
    }
    let reader = try await database.reader(of: blob)
    return try await database.derive(
      name, from: reader, maxSize: maxSize, contentType: contentType, make)
  }
}

extension Database {
  /// - Parameter parent: keeps the content stored meanwhile.
  fileprivate func derive(
    _ name: String, from parent: ContentReader, maxSize: Int, contentType: String?,
    _ make: (Data) async throws -> some Collection<UInt8> & Sendable
  ) async throws -> BlobReference {
    guard !name.isEmpty, name.utf8.count <= DerivedRows.maximumNameLength else {
      throw DatabaseError(
        .invalidArgument,
        "\"\(name)\" cannot name a derived content: it needs 1 to \(DerivedRows.maximumNameLength)"
          + " bytes")
    }
    let running = RunningBody(.derivation)
    let latch = LatchKey.derivation(parent.digest, ExactText(name))
    try await takeTurn(latch, running, named: name)
    defer {
      running.end()
      latches.release(latch)
    }
    if let known = try await derived(name, from: parent.digest) { return known }
    let source = try await parent.data(maxSize: maxSize, named: name)
    let bytes = Array(
      try await RunningBody.$innermost.withValue(running) { try await make(source) })
    let staged = try await contents.stage(bytes)
    let child = try BlobReference(
      digest: staged.digest, length: staged.length,
      contentType: contentType ?? ContentSniffer.contentType(of: bytes, isWhole: true))
    do throws(DatabaseError) {
      try await keep(child, as: name, of: parent.digest, staged)
      staged.finish(after: nil)
    } catch {
      staged.finish(after: error)
      throw error
    }
    return child
  }

  /// Waits until no other call makes the same content.
  private func takeTurn(
    _ latch: LatchKey, _ running: RunningBody, named name: String
  ) async throws(DatabaseError) {
    let bodies = RunningBody.all
    guard !bodies.isEmpty else { return try await latches.acquire(latch, for: running) }
    let isTaken: Void? = try await RunningBody.wait(for: latch, of: latches, in: bodies) {
      () async throws(DatabaseError) in
      try await latches.acquire(latch, for: running)
    }
    guard isTaken == nil else { return }
    throw DatabaseError(
      .failedPrecondition,
      "what makes \"\(name)\" would wait for itself: it derives \"\(name)\" of the same bytes, by"
        + " itself or through others",
      suggestion: "give the content that it needs a name of its own")
  }

  private func derived(
    _ name: String, from parent: BlobDigest
  ) async throws(DatabaseError) -> BlobReference? {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.derived(name, from: parent)
    }
  }

  private func keep(
    _ child: BlobReference, as name: String, of parent: BlobDigest, _ staged: StagedContent
  ) async throws(DatabaseError) {
    let isHeld = try await commit(.upkeep, durability: nil) { (snapshot) throws(DatabaseError) in
      let batch = try await read(snapshot) { (rows) throws(DatabaseError) -> Batch? in
        var batch = Batch()
        batch.basis = rows.snapshot.sequence
        if try rows.leads(from: child.digest, to: parent, in: &batch) { return nil }
        let location = ContentKey.location(parent)
        let key = DerivedRows.key(parent, name)
        batch.guardUnchanged(location.bytes)
        batch.guardUnchanged(key.bytes)
        let value = DerivedRows.value(child)
        batch.put(key.bytes, value.bytes)
        var holding = ContentHolding()
        holding.bring(staged)
        holding.add(child.digest, holder: key)
        try holding.settle(into: &batch, rows)
        return batch
      }
      return Derivation(outcome: batch != nil, batch: batch ?? Batch())
    }.outcome
    // A content that leads back to its own parent is kept like put bytes, without a holder.
    if !isHeld { try await contents.lease(staged) }
  }
}
