// Queues for writers of the same thing. Writers of one document would otherwise race: all derive
// from the same state, one wins and the others derive again, until the last of a thousand has
// derived a thousand times. So they queue, and each finds what the one before left. Part of the
// write path, around its loop.
//
// Latches are taken documents first, in the order of their paths, then families by name; so no two
// writers wait for each other.

internal import OndolEngine

/// What only one writer at a time works on.
enum LatchKey: Sendable, Hashable {
  case document(DocumentPath)
  /// A node of the tree.
  case node(TreePath)
  /// The catalog rows of a root collection.
  case family(ExactText)
  /// The building of an index.
  case index(Keyspace)
  /// The rewriting of documents that have an earlier schema.
  case schema(CollectionPattern)
  /// A transaction over a root collection that has lost its races: all who write there step aside.
  case gate(ExactText)
  /// The making of one content from another, under a name.
  case derivation(BlobDigest, ExactText)
}

/// First come, first served.
final class Latches: Sendable {
  private typealias Waiters = [CheckedContinuation<Void, Never>]

  /// A key is present while someone holds it; its value is who waits, the longest first.
  private let held = Guarded<[LatchKey: Waiters]>([:])

  /// Returns once nobody else holds `key`. Every call needs a `release`.
  func acquire(_ key: LatchKey) async {
    let isFree = held.withLock { held in
      guard held[key] == nil else { return false }
      held[key] = []
      return true
    }
    if isFree { return }
    await withCheckedContinuation { continuation in
      let isFree = held.withLock { held in
        guard held[key] == nil else {
          held[key]?.append(continuation)
          return false
        }
        held[key] = []
        return true
      }
      if isFree { continuation.resume() }
    }
  }

  /// Takes all of `keys` when nobody holds any of them, and gives them back, each once; otherwise
  /// nil, and none is taken. Nobody waits, so the order of the keys does not matter.
  func acquireAtOnce(_ keys: some Collection<LatchKey>) -> [LatchKey]? {
    held.withLock { held in
      if !held.isEmpty, keys.contains(where: { held[$0] != nil }) { return nil }
      var taken: [LatchKey] = []
      taken.reserveCapacity(keys.count)
      for key in keys {
        let known = held.count
        held[key] = []
        if held.count > known { taken.append(key) }
      }
      return taken
    }
  }

  /// Hands each of `keys` to the one who waits longest for it.
  func release(_ keys: [LatchKey]) {
    let next = held.withLock { held -> [CheckedContinuation<Void, Never>] in
      keys.compactMap { Self.release($0, &held) }
    }
    for continuation in next { continuation.resume() }
  }

  /// Whether someone holds `key`.
  func isHeld(_ key: LatchKey) -> Bool {
    held.withLock { $0[key] != nil }
  }

  /// Hands `key` to the one who waits longest.
  func release(_ key: LatchKey) {
    let next = held.withLock { Self.release(key, &$0) }
    next?.resume()
  }

  private static func release(
    _ key: LatchKey, _ held: inout [LatchKey: Waiters]
  ) -> CheckedContinuation<Void, Never>? {
    guard var waiters = held.removeValue(forKey: key), !waiters.isEmpty else { return nil }
    let next = waiters.removeFirst()
    held[key] = waiters
    return next
  }
}
