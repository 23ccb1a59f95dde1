// One run of one engine, in a process of its own: load, settle, close, weigh, reopen, read, write.
// Only the engine's own calls are inside the clock; keys and values are made before it starts. What
// a read gives is summed inside the clock, by the same function for every engine.

import CPeers
import Foundation
import Peers

struct EngineRun {
  private let plan: Plan
  private let dataset: Dataset
  private let queries: Queries
  private let directory: String
  private var measurements: [Measurement] = []
  private var settleSeconds = 0.0

  /// Runs `plan` on an engine, in a directory that is empty.
  ///
  /// It leaves the main thread, which would make each change of actors dear.
  @concurrent
  static func perform(
    _ type: any KeyValueEngine.Type, _ plan: Plan, in directory: String
  ) async throws -> RunResult {
    var run = EngineRun(plan, directory)
    try await run.load(type)
    run.weigh()
    try await run.reopen(type)
    try await run.read(type)
    try await run.write(type)
    return RunResult(
      engine: type.name, version: type.version, settings: type.settings,
      measurements: run.measurements, settleSeconds: run.settleSeconds)
  }

  private init(_ plan: Plan, _ directory: String) {
    self.plan = plan
    self.directory = directory
    dataset = Dataset(valueLength: plan.valueLength)
    queries = Queries(plan, dataset)
  }

  private func open(
    _ type: any KeyValueEngine.Type, _ durability: CommitDurability
  ) async throws -> any KeyValueEngine {
    try await type.open(
      OpenOptions(directory: directory, cacheBytes: Plan.cacheBytes, durability: durability))
  }

  private mutating func note(
    _ workload: Workload, _ value: Double, checksum: UInt64? = nil, slowest: Double? = nil
  ) {
    guard plan.includes(workload) else { return }
    measurements.append(
      Measurement(
        workload: workload, value: value, slowestHundredth: slowest, checksum: checksum))
  }

  /// Loads, settles and closes; then lets the system write out what it holds, for every engine
  /// alike.
  private mutating func load(_ type: any KeyValueEngine.Type) async throws {
    let engine = try await open(type, .process)
    var batch = RowList(valueLength: plan.valueLength)
    var nanoseconds: UInt64 = 0
    for first in stride(from: 0, to: plan.documents, by: plan.documentsPerBatch) {
      batch.removeAll()
      for number in first..<min(first + plan.documentsPerBatch, plan.documents) {
        batch.append(number, of: dataset)
      }
      let start = peer_now()
      try await engine.write(batch)
      nanoseconds += peer_now() - start
    }
    let start = peer_now()
    try await engine.settle()
    settleSeconds = Double(peer_now() - start) / 1e9

    let scan = try await engine.scan()
    guard scan.count == UInt64(plan.documents) else {
      throw PeerError(type.name, "load", "\(scan.count) documents instead of \(plan.documents)")
    }
    try await engine.close()
    writeOutEverything()
    note(.load, Double(plan.documents) / Double(nanoseconds) * 1e9, checksum: scan.checksum)
  }

  /// Weighs the settled, closed database.
  private mutating func weigh() {
    note(.size, Double(allocatedBytes(below: directory)) / 1e6)
  }

  /// Opens the closed database and answers one get; its pages are in the system's cache.
  private mutating func reopen(_ type: any KeyValueEngine.Type) async throws {
    guard plan.includes(.reopen) else { return }
    var times: [Double] = []
    var checksums: [UInt64] = []
    for key in queries.reopens {
      let start = peer_now()
      let engine = try await open(type, .process)
      checksums.append(try await engine.get(key))
      times.append(Double(peer_now() - start) / 1e6)
      try await engine.close()
    }
    note(.reopen, median(times), checksum: fold(checksums))
  }

  private mutating func read(_ type: any KeyValueEngine.Type) async throws {
    let engine = try await open(type, .process)
    try await warm(engine)
    try await measure(.getUniform, queries.uniform, perPass: plan.getsPerPass) {
      try await engine.get($0)
    }
    if plan.includes(.getHot) { _ = try await engine.get(queries.hot[0]) }
    try await measure(.getHot, queries.hot, perPass: plan.hotGetsPerPass) {
      try await engine.get($0)
    }
    try await measure(
      .fullScan, Array(repeating: KeyList(), count: plan.scans), perPass: plan.documents
    ) { _ in try await engine.scan().checksum }
    try await measure(.seek, queries.seeks, perPass: plan.seeksPerPass * 1_000) {
      try await engine.seek($0, limit: Plan.rowsPerSeek)
    }
    try await engine.close()
  }

  /// Fills the engine's cache: every row once, then some of them again in random order.
  private func warm(_ engine: any KeyValueEngine) async throws {
    _ = try await engine.scan()
    _ = try await engine.get(queries.warming)
  }

  /// Times `passes` and notes the median pass, per operation.
  private mutating func measure(
    _ workload: Workload, _ passes: [KeyList], perPass: Int,
    _ body: (KeyList) async throws -> UInt64
  ) async throws {
    guard plan.includes(workload) else { return }
    var times: [Double] = []
    var checksums: [UInt64] = []
    for pass in passes {
      let start = peer_now()
      checksums.append(try await body(pass))
      times.append(Double(peer_now() - start) / Double(perPass))
    }
    note(workload, median(times), checksum: fold(checksums))
  }

  /// New documents, one commit each, into the settled database; then reads them back.
  private mutating func write(_ type: any KeyValueEngine.Type) async throws {
    for (workload, durability, numbers) in [
      (Workload.putProcess, CommitDurability.process, queries.putsProcess),
      (Workload.putPower, CommitDurability.power, queries.putsPower),
    ] where plan.includes(workload) {
      var rows = RowList(valueLength: plan.valueLength)
      for number in numbers { rows.append(number, of: dataset) }
      let engine = try await open(type, durability)
      try await warm(engine)
      let times = try await engine.writeEach(rows).map { Double($0) / 1e3 }.sorted()
      // Unsynced, what matters is the whole cost, flushes and merges included; synced, the device's
      // outliers would hide the engine, so it is the median commit.
      let mean = times.reduce(0, +) / Double(times.count)
      note(
        workload, durability == .process ? mean : median(times),
        checksum: fold([try await engine.get(rows.keys)]),
        slowest: times[times.count * 99 / 100])
      try await engine.close()
    }
  }
}
