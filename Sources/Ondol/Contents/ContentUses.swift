// Which contents this process has in its hands: open readers, and puts that found their bytes
// stored and have not committed yet. Such a content is not given up. Who takes one into use while
// it is being given up is told, and does without.

internal import OndolEngine

/// Contents in use, and contents that are being given up.
final class ContentUses: Sendable {
  private struct State: Sendable {
    var uses: [BlobDigest: Int] = [:]
    var givenUp: Set<BlobDigest> = []
  }

  private let state = Guarded(State())

  /// Takes a content into use, until the use is let go.
  func begin(_ digest: BlobDigest) -> ContentUse {
    let isGivenUp = state.withLock { state in
      state.uses[digest, default: 0] += 1
      return state.givenUp.contains(digest)
    }
    return ContentUse(digest, mayVanish: isGivenUp, in: self)
  }

  /// Begins to give a content up; false when it is in use.
  func beginGivingUp(_ digest: BlobDigest) -> Bool {
    state.withLock { state in
      state.uses[digest] == nil && state.givenUp.insert(digest).inserted
    }
  }

  /// It is given up, or stays.
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

/// Keeps a content from being given up as long as it lives.
final class ContentUse: Sendable {
  let digest: BlobDigest
  /// Whether the content was being given up already, so that it does not count as stored.
  let mayVanish: Bool
  private let uses: ContentUses

  fileprivate init(_ digest: BlobDigest, mayVanish: Bool, in uses: ContentUses) {
    self.digest = digest
    self.mayVanish = mayVanish
    self.uses = uses
  }

  deinit { uses.end(digest) }
}
