// A database whose every step, and every step of the test beside it, is a simulation executor's. It
// knows when nothing is left to run, so a test that waits for ever ends at once, with an error.

package import Ondol
internal import OndolEngine

/// An empty database, and what makes tasks that are not the test's own.
package struct WatchedWorld: Sendable {
  package let database: Database
  package let executor: SimulationExecutor
  private let world: SimulatedWorld

  /// Runs `body` in an order of steps that the seed decides.
  ///
  /// - Parameter options: how the database is opened.
  /// - Throws: what `body` throws; `SimulationExecutor.Stalled` when it waits while nothing runs.
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

  /// Begins a task of its own, which knows nothing of the body it is begun in.
  @discardableResult
  package func start<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    Task.detached(executorPreference: executor) { try await body() }
  }

  /// What somebody else does meanwhile, in a task of his own.
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
