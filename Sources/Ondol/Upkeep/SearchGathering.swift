// When documents that were written are gathered: once there are some dozen in an index, in the
// background. How many there are is counted in memory; what was left when the database was closed
// is gathered with what comes next.

internal import Logging
internal import OndolEngine

/// Which indexes of words have documents to gather, and whether somebody does.
final class SearchGathering: Sendable {
  private struct State: Sendable {
    var counts: [Keyspace: Int] = [:]
    var running: Set<Keyspace> = []
    /// Indexes without chunks of no run, as far as is known.
    var clean: Set<Keyspace> = []
    /// The first generation that is to be gathered, as far as is known.
    var firstFresh: [Keyspace: UInt64] = [:]
    /// Documents that were written since somebody counted those of each run that are no more; none
    /// where nobody has yet.
    var uncounted: [Keyspace: Int] = [:]
  }

  /// How old a generation is that is closed while documents are written all the time. A transaction
  /// that takes longer may have to run again.
  private static let closingAge = Duration.seconds(2)
  /// How long nobody writes before all generations are closed.
  private static let quiet = Duration.milliseconds(20)

  private let state = Guarded(State())

  /// Notes that a commit has put documents' words, and starts gathering them when they are many.
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

  /// Whether chunks of no run are to be looked for; they are taken for removed from then on.
  func takesRests(of index: Keyspace) -> Bool {
    state.withLock { $0.clean.insert(index).inserted }
  }

  /// Notes that there may be chunks of no run.
  func noteRests(of index: Keyspace) {
    state.withLock { _ = $0.clean.remove(index) }
  }

  /// Whether runs are to be looked through for documents that are no more: once after opening, and
  /// then whenever a part of all has been written. Counting them takes as long as there are
  /// documents, so it must not be done for each few dozen that come.
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

  /// Where gathering goes on. Before it there are rows only of commits that took long, and these
  /// are found when generations are closed.
  func firstFresh(of index: Keyspace) -> UInt64 {
    state.withLock { $0.firstFresh[index, default: 0] }
  }

  func note(firstFresh generation: UInt64, of index: Keyspace) {
    state.withLock { $0.firstFresh[index] = generation }
  }

  /// Whether nobody writes just now.
  private func isQuiet(_ index: Keyspace) async -> Bool {
    let before = state.withLock { $0.counts[index, default: 0] }
    try? await Task.sleep(for: Self.quiet)
    return state.withLock { $0.counts[index, default: 0] } == before
  }

  private func start(_ index: SearchedIndex, in database: Database) {
    database.engine.startInBackground { [weak self, weak database] in
      guard let self, let database else { return }
      var isDue = true
      // Generations and when they began, as far as they are not closed.
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
