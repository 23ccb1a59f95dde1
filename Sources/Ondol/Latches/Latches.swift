// Queues for writers of the same thing. Without a queue, writers of one document would race: all
// derive from the same state, one wins and the others derive again, until the last of a thousand
// has derived a thousand times. So they queue, and each finds the result of the previous one. Part
// of the write path, around its loop.
//
// Latches are acquired for documents first, in the order of their paths, then for families by name,
// so no two writers wait for each other. Gates and derivations are held while code of the app runs,
// which may wait for anything: see Gates and RunningBody. Cancelling the task, or closing the
// database, ends every wait.

internal import OndolEngine

/// What only one writer at a time may change.
enum LatchKey: Sendable, Hashable {
  case document(DocumentPath)
  /// A node of the tree.
  case node(TreePath)
  /// The catalog rows of a root collection.
  case family(ExactText)
  /// The building of an index.
  case index(Keyspace)
  /// The rewriting of documents of an earlier schema.
  case schema(CollectionPattern)
  /// The migrations of the database.
  case migrations
  /// A transaction over a root collection that has lost commits: all writers there wait.
  case gate(ExactText)
  /// The derivation of one content from another, under a name.
  case derivation(BlobDigest, ExactText)
  /// The writing of a content's bytes.
  case staging(BlobDigest)
  /// A pass that reclaims contents, or work during which there must be none.
  case reclaiming
  /// A change of the database's keys.
  case keys
  /// Giving a root collection a key of its own.
  case ownKeys
}

/// First come, first served.
final class Latches: Sendable {
  fileprivate enum Outcome: Sendable {
    case isAcquired, isCancelled, isClosed
  }

  fileprivate struct Waiter: Sendable {
    let number: Int
    let holder: RunningBody?
    let continuation: CheckedContinuation<Outcome, Never>
  }

  fileprivate struct Latch: Sendable {
    /// The body for which it is held, when known.
    var holder: RunningBody?
    /// The longest waiting first.
    var waiters: [Waiter] = []
  }

  fileprivate struct State: Sendable {
    /// A key is present while it is held.
    var held: [LatchKey: Latch] = [:]
    var nextNumber = 0
    var isClosed = false
  }

  private let state = Guarded(State())

  /// Returns once no other caller holds `key`. Every call that returns needs a `release`.
  ///
  /// - Parameter holder: the body for which it is held, if any.
  /// - Throws: `.cancelled` when the task is cancelled while it waits, `.failedPrecondition` when
  ///   the database is closed meanwhile; then the latch is not held.
  func acquire(_ key: LatchKey, for holder: RunningBody? = nil) async throws(DatabaseError) {
    let number = state.withLock { state -> Int? in
      if state.take(key, for: holder) { return nil }
      state.nextNumber += 1
      return state.nextNumber
    }
    guard let number else { return }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state -> Outcome? in
          if state.take(key, for: holder) { return .isAcquired }
          if state.isClosed { return .isClosed }
          // A cancellation from here on finds the waiter.
          if Task.isCancelled { return .isCancelled }
          let waiter = Waiter(number: number, holder: holder, continuation: continuation)
          state.held[key]?.waiters.append(waiter)
          return nil
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      leave(key, number)?.resume(returning: .isCancelled)
    }
    switch outcome {
    case .isAcquired: return
    case .isCancelled: try refuseWhenCancelled("nothing was written")
    case .isClosed: throw DatabaseError(EngineError.closed)
    }
  }

  /// Removes a waiter from the queue, if it is there.
  private func leave(
    _ key: LatchKey, _ number: Int
  ) -> CheckedContinuation<Outcome, Never>? {
    state.withLock { state in
      guard let index = state.held[key]?.waiters.firstIndex(where: { $0.number == number }) else {
        return nil
      }
      return state.held[key]?.waiters.remove(at: index).continuation
    }
  }

  /// Acquires all of `keys` when none of them is held, and returns them, each once; otherwise
  /// returns nil, and acquires none. There is no waiting, so the order of the keys does not matter.
  func acquireAtOnce(_ keys: some Collection<LatchKey>) -> [LatchKey]? {
    state.withLock { state in
      if !state.held.isEmpty, keys.contains(where: { state.held[$0] != nil }) { return nil }
      var taken: [LatchKey] = []
      taken.reserveCapacity(keys.count)
      for key in keys where state.take(key, for: nil) { taken.append(key) }
      return taken
    }
  }

  /// Hands each of `keys` to its longest waiting caller.
  func release(_ keys: [LatchKey]) {
    let next = state.withLock { state -> [CheckedContinuation<Outcome, Never>] in
      keys.compactMap { state.release($0) }
    }
    for continuation in next { continuation.resume(returning: .isAcquired) }
  }

  /// Hands `key` to its longest waiting caller.
  func release(_ key: LatchKey) {
    let next = state.withLock { $0.release(key) }
    next?.resume(returning: .isAcquired)
  }

  /// The body for which `key` is held, when known.
  func holder(of key: LatchKey) -> RunningBody? {
    state.withLock { $0.held[key]?.holder }
  }

  /// Ends all waiting permanently.
  func close() {
    let waiters = state.withLock { state in
      state.isClosed = true
      var waiters: [Waiter] = []
      for key in Array(state.held.keys) {
        waiters += state.held[key]?.waiters ?? []
        state.held[key]?.waiters = []
      }
      return waiters
    }
    for waiter in waiters { waiter.continuation.resume(returning: .isClosed) }
  }
}

extension Latches.State {
  /// Acquires the latch, if it is free.
  fileprivate mutating func take(_ key: LatchKey, for holder: RunningBody?) -> Bool {
    guard held[key] == nil else { return false }
    held[key] = Latches.Latch(holder: holder)
    return true
  }

  /// Takes the latch from its holder; returns the waiter that gets it.
  fileprivate mutating func release(
    _ key: LatchKey
  ) -> CheckedContinuation<Latches.Outcome, Never>? {
    guard var latch = held.removeValue(forKey: key), !latch.waiters.isEmpty else { return nil }
    let next = latch.waiters.removeFirst()
    latch.holder = next.holder
    held[key] = latch
    return next.continuation
  }
}
