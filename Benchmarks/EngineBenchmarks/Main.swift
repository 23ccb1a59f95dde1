// The engine suite: the same work on every engine, side by side. The program starts itself once per
// engine, run and phase, engines taking turns (A B C A B C), so that none profits from another's
// memory or from a quiet minute, and then compares medians. `Scripts/bench` builds and starts it.

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

  @Flag(help: "100,000 documents, two runs and fewer operations: about a minute for all.")
  var quick = false

  @Option(help: "How many documents to load. 1,000,000, or 100,000 with --quick.")
  var documents: Int?

  @Option(help: "Bytes in a document.")
  var valueSize = 400

  @Option(help: "In which order documents arrive: random, sequential or clustered.")
  var keyOrder = KeyOrder.random

  @Option(help: "The share of gets (0 to 1) in the workload 'mixed', which is left out otherwise.")
  var mix: Double?

  @Option(help: "Runs per engine: 3, or 2 with --quick. Fewer than three make no real median.")
  var runs: Int?

  @Option(
    name: .customLong("engines"), help: "Engines to run, with commas between; all by default.")
  var engineNames: String?

  @Option(name: .customLong("workloads"), help: "Workloads to run, with commas between.")
  var workloadNames: String?

  @Option(help: "Instead of the workloads, write for so many seconds and tell the stalls.")
  var sustained: Double?

  @Option(help: "Where to write the rows as JSON.")
  var json: String?

  @Option(help: "Where databases are made and removed; on the device to be measured.")
  var directory = ".build-bench/databases"

  @Option(help: "Passes over each read workload in a run; many of them help a profiler.")
  var passes: Int?

  @Option(help: .hidden)
  var child: String?

  func validate() throws {
    guard runs ?? 1 >= 1, valueSize >= 16, documents ?? 1 >= 1, passes ?? 1 >= 1 else {
      throw ValidationError(
        "Runs, passes and documents begin at 1, and a document has 16 bytes or more.")
    }
    guard (0...1).contains(mix ?? 0), sustained ?? 1 > 0 else {
      throw ValidationError("A mix is from 0 to 1, and a time is more than nothing.")
    }
    let chosen = try (workloads: workloads(), engines: chosenEngines())
    if chosen.workloads.contains(.mixed), mix == nil {
      throw ValidationError("The workload 'mixed' needs --mix.")
    }
  }

  func run() async throws {
    if let child {
      let task = try JSONDecoder().decode(ChildTask.self, from: Data(child.utf8))
      return try await perform(task)
    }
    var plan = Plan(
      documents: documents ?? (quick ? 100_000 : 1_000_000), valueLength: valueSize,
      keyOrder: keyOrder, workloads: try workloads(), readFraction: mix, quick: quick)
    plan.passes = passes ?? plan.passes
    plan.sustainedSeconds = sustained ?? 0
    let comparison = Comparison(
      plan: plan, engines: try chosenEngines().map { $0.name }, runs: runs ?? (quick ? 2 : 3),
      directory: directory)
    if sustained == nil {
      let report = try comparison.perform()
      try tell(report.table(), rows: report.json(), report.errors)
    } else {
      let report = try comparison.sustain()
      try tell(report.table(), rows: report.json(), report.errors)
    }
  }

  private func tell(_ table: String, rows: Data, _ errors: [String]) throws {
    print(table)
    if let json { try rows.write(to: URL(fileURLWithPath: json)) }
    if !errors.isEmpty { throw ExitCode.failure }
  }

  /// The child's side.
  private func perform(_ task: ChildTask) async throws {
    guard let type = engines.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    let result: RunResult
    if let phase = task.phase {
      result = try await EngineRun.perform(phase, type, task.plan, in: task.directory)
    } else {
      result = try await EngineRun.sustain(
        type, task.plan, documentsPerWrite: task.sustainedDocumentsPerWrite ?? 1,
        in: task.directory)
    }
    try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(result))
    // The way a killed process ends: nothing is closed.
    if task.phase == .crash { _exit(0) }
  }

  private func workloads() throws -> [Workload] {
    guard let workloadNames else {
      return Workload.allCases.filter { $0 != .mixed || mix != nil }
    }
    return try workloadNames.split(separator: ",").map { name in
      guard let workload = Workload(rawValue: name.trimmingCharacters(in: .whitespaces)) else {
        let known = Workload.allCases.map(\.rawValue).joined(separator: ", ")
        throw ValidationError("No workload is called \(name). There are: \(known).")
      }
      return workload
    }
  }

  private func chosenEngines() throws -> [any KeyValueEngine.Type] {
    guard let engineNames else { return engines }
    return try engineNames.split(separator: ",").map { name in
      let wanted = name.trimmingCharacters(in: .whitespaces).lowercased()
      guard let engine = engines.first(where: { $0.name.lowercased() == wanted }) else {
        let known = engines.map { $0.name }.joined(separator: ", ")
        throw ValidationError("This build has no engine called \(name). It has: \(known).")
      }
      return engine
    }
  }
}

/// The engines of this build, in the order of the table.
private let engines: [any KeyValueEngine.Type] = {
  var engines: [any KeyValueEngine.Type] = [OndolEngineAdapter.self]
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
    engines.append(SQLiteEngine.self)
  #endif
  #if PEER_WIREDTIGER
    engines.append(WiredTigerEngine.self)
  #endif
  return engines
}()
