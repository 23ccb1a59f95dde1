// The parts of contents on a store, for the engine's other calls. It maintains the rows for parts
// that no location names, and repeats calls that received no answer.

/// The parts of a database's contents.
package final class RemoteParts: Sendable {
  let session: RemoteSession
  private let environment: Environment
  private let discards: BackgroundTasks

  init(_ session: RemoteSession, environment: Environment) {
    self.session = session
    self.environment = environment
    discards = BackgroundTasks(executor: environment.executor)
  }

  var store: any RemoteStore { session.store }

  func makeID() -> [UInt8] {
    var id: [UInt8] = []
    for _ in 0..<(ContentPart.idLength / 8) { id.appendBigEndian(environment.random()) }
    return id
  }

  /// The current time by the store's clock, which is after all visible commits.
  package func now() async throws(EngineError) -> Int64 {
    let clock = try await session.ask { store async throws(EngineError) in try await store.clock() }
    return max(clock, session.window.point.time)
  }

  // MARK: - Uploads

  /// Records that this process begins to upload a content. The record survives whenever any of the
  /// parts survives a power cut.
  func beginUpload(_ id: [UInt8]) async throws(EngineError) {
    try await session.within { [session] () async throws(EngineError) in
      var batch = Batch()
      LooseParts(id, .uploading, length: 0).put(into: &batch)
      _ = try await session.commit(batch, .process)
    }
  }

  /// Records that this process is still uploading a content.
  ///
  /// - Throws: `.stale` if the upload was considered abandoned meanwhile.
  func renewUpload(
    _ id: [UInt8], length: UInt64, _ durability: Durability
  ) async throws(EngineError) {
    let upload = LooseParts(id, .uploading, length: length)
    let isThere = try await session.within { [session] () async throws(EngineError) in
      try await session.commit(about: upload.key, durability) {
        (row, batch) throws(EngineError) -> Bool? in
        guard row != nil else { return nil }
        upload.put(into: &batch)
        return true
      }
    }
    guard isThere != nil else { throw .stale }
  }

  /// Writes a part.
  ///
  /// - Throws: `.stale` if the upload was considered abandoned meanwhile.
  func put(_ id: [UInt8], part: Int, _ bytes: [UInt8]) async throws(EngineError) {
    let isThere = try await session.ask { store async throws(EngineError) in
      try await store.putContent(
        id, part: part, bytes, whileThereIs: LooseParts.key(id, .uploading))
    }
    guard isThere else { throw .stale }
  }

  /// Ensures that all parts exist. It runs after a commit that follows them, so that a store that
  /// has lost parts since then has lost this commit as well, and accepts no more from this process.
  func confirm(_ id: [UInt8], length: UInt64) async throws(EngineError) {
    try await renewUpload(id, length: length, .power)
    let found = try await session.ask { store async throws(EngineError) in
      try await store.countContent(id)
    }
    guard found == ContentPartsPlace.count(ofContent: length) else { throw .stale }
  }

  // MARK: - Removal

  /// Removes, in the background, an upload that no commit will name.
  func discard(_ id: [UInt8], length: UInt64) {
    discards.start { [self] in await abandon(id, length: length) }
  }

  /// Removes an upload that no commit will name. Its row leads to whatever cannot be removed now.
  func abandon(_ id: [UInt8], length: UInt64) async {
    do throws(EngineError) {
      var batch = Batch()
      LooseParts.forsake(id, length: length, in: &batch)
      _ = try await session.commit(batch, .process)
      try await remove(id, .unwanted)
    } catch {
      // The row exists, if not from here then from the beginning of the upload.
    }
  }

  /// Removes all parts of a content and its row, unless another process already has.
  package func remove(_ id: [UInt8], _ state: LooseParts.State) async throws(EngineError) {
    precondition(state != .uploading, "an upload that may still be named")
    try await session.insist { [store] () async throws(EngineError) in
      try await store.removeContent(id)
    }
    let key = LooseParts.key(id, state)
    _ = try await session.commit(about: key, .process) {
      (row, batch) throws(EngineError) -> Bool? in
      guard row != nil else { return nil }
      batch.delete(key.bytes)
      return true
    }
  }

  /// Prevents commits from naming the parts of an upload from now on. Returns false if one already
  /// has, or the upload continues.
  package func takeForAbandoned(_ upload: LooseParts) async throws(EngineError) -> Bool {
    let isTaken = try await session.commit(about: upload.key, .power) {
      [name = store.name] (row, batch) throws(EngineError) -> Bool? in
      guard let row else { return nil }
      do throws(MalformedBytes) {
        guard try LooseParts(key: upload.key.bytes, row.bytes) == upload else { return nil }
      } catch {
        throw EngineError(error, in: name)
      }
      LooseParts.forsake(upload.id, length: upload.length, in: &batch)
      return true
    }
    return isTaken != nil
  }

  func close() async { await discards.finish() }
}
