// The engine suite: the same work on every engine, side by side. The program starts itself once for
// each engine, run and phase, and the engines take turns (A B C A B C), so that none profits from
// another's memory or from a quiet minute. Then it compares medians. `Scripts/bench` builds and
// starts it.

import BenchmarkKit
import ArgumentParser
import Foundation
import Peers

extension KeyOrder: ExpressibleByArgument {}

@main
struct EngineBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite engine",
    abstract: "Runs the same work on Ondol's engine and its peers and compares them.")

  @OptionGroup var options: SuiteOptions

  @Option(help: "Bytes in a document.")
  var valueSize = 400

  @Option(help: "The order in which documents arrive: random, sequential or clustered.")
  var keyOrder = KeyOrder.random

  @Option(help: "The share of gets (0 to 1) in the workload 'mixed', which needs this option.")
  var mix: Double?

  @Option(help: "Instead of the workloads, write for this many seconds and report the stalls.")
  var sustained: Double?

  @Flag(help: "Instead of the workloads, load very many documents and measure that.")
  var scale = false

  @Flag(help: "Instead of the engines, compare encrypted Ondol with plain Ondol and SQLCipher.")
  var encryption = false

  func validate() throws {
    guard valueSize >= 16 else {
      throw ValidationError("A document must have at least 16 bytes.")
    }
    guard (0...1).contains(mix ?? 0), sustained ?? 1 > 0 else {
      throw ValidationError("A mix must be from 0 to 1, and a time above 0.")
    }
    // The scale suite has workloads of its own, and finds them itself.
    if scale { return }
    let chosen = try (workloads: workloads(), engines: chosenEngines())
    if chosen.workloads.contains(.mixed), mix == nil {
      throw ValidationError("The workload 'mixed' needs --mix.")
    }
  }

  func run() async throws {
    if let task = try? options.childTask(of: ScalePlan.self) {
      return try options.tell(try await ScaleRun.perform(task, try chosenEngines()))
    }
    if scale { return try tellScale() }
    if let child = options.child {
      let task = try JSONDecoder().decode(ChildTask.self, from: Data(child.utf8))
      return try await perform(task)
    }
    var plan = Plan(
      documents: options.documentCount, valueLength: valueSize, keyOrder: keyOrder,
      workloads: try workloads(), readFraction: mix, quick: options.quick)
    plan.passes = options.passes ?? plan.passes
    plan.sustainedSeconds = sustained ?? 0
    plan.comparesSealed = encryption
    let comparison = Comparison(
      plan: plan, engines: try chosenEngines().map { $0.name }, runs: options.runCount,
      directory: options.directory)
    if sustained == nil {
      let report = try comparison.perform()
      try options.tell(report.table(), rows: report.json(), report.errors)
    } else {
      let report = try comparison.sustain()
      try options.tell(report.table(), rows: report.json(), report.errors)
    }
  }

  /// Runs the child's task.
  private func perform(_ task: ChildTask) async throws {
    let all = engines + encryptingEngines
    guard let type = all.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    let result: RunResult
    if let phase = task.phase {
      result = try await EngineRun.perform(phase, type, task.plan, in: task.directory)
    } else if let shape = task.sustained {
      result = try await EngineRun.sustain(type, task.plan, shape, in: task.directory)
    } else {
      throw ValidationError("There is nothing to do.")
    }
    try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(result))
    // Like a killed process, it closes nothing.
    if task.phase == .crash { _exit(0) }
  }

  /// The scale suite: the engines with a mode in which one cache is all their memory.
  private func tellScale() throws {
    let names = try chosenEngines().map { $0.name }.filter { ScaleRun.engines.contains($0) }
    let plan = ScalePlan(
      documents: options.documentCount(usually: 100_000_000, quick: 1_000_000),
      gets: options.quick ? 20_000 : 200_000)
    var report = SuiteReport(
      "scale", try options.workloads() ?? ScaleWorkload.allCases, runs: options.scaleRunCount,
      documents: { plan.documents(of: $0.valueLength) }, valueSize: { $0.valueLength })
    options.takeTurns(names, plan, into: &report)
    try options.tell(report)
  }

  private func workloads() throws -> [Workload] {
    let usual = Workload.allCases.filter {
      encryption ? $0.sealedFactor != nil : $0 != .mixed || mix != nil
    }
    return try options.workloads() ?? usual
  }

  private func chosenEngines() throws -> [any KeyValueEngine.Type] {
    try options.engines(of: encryption ? encryptingEngines : engines) { $0.name }
  }
}

/// The engines of this build, in the order of the table.
private let engines: [any KeyValueEngine.Type] = {
  var engines: [any KeyValueEngine.Type] = [OndolEngineAdapter<ClearFiles>.self]
  #if PEER_LMDB
    engines.append(LMDBEngine.self)
  #endif
  #if PEER_LEVELDB
    engines.append(LogStructuredEngine<LevelDB>.self)
  #endif
  #if PEER_ROCKSDB
    engines.append(LogStructuredEngine<RocksDB>.self)
  #endif
  #if PEER_SQLITE
    engines.append(SQLiteEngine<SQLite>.self)
  #endif
  #if PEER_WIREDTIGER
    engines.append(WiredTigerEngine.self)
  #endif
  return engines
}()

/// The measurement of encryption: its cost for Ondol, and the peers beside it.
private let encryptingEngines: [any KeyValueEngine.Type] = {
  var engines: [any KeyValueEngine.Type] = [
    OndolEngineAdapter<ClearFiles>.self, OndolEngineAdapter<SealedFiles>.self,
    OndolEngineAdapter<KeyedFiles>.self,
  ]
  #if PEER_SQLCIPHER && PEER_SQLITE
    engines.append(SQLiteEngine<SQLCipher>.self)
  #endif
  return engines
}()
