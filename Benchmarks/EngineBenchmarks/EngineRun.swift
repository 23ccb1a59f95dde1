// One phase of one engine's run, in a process of its own. Only the engine's own calls are inside
// the clock; keys and values are made before it starts. What a read gives is summed inside the
// clock, by the same function for every engine. The phases are in the files beside this one.

import BenchmarkKit
import CPeers
import Foundation
import Peers

struct EngineRun {
  let type: any KeyValueEngine.Type
  let plan: Plan
  let dataset: Dataset
  let queries: Queries
  /// The directory of the run; each database is in one below it.
  let directory: String
  /// The memory of the process before it has opened anything.
  let memoryAtStart: ProcessMemory?
  var result: RunResult

  /// Runs `phase` of `plan` on an engine.
  ///
  /// It leaves the main thread, which would make each change of actors dear.
  @concurrent
  static func perform(
    _ phase: Phase, _ type: any KeyValueEngine.Type, _ plan: Plan, in directory: String
  ) async throws -> RunResult {
    var run = EngineRun(type, plan, directory)
    switch phase {
    case .load: try await run.load()
    case .read: try await run.read()
    case .readLimited: try await run.readLimited()
    case .readEqual: try await run.readEqual()
    case .write: try await run.write()
    case .share: try await run.share()
    case .readSmall: try await run.readSmall()
    case .overwrite: try await run.overwrite()
    case .crash: try await OndolRecovery(run).crash()
    case .recover:
      let milliseconds = try await OndolRecovery(run).recover()
      run.note(.recovery, milliseconds)
    }
    return run.result
  }

  init(_ type: any KeyValueEngine.Type, _ plan: Plan, _ directory: String) {
    self.type = type
    self.plan = plan
    self.directory = directory
    dataset = Dataset(valueLength: plan.valueLength, keyOrder: plan.keyOrder)
    queries = Queries(plan, dataset)
    memoryAtStart = ProcessMemory.current()
    result = RunResult(engine: type.name, version: type.version, settings: type.settings)
  }

  /// The databases of a run, one directory each.
  enum Database: String {
    case main
    case small
    case overwritten
    case sustained
  }

  func path(of database: Database) -> String { directory + "/" + database.rawValue }

  func open(
    _ database: Database = .main, _ durability: CommitDurability = .process,
    cacheBytes: Int = Plan.cacheBytes
  ) async throws -> any KeyValueEngine {
    let path = path(of: database)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return try await type.open(
      OpenOptions(directory: path, cacheBytes: cacheBytes, durability: durability))
  }

  /// Fills the engine's cache: every row once, then some of them again in random order.
  func warm(_ engine: any KeyValueEngine) async throws {
    _ = try await engine.scan()
    _ = try await engine.get(queries.warming)
  }

  /// Rows by their documents' numbers.
  func rows(_ numbers: some Sequence<Int>, version: Int = 0) -> RowList {
    var rows = RowList(valueLength: plan.valueLength)
    for number in numbers { rows.append(number, version: version, of: dataset) }
    return rows
  }

  // MARK: - Noting

  mutating func note(
    _ workload: Workload, _ value: Double, checksum: UInt64? = nil, spread: Spread? = nil,
    attained: Double? = nil
  ) {
    guard plan.includes(workload) else { return }
    result.measurements.append(
      Measurement(
        workload: workload, value: value, spread: spread, checksum: checksum,
        attained: attained))
  }

  /// Notes what the process holds beyond what it held before it opened anything.
  mutating func noteMemory(_ workload: Workload, _ amount: (ProcessMemory) -> Int) {
    guard let before = memoryAtStart, let now = ProcessMemory.current() else { return }
    note(workload, Double(max(amount(now) - before.residentBytes, 0)) / 1e6)
  }

  /// Times `passes` and notes the median pass, per operation; then times keys one by one, or some
  /// together where a get takes less than a microsecond.
  ///
  /// - Parameters:
  ///   - perPass: what the time of a pass is divided by, in nanoseconds.
  ///   - single: the keys that are timed one by one; those of the first pass when nil.
  mutating func measure(
    _ workload: Workload, _ passes: [KeyList], perPass: Int, single: KeyList? = nil,
    _ body: (KeyList) async throws -> UInt64
  ) async throws {
    guard plan.includes(workload), let first = single ?? passes.first else { return }
    var times: [Double] = []
    var checksums: [UInt64] = []
    for pass in passes {
      let start = peer_now()
      checksums.append(try await body(pass))
      times.append(Double(peer_now() - start))
    }
    // Without keys it is a pass over all documents.
    let operations = first.count == 0 ? plan.documents : first.count
    let together = operationsTogether(nanoseconds: median(times) / Double(operations))
    var alone: [Double] = []
    for part in first.parts(of: together) {
      let start = peer_now()
      _ = try await body(part)
      alone.append(Double(peer_now() - start) / 1e3)
    }
    _ = try await Counting.count(workload.rawValue, operations: operations) {
      try await body(first)
    }
    note(
      workload, median(times) / Double(perPass), checksum: fold(checksums),
      spread: Spread(microseconds: alone, together: together))
  }

  /// Fails the run when an engine did not read what was written.
  func require(_ found: UInt64, is wanted: UInt64, _ workload: Workload) throws {
    guard found == wanted else {
      throw PeerError(type.name, workload.rawValue, "read other bytes than were written")
    }
  }
}
