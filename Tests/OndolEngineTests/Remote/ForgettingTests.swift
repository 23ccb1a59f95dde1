// Versions of rows on a store that a process writes without a pause. The base of its reads, which
// limits forgetting, once moved only when a memtable was full.

import OndolEngine
import OndolTestKit
import Testing

@Suite struct `Versions on a store that is written all the time` {
  private let world = SimulatedWorld(seed: 1)
  private let store: SimulatedStore

  init() {
    store = SimulatedStore(seed: 1, environment: world.environment)
  }

  private func versions(behind lag: UInt64) async throws -> Int {
    var options = EngineOptions()
    options.baseLag = lag
    let engine = try await Engine.open(
      on: store, options: options, environment: world.environment)
    for value in 0..<50 as Range<UInt8> {
      var batch = Batch()
      batch.put([0, 1, 0, 0, 1].bytes, [value].bytes)
      _ = try await engine.commit(batch, durability: .power)
    }
    #expect(store.versionCount == 50)
    await engine.forgetVersions()
    let count = store.versionCount
    #expect(try await engine.snapshot().get([0, 1, 0, 0, 1]) == [49])
    try await engine.close()
    return count
  }

  @Test func `Are forgotten though no memtable is full`() async throws {
    #expect(try await versions(behind: 10) == 1)
  }

  @Test func `Stay if they are few`() async throws {
    #expect(try await versions(behind: 100) == 50)
  }
}
