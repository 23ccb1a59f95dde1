// A database of any size under a limit of open files. Each segment and each value file once kept a
// descriptor from its first read on. At some tens of gigabytes a process had no more, so gets,
// scans and commits failed. A reader beside a writer opened all of them at once and could not be
// opened.

import OndolEngine
import OndolTestKit
import Testing

@Suite struct `A database with many files` {
  private func options(fileLimit: Int?) -> EngineOptions {
    var options = tinyOptions()
    options.fileLimit = fileLimit
    options.segmentSize = 1 << 10
    options.valueThreshold = 300
    options.valueFileSize = 1 << 10
    options.cacheSize = 16 << 10
    options.memtableSize = 4 << 10
    return options
  }

  private func value(_ number: Int, _ round: Int) -> [UInt8] {
    [UInt8](
      repeating: UInt8(truncatingIfNeeded: number &+ round), count: number % 4 == 0 ? 350 : 60)
  }

  private func key(_ number: Int) -> [UInt8] { rowKey("\(number)", group: UInt32(1 + number % 2)) }

  private static let rows = 800

  /// Writes and overwrites rows until there are some hundred files.
  private func fill(_ engine: Engine, round: Int) async throws {
    for start in stride(from: 0, to: Self.rows, by: 20) {
      var rows: [[UInt8]: [UInt8]?] = [:]
      for number in start..<(start + 20) { rows[key(number)] = .some(value(number, round)) }
      try await engine.put(rows, durability: .process)
    }
    try await engine.flush()
  }

  private func check(_ engine: Engine, round: Int) async throws {
    let snapshot = try engine.snapshot()
    for number in stride(from: 0, to: Self.rows, by: 7) {
      #expect(try await snapshot.get(key(number)) == value(number, round), "row \(number)")
    }
    for group: UInt32 in 1...2 {
      var cursor = snapshot.cursor(from: rowKey("", group: group), to: rowKey("", group: group + 1))
      try cursor.seekToFirst()
      var count = 0
      while cursor.isValid {
        _ = try cursor.value.byteCount
        count += 1
        try cursor.next()
      }
      #expect(count == Self.rows / 2)
    }
  }

  @Test(arguments: [64, 65, 66, 72, 96], [1, 2] as [UInt64])
  func `never has more files open than its limit, whatever it does`(
    limit: Int, seed: UInt64
  ) throws {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      world.fileSystem.setFileLimit(limit)
      var engine = try await Engine.open(
        at: "db", options: options(fileLimit: limit), environment: world.environment)
      let old = try engine.snapshot()
      for round in 0..<2 {
        try await fill(engine, round: round)
        try await check(engine, round: round)
      }
      #expect(
        engine.metrics.shards.reduce(0) { $0 + $1.levels.reduce(0) { $0 + $1.segments } } > 60)
      try await engine.close()
      withExtendedLifetime(old) {}
      engine = try await Engine.open(
        at: "db", options: options(fileLimit: limit), environment: world.environment)
      try await check(engine, round: 1)
      try await engine.compact()
      try await check(engine, round: 1)
      try await engine.close()
      #expect(world.fileSystem.mostOpenFiles <= limit, "SEED=\(seed)")
      // The limit caused this.
      #expect(world.fileSystem.mostOpenFiles > 32, "SEED=\(seed)")
    }
  }

  @Test(arguments: [24, 28, 32, 48, 64])
  func `gets by with fewer descriptors than it was promised`(available: Int) throws {
    try SimulationExecutor.run(seed: UInt64(available)) { executor in
      let world = SimulatedWorld(seed: UInt64(available), threads: executor)
      let engine = try await Engine.open(
        at: "db", options: options(fileLimit: 256), environment: world.environment)
      world.fileSystem.setFileLimit(available)
      for round in 0..<2 {
        try await fill(engine, round: round)
        try await check(engine, round: round)
      }
      try await engine.close()
      #expect(world.fileSystem.mostOpenFiles <= available)
    }
  }

  @Test(arguments: [64, 96], Seeds.first(2))
  func `is read beside its writer with few descriptors, or reports that a file is gone`(
    limit: Int, seed: UInt64
  ) throws {
    try SimulationExecutor.run(seed: seed) { executor in
      let world = SimulatedWorld(seed: seed, threads: executor)
      let writer = try await Engine.open(
        at: "db", options: options(fileLimit: nil), environment: world.environment)
      try await fill(writer, round: 0)
      try await writer.compact()
      let before = world.fileSystem.openFiles
      let reader = try await Engine.open(
        at: "db", options: options(fileLimit: limit), environment: world.environment,
        access: .readOnly)
      #expect(world.fileSystem.openFiles - before <= limit)
      try await check(reader, round: 0)
      for round in 1..<3 {
        try await fill(writer, round: round)
        try await writer.compact()
        // A shown snapshot can still be read, row by row, or its file is gone and the read says so.
        let snapshot = try reader.snapshot()
        var late = 0
        for number in 0..<Self.rows {
          do throws(EngineError) {
            let found = try await snapshot.get(key(number))
            #expect(found == value(number, round - 1), "row \(number), SEED=\(seed)")
          } catch {
            guard case .superseded = error else { throw error }
            late += 1
          }
        }
        #expect(late > 0, "some files were not held")
        #expect(late < Self.rows, "some files were")
        #expect(try await reader.refresh())
        try await check(reader, round: round)
      }
      try await reader.close()
      try await writer.close()
    }
  }

  @Test func `is read beside its writer unchanged, if all files fit`() throws {
    try SimulationExecutor.run(seed: 5) { executor in
      let world = SimulatedWorld(seed: 5, threads: executor)
      let writer = try await Engine.open(
        at: "db", options: options(fileLimit: nil), environment: world.environment)
      try await fill(writer, round: 0)
      let reader = try await Engine.open(
        at: "db", options: options(fileLimit: 4_000), environment: world.environment,
        access: .readOnly)
      try await fill(writer, round: 1)
      try await writer.compact()
      try await check(reader, round: 0)
      try await reader.close()
      try await writer.close()
    }
  }
}
