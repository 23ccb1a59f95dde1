// Fills the disk at every point of a small workload: the same life again and again, each time on a
// slightly larger disk. A commit that found no space must not have happened, no acknowledged commit
// may be lost, reads continue, and nothing is poisoned. Then the test deletes and compacts
// everything on the same disk, which must free space. Finally the disk grows, and commits continue
// without reopening the database.

internal import OndolEngine

/// Lives on disks of every size.
package struct FullDiskTest: Sendable {
  /// The result.
  package struct Report: Sendable {
    /// The number of disks.
    package var points = 0
    /// Commits, flushes and merges that found no space.
    package var refusals = 0
    /// Full disks without a crash, and those among them on which deletes and a compaction freed
    /// space.
    package var full = 0
    package var freed = 0
    package var violation: String?
  }

  /// The first event after the disk is full.
  package enum End: Sendable, CaseIterable {
    case nothing
    case kill
    case powerCut
  }

  package var seed: UInt64
  /// The difference between one disk and the next, in bytes.
  package var step: Int

  package init(seed: UInt64, step: Int) {
    self.seed = seed
    self.step = step
  }

  package func run() -> Report {
    var report = Report()
    do {
      let whole = try live(capacity: nil, end: .nothing)
      var capacity = whole.base
      while capacity < whole.peak {
        let end = End.allCases[report.points % End.allCases.count]
        let outcome: FullDiskLife.Outcome
        do {
          outcome = try live(capacity: capacity, end: end)
        } catch {
          report.violation = "SEED=\(seed), \(capacity) bytes, \(end): \(error)"
          return report
        }
        report.points += 1
        report.refusals += outcome.refusals
        if end == .nothing, outcome.refusals > 0 {
          report.full += 1
          report.freed += outcome.madeRoom ? 1 : 0
        }
        capacity += step
      }
    } catch {
      report.violation = "SEED=\(seed), without a bound: \(error)"
    }
    return report
  }

  /// One life on a disk with a capacity.
  private func live(capacity: Int?, end: End) throws -> FullDiskLife.Outcome {
    try SimulationExecutor.run(seed: seed) { [seed] executor in
      let fileSystem = SimulatedFileSystem()
      fileSystem.setCapacity(capacity)
      var life = FullDiskLife(on: fileSystem, seed: seed, executor)
      return try await life.run(end)
    }
  }
}

/// A broken promise.
private struct Broken: Error, CustomStringConvertible {
  var description: String
}

/// An engine on a disk that may be full, and its expected rows.
struct FullDiskLife {
  struct Outcome {
    /// The bytes of a database with its first commit, and the largest size.
    var base = 0
    var peak = 0
    var refusals = 0
    /// Whether a row could be put after all rows were deleted and compacted away.
    var madeRoom = false
  }

  private static let keyCount = 120
  private static let commits = 250

  private var fileSystem: SimulatedFileSystem
  private let seed: UInt64
  private let executor: SimulationExecutor
  private var random: SeededRandom
  private var rows: [[UInt8]: [UInt8]] = [:]
  private var outcome = Outcome()

  init(on fileSystem: SimulatedFileSystem, seed: UInt64, _ executor: SimulationExecutor) {
    self.fileSystem = fileSystem
    self.seed = seed
    self.executor = executor
    random = SeededRandom(seed: seed)
  }

  mutating func run(_ end: FullDiskTest.End) async throws -> Outcome {
    var engine = try await openSomehow()
    try await fill(engine)
    engine = try await crash(engine, end)
    try await empty(engine)
    fileSystem.setCapacity(nil)
    for _ in 0..<10 { try await put(to: engine, mayRefuse: false) }
    try await settle(engine, mayRefuse: false)
    try await check(engine, "with space again")
    try await engine.close()
    engine = try await open()
    try await check(engine, "after closing and opening")
    try await engine.close()
    return outcome
  }

  // MARK: - Opening

  private func open() async throws(EngineError) -> Engine {
    var options = EngineOptions()
    options.shardCount = 2
    options.memtableSize = 4 << 10
    options.logSize = 8 << 10
    options.firstPrewrittenSize = 4 << 10
    options.manifestSize = 1 << 10
    options.segmentSize = 4 << 10
    options.blockSize = 512
    options.valueThreshold = 1 << 10
    options.valueFileSize = 4 << 10
    options.runLimit = 2
    options.smallShardSize = 0
    let world = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
    return try await Engine.open(at: "/db", options: options, environment: world.environment)
  }

  /// A database that finds no space at its creation is created once there is some.
  private mutating func openSomehow() async throws -> Engine {
    do throws(EngineError) {
      return try await open()
    } catch {
      guard error.isLackOfSpace else { throw Broken(description: "opening: \(error)") }
      outcome.refusals += 1
      fileSystem.setCapacity(nil)
      return try await open()
    }
  }

  private mutating func crash(_ engine: Engine, _ end: FullDiskTest.End) async throws -> Engine {
    if end == .nothing { return engine }
    let left = end == .kill ? fileSystem.kill() : fileSystem.crash(seed: seed)
    left.setCapacity(fileSystem.capacity)
    try? await engine.close()
    fileSystem = left
    let next = try await open()
    try await check(next, "after a crash on the full disk")
    return next
  }

  // MARK: - Work

  private mutating func fill(_ engine: Engine) async throws {
    let first = outcome.refusals
    for number in 0..<Self.commits where outcome.refusals < first + 12 {
      try await put(to: engine, mayRefuse: true)
      if number % 25 == 24 { try await flush(engine) }
      if number % 60 == 59 { try await settle(engine, mayRefuse: true) }
      if number == 0 { outcome.base = fileSystem.used }
      outcome.peak = max(outcome.peak, fileSystem.used)
    }
    try await check(engine, "while the disk was filled")
  }

  /// Deletes every row in a commit of its own, and then frees the files.
  private mutating func empty(_ engine: Engine) async throws {
    for key in rows.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      var batch = Batch()
      batch.delete(key.bytes)
      if try await commit(batch, to: engine, mayRefuse: true) { rows[key] = nil }
    }
    try await check(engine, "with rows deleted")
    try await settle(engine, mayRefuse: true)
    try await settle(engine, mayRefuse: true)
    outcome.madeRoom = try await put(to: engine, mayRefuse: true)
    try await check(engine, "after a compaction")
  }

  private mutating func flush(_ engine: Engine) async throws {
    try await attempt(mayRefuse: true) { () throws(EngineError) in try await engine.flush() }
  }

  private mutating func settle(_ engine: Engine, mayRefuse: Bool) async throws {
    try await attempt(mayRefuse: mayRefuse) { () throws(EngineError) in
      try await engine.compact { _, _ in }
    }
  }

  @discardableResult
  private mutating func put(to engine: Engine, mayRefuse: Bool) async throws -> Bool {
    var batch = Batch()
    var new: [[UInt8]: [UInt8]] = [:]
    for _ in 0..<(1 + random.below(3)) {
      let number = random.below(Self.keyCount)
      let key: [UInt8] = [0, 0, number % 2 == 0 ? 0x10 : 0x20, 0, UInt8(number)]
      let value = random.bytes(random.chance(1, in: 8) ? 1_500 : random.below(400))
      batch.put(key.bytes, value.bytes)
      new[key] = value
    }
    guard try await commit(batch, to: engine, mayRefuse: mayRefuse) else { return false }
    rows.merge(new) { $1 }
    return true
  }

  private mutating func commit(
    _ batch: Batch, to engine: Engine, mayRefuse: Bool
  ) async throws -> Bool {
    try await attempt(mayRefuse: mayRefuse) { () throws(EngineError) in
      _ = try await engine.commit(batch, durability: .power)
    }
  }

  /// Returns false for a lack of space. A full disk may cause no other failure.
  @discardableResult
  private mutating func attempt(
    mayRefuse: Bool, _ work: () async throws(EngineError) -> Void
  ) async throws -> Bool {
    do throws(EngineError) {
      try await work()
      return true
    } catch {
      guard mayRefuse, error.isLackOfSpace else { throw Broken(description: "\(error)") }
      outcome.refusals += 1
      return false
    }
  }

  private func check(_ engine: Engine, _ moment: String) async throws {
    let snapshot = try engine.snapshot()
    for number in 0..<Self.keyCount {
      let key: [UInt8] = [0, 0, number % 2 == 0 ? 0x10 : 0x20, 0, UInt8(number)]
      let found = try await snapshot.get(key)
      guard found == rows[key] else {
        let expected = rows[key].map { "\($0.count) bytes" } ?? "nothing"
        throw Broken(
          description: "\(moment), row \(number) is \(found?.count ?? -1) bytes, not \(expected)")
      }
    }
  }
}
