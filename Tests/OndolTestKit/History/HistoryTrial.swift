// One history, from an empty database to the verdict: under the orders of a seed, which decides
// about every step of every task, or on real threads, which do as they like.

internal import Ondol
internal import OndolEngine

package enum HistoryTrial {
  /// Why the history of `seed` cannot be; nil when all is well. Every step's turn follows from the
  /// seed. Throws what the database threw.
  package static func runInOrder(
    seed: UInt64, rounds: Int = 6, mistake: DocumentHistory.Mistake? = nil
  ) throws -> String? {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      return try await verdict(world.environment, seed, rounds: rounds, mistake)
    }
  }

  /// As above, on real threads and files in memory.
  package static func runOnThreads(
    seed: UInt64, rounds: Int = 12, mistake: DocumentHistory.Mistake? = nil
  ) async throws -> String? {
    try await verdict(.tested(), seed, rounds: rounds, mistake)
  }

  private static func verdict(
    _ environment: Environment, _ seed: UInt64, rounds: Int, _ mistake: DocumentHistory.Mistake?
  ) async throws -> String? {
    let database = try await Database.open(
      at: "/history", environment, Workload(seed: seed).options)
    do {
      let workload = DocumentHistory(
        database: database, seed: seed, rounds: rounds, mistake: mistake)
      let violation = try await workload.run().violation()
      try await database.close()
      return violation
    } catch let error as BrokenInvariant {
      try await database.close()
      return error.description
    }
  }
}
