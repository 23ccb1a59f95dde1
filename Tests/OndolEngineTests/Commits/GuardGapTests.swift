// Guards keep the keys of flushed rows, but not while no batch has guards. When one began to, the
// earlier flushes were once an invisible gap: the engine accepted a batch from before the gap
// although its basis had changed in it.

import OndolEngine
import Testing

@Suite struct GuardGapTests {
  private let key: [UInt8] = [0, 0, 0x10, 0, 1]
  private let other: [UInt8] = [0, 0, 0x10, 0, 2]

  @Test func `A guard that reaches back past a flush without kept keys is refused`() async throws {
    var options = EngineOptions()
    options.shardCount = 1
    let engine = try await Engine.open(at: "db", options: options, environment: .memory())
    try await put(key, in: engine)
    let basis = try engine.snapshot().sequence
    try await put(key, in: engine)
    try await engine.flush()
    // From here on keys are kept.
    try await put(other, in: engine, guardedSince: try engine.snapshot().sequence)
    try await engine.flush()
    await #expect(throws: EngineError.stale) {
      try await put(key, in: engine, guardedSince: basis)
    }
    try await put(key, in: engine, guardedSince: try engine.snapshot().sequence)
    try await engine.close()
  }

  private func put(
    _ key: [UInt8], in engine: Engine, guardedSince basis: SequenceNumber? = nil
  ) async throws {
    var batch = Batch()
    batch.basis = basis
    if basis != nil { batch.guardUnchanged(key.bytes) }
    let value: [UInt8] = [1]
    batch.put(key.bytes, value.bytes)
    _ = try await engine.commit(batch, durability: .memory)
  }
}
