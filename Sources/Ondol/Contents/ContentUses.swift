// The contents that this process uses: open readers, and puts that found their bytes stored and
// have not committed yet. A content in use is not reclaimed. A caller that begins to use one while
// it is being reclaimed learns that, and treats it as not stored.

internal import OndolEngine

/// Contents in use, and contents that are being reclaimed.
final class ContentUses: Sendable {
  private struct State: Sendable {
    var uses: [BlobDigest: Int] = [:]
    var givenUp: Set<BlobDigest> = []
  }

  private let state = Guarded(State())

  /// Marks a content as in use until the use is released.
  func begin(_ digest: BlobDigest) -> ContentUse {
    let isGivenUp = state.withLock { state in
      state.uses[digest, default: 0] += 1
      return state.givenUp.contains(digest)
    }
    return ContentUse(digest, mayVanish: isGivenUp, in: self)
  }

  /// Begins to reclaim a content; false when it is in use.
  func beginGivingUp(_ digest: BlobDigest) -> Bool {
    state.withLock { state in
      state.uses[digest] == nil && state.givenUp.insert(digest).inserted
    }
  }

  /// Ends reclaiming it, with or without success.
  func endGivingUp(_ digest: BlobDigest) {
    state.withLock { _ = $0.givenUp.remove(digest) }
  }

  fileprivate func end(_ digest: BlobDigest) {
    state.withLock { state in
      guard let count = state.uses[digest] else { return }
      state.uses[digest] = count > 1 ? count - 1 : nil
    }
  }
}

/// Keeps a content from being reclaimed while this object exists.
final class ContentUse: Sendable {
  let digest: BlobDigest
  /// Whether the content was being reclaimed already, so that it does not count as stored.
  let mayVanish: Bool
  private let uses: ContentUses

  fileprivate init(_ digest: BlobDigest, mayVanish: Bool, in uses: ContentUses) {
    self.digest = digest
    self.mayVanish = mayVanish
    self.uses = uses
  }

  deinit { uses.end(digest) }
}
