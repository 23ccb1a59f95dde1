// Removes rows of a document database without the database's knowledge, in files in memory. The
// caller decides what must notice: the suite's own audit, or the database's check.

internal import Ondol
package import OndolEngine

/// A closed database of documents, and its rows one by one.
package enum RowRemoval {
  /// Rows of every kind in few files.
  package static let options = SubjectOptions(
    shardCount: 2, memtableSize: 64 << 10, logSize: 64 << 10, manifestSize: 16 << 10,
    segmentSize: 1 << 20, blockSize: 1 << 10, deferredBytes: 100, runLimit: 2)

  /// Runs `body` in a world with these files.
  package static func inSimulation<Success: Sendable>(
    _ fileSystem: SimulatedFileSystem, seed: UInt64,
    _ body: @escaping @Sendable (Environment) async throws -> Success
  ) throws -> Success {
    try SimulationExecutor.run(seed: seed) { executor in
      try await body(
        SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor).environment)
    }
  }

  /// Returns the keys of wanted rows outside the catalog, selected by their keys and the lengths of
  /// their values.
  package static func keys(
    _ environment: Environment, where isWanted: (_ key: [UInt8], _ valueLength: Int) -> Bool
  ) async throws -> [[UInt8]] {
    try await withEngine(environment) { engine in
      var keys: [[UInt8]] = []
      // A cursor stays in its shard, so each family has one of its own.
      for family in 1..<8 as Range<UInt32> {
        var (lower, upper): ([UInt8], [UInt8]) = ([], [])
        lower.appendBigEndian(family << 12)
        upper.appendBigEndian((family + 1) << 12)
        var cursor = try engine.snapshot().cursor(from: lower, to: upper)
        try cursor.seekToFirst()
        while cursor.isValid {
          let key = cursor.key.array
          if isWanted(key, try cursor.value.byteCount) { keys.append(key) }
          try cursor.next()
        }
      }
      return keys
    }
  }

  /// Removes a row.
  package static func remove(_ key: [UInt8], _ environment: Environment) async throws {
    try await withEngine(environment) { engine in
      var batch = Batch()
      batch.delete(key.bytes)
      _ = try await engine.commit(batch, durability: .power)
    }
  }

  private static func withEngine<Success>(
    _ environment: Environment, _ body: (Engine) async throws -> Success
  ) async throws -> Success {
    let engine = try await Engine.open(
      at: DocumentSubject.path, options: EngineOptions(), environment: environment)
    let result = try await body(engine)
    try await engine.close()
    return result
  }
}
