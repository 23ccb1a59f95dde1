// Serializable transactions on the engine's guards, many at once, in random interleavings: a result
// that no serial order of the transactions could produce must not occur.

import OndolEngine
import OndolTestKit
import Testing

private var tinyOptions: EngineOptions {
  var options = EngineOptions()
  options.shardCount = 1
  options.memtableSize = 1 << 10
  options.logSize = 6 << 10
  options.blockSize = 256
  return options
}

private func key(_ text: String) -> [UInt8] { [0, 0, 0x10, 0] + Array(text.utf8) }

/// Derives a batch from a snapshot until one is accepted, or until `body` has nothing to write.
private func transact(
  _ engine: Engine, _ body: (Snapshot, inout Batch) async throws -> Bool
) async throws {
  while true {
    let snapshot = try engine.snapshot()
    var batch = Batch()
    batch.basis = snapshot.sequence
    guard try await body(snapshot, &batch) else { return }
    do throws(EngineError) {
      _ = try await engine.commit(batch, durability: .power)
      return
    } catch {
      guard error == .stale else { throw error }
    }
  }
}

/// The values of the rows from `lower` on and before `upper`.
private func values(
  _ snapshot: Snapshot, from lower: [UInt8], to upper: [UInt8]
) throws -> [[UInt8]] {
  var cursor = snapshot.cursor(from: lower, to: upper)
  var values: [[UInt8]] = []
  try cursor.seekToFirst()
  while cursor.isValid {
    values.append(try cursor.value.array)
    try cursor.next()
  }
  return values
}

/// Runs `tasks` tasks beside one that flushes, and then `check`.
private func run(
  seed: UInt64, tasks: Int, _ work: @escaping @Sendable (Engine, Int) async throws -> Void,
  check: @escaping @Sendable (Snapshot) async throws -> Void
) throws {
  try SimulationExecutor.run(seed: seed) { executor in
    let world = SimulatedWorld(seed: seed, threads: executor)
    let engine = try await Engine.open(
      at: "/db", options: tinyOptions, environment: world.environment)
    try await withThrowingTaskGroup { group in
      for task in 0..<tasks { group.addTask { try await work(engine, task) } }
      group.addTask {
        for _ in 0..<6 {
          await Task.yield()
          try await engine.flush()
        }
      }
      try await group.waitForAll()
    }
    try await check(try engine.snapshot())
    try await engine.close()
  }
}

@Suite struct `Transactions at once` {
  /// Each doctor may leave while another is on call. Each reads all of them and changes only
  /// themselves.
  @Test func `do not skew each other's writes`() throws {
    for seed: UInt64 in 0..<60 {
      let doctors = ["a", "b", "c"].map { key("doctor " + $0) }
      try run(seed: seed, tasks: 3) { engine, task in
        try await transact(engine) { _, batch in
          let doctor = doctors[task]
          batch.put(doctor.bytes, [1].bytes)
          return true
        }
        try await transact(engine) { snapshot, batch in
          var onCall = 0
          for doctor in doctors {
            batch.guardUnchanged(doctor.bytes)
            if try await snapshot.get(doctor) == [1] { onCall += 1 }
          }
          guard onCall > 1 else { return false }
          let doctor = doctors[task]
          batch.put(doctor.bytes, [0].bytes)
          return true
        }
      } check: { snapshot in
        let onCall = try values(snapshot, from: key("doctor "), to: key("doctor ~"))
        #expect(onCall.contains([1]), "SEED=\(seed)")
      }
    }
  }

  /// A booking is added if the query finds fewer than three. Each has a key of its own.
  @Test func `see no phantoms`() throws {
    for seed: UInt64 in 0..<60 {
      try run(seed: seed, tasks: 6) { engine, task in
        for round in 0..<2 {
          try await transact(engine) { snapshot, batch in
            let (lower, upper) = (key("booking "), key("booking ~"))
            batch.guardUnchanged(from: lower.bytes, to: upper.bytes)
            guard try values(snapshot, from: lower, to: upper).count < 3 else { return false }
            batch.put(
              key("booking \(task) \(round)").bytes, [UInt8](repeating: 7, count: 300).bytes)
            return true
          }
        }
      } check: { snapshot in
        let bookings = try values(snapshot, from: key("booking "), to: key("booking ~"))
        #expect(bookings.count == 3, "SEED=\(seed)")
      }
    }
  }
}
