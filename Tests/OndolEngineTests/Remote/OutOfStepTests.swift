// A process that was away for longer than a store keeps its versions: if it cannot continue with
// newer ones, it says what has happened, and that the database must be reopened.

import OndolEngine
import OndolTestKit
import Testing

@Suite struct `A process that is out of step with its store` {
  private let world = SimulatedWorld(seed: 1)
  private let store: SimulatedStore

  init() {
    store = SimulatedStore(seed: 1, environment: world.environment)
  }

  private func open(on way: (any RemoteStore)? = nil) async throws -> Engine {
    try await Engine.open(on: way ?? store, environment: world.environment)
  }

  private func write(_ value: UInt8, to engine: Engine) async throws {
    var batch = Batch()
    batch.put([0, 1, 0, 0, 1].bytes, [value].bytes)
    _ = try await engine.commit(batch, durability: .power)
  }

  /// Makes the store forget everything except the newest versions.
  private func forget(by engine: Engine) async throws {
    try await engine.flush(shardOf: [0, 0, 0, 0])
    await engine.forgetVersions()
  }

  private func expectOutOfStep(
    _ words: String, _ call: () async throws -> Void
  ) async {
    let error = await #expect(throws: EngineError.self) { try await call() }
    guard case .outOfStep(let reason)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.contains(words) && error?.description.contains("write failed") == false)
  }

  @Test func `Reports that the store has forgotten the versions that it follows others from`()
    async throws
  {
    let (writer, away) = (try await open(), try await open())
    try await write(1, to: writer)
    world.pass(seconds: 700)
    try await write(2, to: writer)
    _ = try await away.refresh()
    try await forget(by: writer)
    // Finding out what others have changed would require forgotten versions.
    away.prepareForRefreshes { _ in false }
    try await write(3, to: writer)
    await expectOutOfStep("heard nothing for 10 minutes") { _ = try await away.refresh() }
    await expectOutOfStep("heard nothing for 10 minutes") { try await write(4, to: away) }
    try await write(4, to: writer)
    for engine in [writer, away] { try await engine.close() }
  }

  @Test func `Says so when the store has forgotten the commits that come next`() async throws {
    let way = MortalStore(store)
    let (writer, away) = (try await open(), try await open(on: way))
    way.stop(behind: 0)
    world.pass(seconds: 700)
    for value in 1...3 as ClosedRange<UInt8> { try await write(value, to: writer) }
    try await forget(by: writer)
    try await write(4, to: writer)
    way.goOn()
    await expectOutOfStep("forgotten") { try await write(5, to: away) }
    await expectOutOfStep("forgotten") { _ = try await away.refresh() }
    for engine in [writer, away] { try await engine.close() }
  }
}
