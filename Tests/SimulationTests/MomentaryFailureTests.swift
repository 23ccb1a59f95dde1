// One failure at any operation: no descriptor is free, the disk is full for a moment, a sync fails.
// After a temporary failure the database continues writing by itself. A failed sync cannot be
// undone. It ends writing permanently with an error, and no later acknowledgement depends on data
// that the device may lack.

import OndolEngine
import OndolTestKit
import Testing

/// A kind of failure.
private enum Mishap: String, CaseIterable {
  case noDescriptor
  case noSpace
  case failedSync
  case failedDirectorySync

  func fault(from operation: Int) -> Fault {
    switch self {
    case .noDescriptor: Fault(failing: [.open, .create], from: operation, errno: 24)
    case .noSpace: Fault(failing: [.create, .reserve], from: operation, errno: 28)
    case .failedSync: Fault(failing: [.sync], from: operation, errno: 5)
    case .failedDirectorySync: Fault(failing: [.syncDirectory], from: operation, errno: 5)
    }
  }

  var isPassing: Bool { self == .noDescriptor || self == .noSpace }
}

private func open(
  _ fileSystem: SimulatedFileSystem, _ executor: SimulationExecutor
) async throws(EngineError) -> Engine {
  var options = EngineOptions()
  options.shardCount = 1
  options.memtableSize = 4 << 10
  options.logSize = 8 << 10
  options.firstPrewrittenSize = 4 << 10
  options.manifestSize = 1 << 10
  options.inlineContentSize = 16
  options.packSize = 2 << 10
  options.smallShardSize = 0
  options.runLimit = 2
  let world = SimulatedWorld(fileSystem: fileSystem, seed: 1, threads: executor)
  return try await Engine.open(at: "/db", options: options, environment: world.environment)
}

private func key(_ number: Int) -> [UInt8] { [0, 0, 0x10, 0, UInt8(number)] }

/// The result of a life with a failure.
private struct Outcome {
  var acknowledged: [Int] = []
  /// The errors of the last attempts, nil for success.
  var last: [EngineError?] = []
  /// Whether a commit was acknowledged after writing had ended.
  var wentOnAfterEnd = false
  var operations = 0
  var struck: String?
}

private struct Life {
  let fileSystem: SimulatedFileSystem
  let executor: SimulationExecutor
  var outcome = Outcome()

  /// Numbers of the last commits, which come long after the failure.
  private static let last = 40..<44

  mutating func run() async throws -> Outcome {
    // Twice, because the first commit in a new database takes another way than one in an older
    // database.
    let first = try await openInTheEnd()
    _ = await commit(Self.last.upperBound, to: first)
    try? await executor.waiting(for: "close") { try await first.close() }
    let engine = try await openInTheEnd()
    var hasEnded = false
    for number in 0..<Self.last.upperBound {
      if number == 12 { try? await engine.flush() }
      if number == 20 { try? await engine.compact() }
      if number % 5 == 0 { await store(number, engine, &hasEnded) }
      let error = await commit(number, to: engine)
      if error == nil, hasEnded { outcome.wentOnAfterEnd = true }
      if case .poisoned? = error { hasEnded = true }
      if Self.last.contains(number) { outcome.last.append(error) }
    }
    outcome.struck = fileSystem.struck
    outcome.operations = fileSystem.operations
    try? await executor.waiting(for: "close") { try await engine.close() }
    return outcome
  }

  private func openInTheEnd() async throws -> Engine {
    do throws(EngineError) {
      return try await open(fileSystem, executor)
    } catch {
      // The failure is over.
      return try await open(fileSystem, executor)
    }
  }

  private mutating func commit(_ number: Int, to engine: Engine) async -> EngineError? {
    var batch = Batch()
    batch.put(key(number).bytes, [UInt8](repeating: UInt8(number), count: 200).bytes)
    let durability: Durability = number % 3 == 0 ? .process : .power
    do throws(EngineError) {
      _ = try await executor.waiting(for: "commit \(number)") { () throws(EngineError) in
        try await engine.commit(batch, durability: durability)
      }
      if durability == .power { outcome.acknowledged.append(number) }
      return nil
    } catch {
      return error
    }
  }

  /// Stores a content, whose pack may be a new one.
  private mutating func store(_ number: Int, _ engine: Engine, _ hasEnded: inout Bool) async {
    let bytes = [UInt8](repeating: UInt8(number), count: 900)
    do throws(EngineError) {
      let location = try await engine.contents.append(
        bytes, digest: [UInt8](repeating: UInt8(number), count: 32))
      engine.contents.decide(location)
      if hasEnded { outcome.wentOnAfterEnd = true }
    } catch {
      if fileSystem.struck?.hasPrefix("syncDirectory") == true { hasEnded = true }
    }
  }
}

@Suite struct `A failure of a moment` {
  @Test(arguments: Mishap.allCases)
  fileprivate func `passes, or ends writing for good and says so`(mishap: Mishap) throws {
    let whole = try live(on: SimulatedFileSystem())
    #expect(whole.acknowledged.count > 25 && whole.last.allSatisfy { $0 == nil })
    var struck: Set<String> = []
    for operation in 0..<whole.operations {
      let place = "\(mishap.rawValue) from operation \(operation) on"
      let fileSystem = SimulatedFileSystem()
      fileSystem.inject([mishap.fault(from: operation)])
      let outcome: Outcome
      do {
        outcome = try live(on: fileSystem)
      } catch {
        Issue.record("\(place), \(fileSystem.struck ?? "nothing"): \(error)")
        return
      }
      if let name = outcome.struck { struck.insert(name) }
      let what = "\(place), \(outcome.struck ?? "nothing"): \(outcome.last)"
      #expect(!outcome.wentOnAfterEnd, "\(what)")
      if mishap.isPassing {
        #expect(outcome.last.allSatisfy { $0 == nil }, "\(what)")
      }
      try look(at: fileSystem.crash(seed: UInt64(operation)), outcome, what)
    }
    #expect(!struck.isEmpty)
  }

  private func live(on fileSystem: SimulatedFileSystem) throws -> Outcome {
    try SimulationExecutor.run(seed: 7) { executor in
      var life = Life(fileSystem: fileSystem, executor: executor)
      return try await life.run()
    }
  }

  /// An acknowledged commit survives a power cut, and the database can be written again.
  private func look(at left: SimulatedFileSystem, _ outcome: Outcome, _ what: String) throws {
    let missing = try SimulationExecutor.run(seed: 7) { executor in
      let engine = try await open(left, executor)
      var missing: [Int] = []
      for number in outcome.acknowledged
      where try await engine.snapshot().get(key(number))?.count != 200 {
        missing.append(number)
      }
      var batch = Batch()
      batch.put(key(99).bytes, [1].bytes)
      _ = try await engine.commit(batch, durability: .power)
      try await engine.close()
      return missing
    }
    #expect(missing.isEmpty, "\(what)")
  }
}
