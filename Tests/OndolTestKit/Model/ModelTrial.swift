// One model trial: an engine with random options does what the seed decides, and an ordered map in
// memory has the expected results. In a simulated world the same seed repeats everything, including
// the order in which tasks and threads take their turns.
//
// ModelLife.swift has the operations of a trial, ModelLife+Together.swift does some of them
// concurrently, and ModelReads.swift has the reads.

internal import OndolEngine

/// The work of a trial without a fault.
package struct ModelSummary: Sendable, CustomStringConvertible {
  package var seed: UInt64
  package var operations: Int
  package var commits: UInt64
  /// How often each notable event happened, such as a refused batch or a reopen.
  package var points: [ModelPoint: Int]

  package var description: String {
    let points = points.sorted { $0.key.rawValue < $1.key.rawValue }
      .map { "\($0.key.rawValue) \($0.value)" }
    return "seed \(seed): sound after \(operations) operations and \(commits) commits; "
      + points.joined(separator: ", ")
  }
}

/// The notable events of a trial. A suite that never meets one of these tests less than it claims.
package enum ModelPoint: String, Sendable, CaseIterable {
  case emptyCommit = "empty commits"
  case bigCommit = "commits larger than a memtable"
  case refusedAsTooLarge = "commits refused as too large"
  case refusedAsStale = "stale batches refused"
  case refusedCautiously = "batches refused though their rows were unchanged"
  case guardedCommit = "guarded commits"
  case commitsAtOnce = "commits at once"
  case readsAtOnce = "reads beside commits"
  case flush = "flushes"
  case settle = "settlings"
  case synchronize = "synchronizings"
  case status = "looks at the status"
  case heldSnapshot = "reads of snapshots held through upkeep"
  case closedSnapshot = "reads of snapshots after closing"
  case heldCursor = "moves of cursors held through upkeep"
  case reopening = "reopenings"
  case kill = "kills"
  case lostInKill = "kills that took commits nobody had asked to keep"
}

/// A trial in which engine and model differ.
package struct ModelMismatch: Error, CustomStringConvertible {
  package var seed: UInt64
  package var operation: Int
  package var options: String
  package var reason: String
  /// The last operations before it.
  package var journal: [String]

  package var description: String {
    """
    SEED=\(seed), operation \(operation): \(reason)
    options: \(options)
    before that: \(journal.joined(separator: "; "))
    """
  }
}

/// A trial's progress, readable even when the trial hangs.
final class ModelJournal: Sendable {
  private struct State {
    var operation = 0
    var options = ""
    var lines: [String] = []
  }

  private let seed: UInt64
  private let state = Guarded(State())

  init(seed: UInt64) {
    self.seed = seed
  }

  /// Begins the next operation.
  func begin() {
    state.withLock { $0.operation += 1 }
  }

  func opened(_ options: String) {
    state.withLock { $0.options = options }
  }

  func note(_ text: String) {
    state.withLock { $0.lines.append("\($0.operation). \(text)") }
  }

  func mismatch(_ reason: any Error) -> ModelMismatch {
    state.withLock { state in
      ModelMismatch(
        seed: seed, operation: state.operation, options: state.options, reason: "\(reason)",
        journal: state.lines.suffix(12))
    }
  }
}

package enum ModelTrial {
  /// The default number of a trial's operations.
  package static let operations = 70

  /// Runs the trial of `seed` on simulated files, under an executor that orders tasks and threads
  /// by the seed. Throws `ModelMismatch`.
  package static func run(
    seed: UInt64, operations: Int = operations
  ) throws -> ModelSummary {
    let journal = ModelJournal(seed: seed)
    do {
      return try SimulationExecutor.run(seed: seed) { executor in
        let world = SimulatedWorld(seed: seed, threads: executor)
        let life = ModelLife(
          seed: seed, environment: world.environment, path: "/db", journal,
          simulated: world.fileSystem)
        return try await life.run(operations)
      }
    } catch {
      throw journal.mismatch(error)
    }
  }

  /// Runs the trial of `seed` with real threads, whose turns no seed decides: on the disk, in an
  /// empty directory at `path`, or on files in memory.
  package static func runOnThreads(
    seed: UInt64, path: String? = nil, operations: Int = operations
  ) async throws -> ModelSummary {
    let journal = ModelJournal(seed: seed)
    let life = ModelLife(
      seed: seed, environment: path == nil ? .tested() : .live(), path: path ?? "db", journal,
      simulated: nil)
    do {
      return try await life.run(operations)
    } catch {
      throw journal.mismatch(error)
    }
  }
}
