// Short outages of a real server, one of each kind. `ondol-stress away` has long ones, for as long
// as wanted.

import OndolPostgresTestKit
import OndolTestKit
import Testing

@Suite struct `A server that is away` {
  /// A listener was silent for a minute when a slow line kept the answer of a commit or of news:
  /// its process asked for nothing else meanwhile.
  @Test(arguments: FaultyProxy.Mode.outages, Seeds.first(1))
  func `Leaves listeners honest, calls short and outcomes known`(
    _ mode: FaultyProxy.Mode, seed: UInt64
  ) async throws {
    _ = try await AwayTrial(seed: seed, mode, .short).run()
  }
}
