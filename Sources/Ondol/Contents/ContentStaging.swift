// Contents between their bytes and their commit. The bytes are on the device and in nobody's way;
// no row names them yet. What no commit comes to name is let go of when the last of those has gone
// who staged it, except where nobody knows whether a commit came about.

internal import OndolEngine

/// Bytes that were written and are to be named by a commit.
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

  /// A commit names them.
  func noteNamed() { outcome.withLock { $0.isNamed = true } }

  /// Whether a commit names them is known only when the database is opened again.
  func noteDoubt() { outcome.withLock { $0.isInDoubt = true } }
}

/// A content that a commit may take hold of: stored already, or with bytes that the commit brings.
/// While it lives the content is not given up.
final class StagedContent: Sendable {
  private struct State: Sendable {
    /// None when the content was stored already, and none once it is known what became of them.
    var bytes: StagedBytes?
    /// Whether the commit that was prepared last names them.
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

  /// Where the bytes are, for a commit that makes the content stored; nil when there are none.
  func offer() -> ContentLocation? {
    state.withLock { state in
      state.isOffered = state.bytes != nil
      return state.bytes?.location
    }
  }

  /// Says that the commit which is being prepared finds the content stored.
  func withdraw() { state.withLock { $0.isOffered = false } }

  /// Says how the commit ended: nil when it is acknowledged, otherwise what it failed with. Not
  /// needed where no commit was tried.
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

/// The contents that are being staged: a thousand who put the same bytes at once write them once.
final class StagingTable: Sendable {
  private struct Reference: Sendable {
    weak let bytes: StagedBytes?
  }

  private let entries = Guarded<[BlobDigest: Reference]>([:])
  private let turns: Latches

  init(_ turns: Latches) {
    self.turns = turns
  }

  /// The bytes that someone else has staged; or nil, and then the caller is to write them and to
  /// call `end`. Waits for one who is writing them.
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

  /// The bytes are gone.
  fileprivate func forget(_ digest: BlobDigest) {
    entries.withLock { entries in
      if entries[digest]?.bytes == nil { entries[digest] = nil }
    }
  }
}
