// When documents that were written are gathered: once there are some hundred in an index, in the
// background. How many there are is counted in memory; what was left when the database was closed
// is gathered with what comes next.

internal import Logging
internal import OndolEngine

/// Which indexes of words have documents to gather, and whether somebody does.
final class SearchGathering: Sendable {
  private struct State: Sendable {
    var counts: [Keyspace: Int] = [:]
    var running: Set<Keyspace> = []
  }

  private let state = Guarded(State())

  /// Notes that a commit has put documents' words, and starts gathering them when they are many.
  func note(_ searched: [SearchedIndex: Int], in database: Database) {
    for (index, count) in searched {
      let isDue = state.withLock { state in
        state.counts[index.keyspace, default: 0] += count
        guard state.counts[index.keyspace, default: 0] >= SearchPacker.gatheredCount,
          state.running.insert(index.keyspace).inserted
        else { return false }
        state.counts[index.keyspace] = 0
        return true
      }
      if isDue { start(index, in: database) }
    }
  }

  private func start(_ index: SearchedIndex, in database: Database) {
    database.engine.startInBackground { [weak self, weak database] in
      guard let self, let database else { return }
      var isDue = true
      while isDue {
        do throws(DatabaseError) {
          try await SearchPacker(
            database: database, pattern: index.pattern, keyspace: index.keyspace
          ).gather()
        } catch {
          if error.code != .cancelled, error.code != .failedPrecondition {
            database.options.logger.error(
              "an index of words could not be gathered",
              metadata: ["collection": "\(index.pattern)", "error": "\(error)"])
          }
          state.withLock { _ = $0.running.remove(index.keyspace) }
          return
        }
        isDue = state.withLock { state in
          guard state.counts[index.keyspace, default: 0] >= SearchPacker.gatheredCount else {
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
