// When written documents are gathered into runs: once an index has a few dozen of them, in the
// background. Their number is counted in memory. Documents left when the database was closed are
// gathered with later ones.

internal import Logging
internal import OndolEngine

/// Which word indexes have documents to gather, and whether gathering is under way.
final class SearchGathering: Sendable {
  private struct State: Sendable {
    var counts: [Keyspace: Int] = [:]
    var running: Set<Keyspace> = []
    /// Indexes that, as far as known, have no leftover chunks outside runs.
    var clean: Set<Keyspace> = []
    /// The first generation to gather, as far as known.
    var firstFresh: [Keyspace: UInt64] = [:]
    /// Documents written since the last count of deleted documents in each run; none when there was
    /// no count yet.
    var uncounted: [Keyspace: Int] = [:]
  }

  /// The age at which a generation is closed while documents are written continuously. A
  /// transaction that takes longer may have to run again.
  private static let closingAge = Duration.seconds(2)
  /// How long there must be no writes before all generations are closed.
  private static let quiet = Duration.milliseconds(20)

  private let state = Guarded(State())

  /// Records that a commit has stored documents' words, and starts gathering when there are many.
  func note(_ searched: [SearchedIndex: Int], in database: Database) {
    for (index, count) in searched {
      let isDue = state.withLock { state in
        state.counts[index.keyspace, default: 0] += count
        if let before = state.uncounted[index.keyspace] {
          state.uncounted[index.keyspace] = before + count
        }
        guard state.counts[index.keyspace, default: 0] >= SearchPacker.dueCount,
          state.running.insert(index.keyspace).inserted
        else { return false }
        state.counts[index.keyspace] = 0
        return true
      }
      if isDue { start(index, in: database) }
    }
  }

  /// Whether to look for leftover chunks outside runs; they then count as removed.
  func takesRests(of index: Keyspace) -> Bool {
    state.withLock { $0.clean.insert(index).inserted }
  }

  /// Records that there may be leftover chunks outside runs.
  func noteRests(of index: Keyspace) {
    state.withLock { _ = $0.clean.remove(index) }
  }

  /// Whether to check runs for deleted documents: once after opening, and then whenever a certain
  /// part of all documents has been written. Counting takes time in proportion to all documents, so
  /// it must not follow every few dozen writes.
  func takesDead(of index: Keyspace, documents: Int) -> Bool {
    state.withLock { state in
      if let uncounted = state.uncounted[index], uncounted < documents / Self.countedShare {
        return false
      }
      state.uncounted[index] = 0
      return true
    }
  }

  private static let countedShare = 16

  /// Where gathering continues. Earlier rows come only from slow commits, and are found when
  /// generations are closed.
  func firstFresh(of index: Keyspace) -> UInt64 {
    state.withLock { $0.firstFresh[index, default: 0] }
  }

  func note(firstFresh generation: UInt64, of index: Keyspace) {
    state.withLock { $0.firstFresh[index] = generation }
  }

  /// Whether there are no writes at the moment.
  private func isQuiet(_ index: Keyspace) async -> Bool {
    let before = state.withLock { $0.counts[index, default: 0] }
    try? await Task.sleep(for: Self.quiet)
    return state.withLock { $0.counts[index, default: 0] } == before
  }

  private func start(_ index: SearchedIndex, in database: Database) {
    database.engine.startInBackground { [weak self, weak database] in
      guard let self, let database else { return }
      var isDue = true
      // The open generations and when they began.
      var begun: [(generation: UInt64, at: ContinuousClock.Instant)] = []
      while isDue {
        do throws(DatabaseError) {
          let packer = SearchPacker(
            database: database, pattern: index.pattern, keyspace: index.keyspace)
          begun.append((try await packer.generation(), .now))
          let old = begun.lastIndex { $0.at + Self.closingAge <= .now }
          try await packer.gather(closing: old.map { begun[$0].generation } ?? 0)
          if let old { begun.removeFirst(old + 1) }
          if await self.isQuiet(index.keyspace) { try await packer.gather() }
        } catch {
          if error.code != .cancelled, error.code != .failedPrecondition {
            database.options.logger.error(
              "an index of words could not be gathered",
              metadata: ["collection": "\(index.pattern)", "error": "\(error)"])
          }
          state.withLock { state in
            state.running.remove(index.keyspace)
            state.clean.remove(index.keyspace)
          }
          return
        }
        isDue = state.withLock { state in
          guard state.counts[index.keyspace, default: 0] >= SearchPacker.dueCount else {
            state.running.remove(index.keyspace)
            return false
          }
          state.counts[index.keyspace] = 0
          return true
        }
      }
    }
  }
}
