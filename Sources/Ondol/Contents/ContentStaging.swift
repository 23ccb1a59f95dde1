// Contents between their upload and their commit. Their bytes are on the device, and no row refers
// to them yet. Bytes that no commit refers to are removed when the last uploader has released them,
// unless it is unknown whether a commit happened.

internal import OndolEngine

/// Written bytes that a commit will refer to.
final class StagedBytes: Sendable {
  private struct Outcome: Sendable {
    var isNamed = false
    var isInDoubt = false
  }

  let digest: BlobDigest
  let location: ContentLocation
  private let contents: Contents
  private let table: StagingTable
  private let outcome = Guarded(Outcome())

  init(
    _ digest: BlobDigest, _ location: ContentLocation, contents: Contents, table: StagingTable
  ) {
    self.digest = digest
    self.location = location
    self.contents = contents
    self.table = table
  }

  deinit {
    table.forget(digest)
    let outcome = outcome.withLock { $0 }
    if outcome.isNamed {
      contents.decide(location)
    } else if !outcome.isInDoubt {
      contents.discard(location)
    }
  }

  /// Records that a commit refers to them.
  func noteNamed() { outcome.withLock { $0.isNamed = true } }

  /// Records that only the next open can determine whether a commit refers to them.
  func noteDoubt() { outcome.withLock { $0.isInDoubt = true } }
}

/// A content that a commit may hold: stored already, or with bytes that the commit brings. It is
/// not reclaimed while this object exists.
final class StagedContent: Sendable {
  private struct State: Sendable {
    /// Nil when the content was stored already, and once the outcome for the bytes is known.
    var bytes: StagedBytes?
    /// Whether the commit that was prepared last refers to them.
    var isOffered = false
  }

  let digest: BlobDigest
  /// Bytes of the content.
  let length: Int
  private let use: ContentUse
  private let state: Guarded<State>

  init(_ digest: BlobDigest, length: Int, bytes: StagedBytes?, use: ContentUse) {
    self.digest = digest
    self.length = length
    self.use = use
    state = Guarded(State(bytes: bytes))
  }

  deinit {
    let state = state.withLock { $0 }
    if state.isOffered { state.bytes?.noteDoubt() }
  }

  /// The same content for another attempt to commit it.
  func shared() -> StagedContent {
    StagedContent(digest, length: length, bytes: state.withLock(\.bytes), use: use)
  }

  /// The location of the bytes, for a commit that makes the content stored; nil when there are
  /// none.
  func offer() -> ContentLocation? {
    state.withLock { state in
      state.isOffered = state.bytes != nil
      return state.bytes?.location
    }
  }

  /// Records that the commit in preparation finds the content stored.
  func withdraw() { state.withLock { $0.isOffered = false } }

  /// Records how the commit ended: nil when it was acknowledged, otherwise its error. Not needed
  /// when no commit was tried.
  func finish(after error: DatabaseError?) {
    let old = state.withLock { state in
      defer { state = State() }
      return state
    }
    guard old.isOffered else { return }
    switch error?.code {
    case nil: old.bytes?.noteNamed()
    case .unavailable: old.bytes?.noteDoubt()
    case _ where error?.pendingWrite != nil: old.bytes?.noteDoubt()
    default: break
    }
  }
}

/// The contents that are being staged: a thousand concurrent puts of the same bytes write them
/// once.
final class StagingTable: Sendable {
  private struct Reference: Sendable {
    weak let bytes: StagedBytes?
  }

  private let entries = Guarded<[BlobDigest: Reference]>([:])
  private let turns: Latches

  init(_ turns: Latches) {
    self.turns = turns
  }

  /// The bytes that another caller has staged. With nil, the caller must write them and call `end`.
  /// Waits for a caller that is writing them.
  func begin(_ digest: BlobDigest) async throws(DatabaseError) -> StagedBytes? {
    if let bytes = staged(digest) { return bytes }
    try await turns.acquire(.staging(digest))
    guard let bytes = staged(digest) else { return nil }
    turns.release(.staging(digest))
    return bytes
  }

  private func staged(_ digest: BlobDigest) -> StagedBytes? {
    entries.withLock { $0[digest]?.bytes }
  }

  /// Ends what `begin` began, with the bytes if they were written.
  func end(_ digest: BlobDigest, _ bytes: StagedBytes?) {
    entries.withLock { $0[digest] = bytes.map { Reference(bytes: $0) } }
    turns.release(.staging(digest))
  }

  /// Forgets bytes that are gone.
  fileprivate func forget(_ digest: BlobDigest) {
    entries.withLock { entries in
      if entries[digest]?.bytes == nil { entries[digest] = nil }
    }
  }
}
