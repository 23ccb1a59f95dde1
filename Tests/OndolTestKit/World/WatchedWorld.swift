// A database whose every step, and every step of the test beside it, belongs to a simulation
// executor. The executor knows when nothing is left to run, so a test that waits forever ends at
// once, with an error.

package import Ondol
internal import OndolEngine

/// An empty database, and a maker of tasks that do not belong to the test.
package struct WatchedWorld: Sendable {
  package let database: Database
  package let executor: SimulationExecutor
  private let world: SimulatedWorld

  /// Runs `body` in an order of steps that the seed decides.
  ///
  /// - Parameter options: the options for opening the database.
  /// - Throws: the error of `body`; `SimulationExecutor.Stalled` if it waits while nothing runs.
  package static func run<Success: Sendable>(
    seed: UInt64, options: Database.Options = Database.Options(),
    _ body: @escaping @Sendable (WatchedWorld) async throws -> Success
  ) throws -> Success {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let database = try await Database.open(
        at: "/db", options: options, environment: world.environment)
      let watched = WatchedWorld(database: database, executor: executor, world: world)
      let success = try await body(watched)
      try await database.close()
      return success
    }
  }

  /// Begins an independent task, which knows nothing of the body that begins it.
  @discardableResult
  package func start<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    Task.detached(executorPreference: executor) { try await body() }
  }

  /// Runs concurrent work in a task of its own.
  @discardableResult
  package func apart<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) async throws -> Success {
    try await start(body).value
  }

  /// Lets some time pass.
  package func rest(milliseconds: Int64) async {
    await world.environment.rest(milliseconds * 1_000)
  }
}
