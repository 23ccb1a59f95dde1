// How commits reach the device: on which thread, when, and in which logs.

import OndolEngine
import OndolTestKit
import Testing

private let path = "/db"
private let noSpace: Int32 = 28
private let row: [UInt8] = [0, 0, 0x10, 0, 1]

private func batch(_ value: UInt8) -> Batch {
  var batch = Batch()
  batch.put(row.bytes, [value].bytes)
  return batch
}

private func open(
  _ world: SimulatedWorld, _ change: (inout EngineOptions) -> Void = { _ in }
) async throws -> Engine {
  var options = EngineOptions()
  change(&options)
  return try await Engine.open(at: path, options: options, environment: world.environment)
}

@Suite struct `The commit path` {
  @Test(arguments: Seeds.first(8))
  func `makes periodic syncs at their time, without a request`(seed: UInt64) throws {
    let left = try SimulationExecutor.run(seed: seed) { executor in
      let fileSystem = SimulatedFileSystem()
      let world = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
      let engine = try await open(world)
      // The first commit finds either no log, or one whose unsafe name is not synced.
      _ = try await engine.commit(batch(1), durability: .power)
      for value: UInt8 in 2..<4 {
        let syncs = fileSystem.count(of: .sync)
        _ = try await engine.commit(batch(value), durability: .periodic(microseconds: 5_000))
        for _ in 0..<1_000 where fileSystem.count(of: .sync) == syncs {
          // Time passes now and then during the work.
          await Task.yield()
        }
        #expect(fileSystem.count(of: .sync) > syncs, "SEED=\(seed)")
      }
      return fileSystem.crash(seed: seed)
    }
    let found = try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(fileSystem: left, seed: seed, threads: executor)
      let engine = try await open(world)
      defer { _ = engine }
      return try await engine.snapshot().get(row)
    }
    #expect(found == [3], "SEED=\(seed)")
  }

  @Test func `writes logs ahead once commits keep syncing, and removes them at the end`()
    async throws
  {
    let fileSystem = SimulatedFileSystem()
    let world = SimulatedWorld(fileSystem: fileSystem, seed: 1)
    let engine = try await open(world) { options in
      options.logSize = 64 << 10
      options.firstPrewrittenSize = 16 << 10
    }
    func sizes() -> [Int] {
      let storage = fileSystem.storage
      return storage.names(in: path).filter { $0.hasPrefix("LOG-") }
        .map { storage.contents(of: $0, in: path)?.count ?? 0 }
    }
    for value: UInt8 in 0..<20 { _ = try await engine.commit(batch(value), durability: .process) }
    #expect(!sizes().contains { $0 >= 16 << 10 }, "who never syncs pays for nothing")
    for value: UInt8 in 0..<100 {
      _ = try await engine.commit(batch(value), durability: .power)
      await Task.yield()
    }
    for _ in 0..<1_000 where !sizes().contains(16 << 10) { await Task.yield() }
    #expect(sizes().contains(16 << 10))
    try await engine.close()
    #expect(sizes().allSatisfy { $0 < 8 << 10 })
  }

  @Test func `reports a full disk and continues when there is space again`() async throws {
    let fileSystem = SimulatedFileSystem()
    let world = SimulatedWorld(fileSystem: fileSystem, seed: 1)
    let engine = try await open(world)
    fileSystem.inject([Fault(failing: [.create], of: .log, errno: noSpace, isSticky: true)])
    for durability in [Durability.process, .power] {
      do throws(EngineError) {
        _ = try await engine.commit(batch(1), durability: durability)
        Issue.record("a commit without a log")
      } catch {
        guard case .noSpace(_, errno: noSpace) = error else { throw error }
      }
    }
    fileSystem.inject([])
    _ = try await engine.commit(batch(2), durability: .power)
    #expect(try await engine.snapshot().get(row) == [2])
    try await engine.close()
  }

  @Test func `refuses cleanly when a log written ahead is full and so is the disk`() async throws {
    let fileSystem = SimulatedFileSystem()
    let world = SimulatedWorld(fileSystem: fileSystem, seed: 1)
    let engine = try await open(world) { options in
      options.logSize = 16 << 10
      options.firstPrewrittenSize = 16 << 10
    }
    for value: UInt8 in 0..<30 {
      _ = try await engine.commit(batch(value), durability: .power)
      await Task.yield()
    }
    fileSystem.inject([Fault(failing: [.create], of: .log, errno: noSpace, isSticky: true)])
    var refusal: EngineError?
    for value: UInt8 in 0..<250 where refusal == nil {
      do throws(EngineError) {
        _ = try await engine.commit(batch(value), durability: .power)
      } catch {
        refusal = error
      }
      await Task.yield()
    }
    guard case .noSpace(_, errno: noSpace) = refusal else {
      Issue.record("the refusal was \(String(describing: refusal))")
      return
    }
    fileSystem.inject([])
    _ = try await engine.commit(batch(251), durability: .power)
    #expect(try await engine.snapshot().get(row) == [251])
    try await engine.close()
  }
}
