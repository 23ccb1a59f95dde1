// One phase of one engine's run, in a process of its own. The clock covers only the engine's own
// calls; keys and values exist before it starts. The results of reads are summed inside the timed
// part, by the same function for every engine. The files beside this one have the phases.

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
  /// The memory of the process before it opens anything.
  let memoryAtStart: ProcessMemory?
  var result: RunResult

  /// Runs `phase` of `plan` on an engine.
  ///
  /// This leaves the main thread, on which each change of actors would be expensive.
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

  /// Fills the engine's cache: it reads every row once, then some again in random order.
  func warm(_ engine: any KeyValueEngine) async throws {
    _ = try await engine.scan()
    _ = try await engine.get(queries.warming)
  }

  /// Returns rows by their documents' numbers.
  func rows(_ numbers: some Sequence<Int>, version: Int = 0) -> RowList {
    var rows = RowList(valueLength: plan.valueLength)
    for number in numbers { rows.append(number, version: version, of: dataset) }
    return rows
  }

  // MARK: - Recording

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

  /// Records how much memory the process has gained since before it opened anything.
  mutating func noteMemory(_ workload: Workload, _ amount: (ProcessMemory) -> Int) {
    guard let before = memoryAtStart, let now = ProcessMemory.current() else { return }
    note(workload, Double(max(amount(now) - before.residentBytes, 0)) / 1e6)
  }

  /// Times `passes` and records the median pass, per operation. Then it times keys one by one, or
  /// in groups if a get takes less than a microsecond.
  ///
  /// - Parameters:
  ///   - perPass: the divisor of the time of a pass, in nanoseconds.
  ///   - single: the keys to time one by one; the keys of the first pass for nil.
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
    // Without keys, it is a pass over all documents.
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

  /// Fails the run if an engine did not read what was written.
  func require(_ found: UInt64, is wanted: UInt64, _ workload: Workload) throws {
    guard found == wanted else {
      throw PeerError(type.name, workload.rawValue, "read other bytes than were written")
    }
  }
}
