// One history, from an empty database to the verdict: in the order of a seed, which decides every
// step of every task, or on real threads in any order.

internal import Ondol
internal import OndolEngine

package enum HistoryTrial {
  /// Returns why the history of `seed` is impossible; nil if all is well. The seed decides every
  /// step's turn. Throws the database's errors.
  package static func runInOrder(
    seed: UInt64, rounds: Int = 6, mistake: DocumentHistory.Mistake? = nil
  ) throws -> String? {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      return try await verdict(world.environment, seed, rounds: rounds, mistake)
    }
  }

  /// Works as above, on real threads and files in memory.
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
