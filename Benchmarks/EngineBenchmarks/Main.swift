// The engine suite: the same work on every engine, side by side. The program starts itself once per
// engine and run, engines taking turns (A B C A B C), so that none profits from another's memory or
// from a quiet minute, and then compares medians. `Scripts/bench` builds and starts it.

import ArgumentParser
import Foundation
import Peers

/// The engines of this build, in the order of the table.
private let engines: [any KeyValueEngine.Type] = {
  var engines: [any KeyValueEngine.Type] = [OndolEngineAdapter.self]
  #if PEER_LMDB
    engines.append(LMDBEngine.self)
  #endif
  #if PEER_LEVELDB
    engines.append(LevelDBEngine.self)
  #endif
  #if PEER_ROCKSDB
    engines.append(RocksDBEngine.self)
  #endif
  #if PEER_SQLITE
    engines.append(SQLiteEngine.self)
  #endif
  #if PEER_WIREDTIGER
    engines.append(WiredTigerEngine.self)
  #endif
  return engines
}()

@main
struct EngineBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite engine",
    abstract: "Runs the same work on Ondol's engine and its peers and compares them.")

  @Flag(help: "100,000 documents and fewer operations: under a minute for all.")
  var quick = false

  @Option(help: "How many documents to load. 1,000,000, or 100,000 with --quick.")
  var documents: Int?

  @Option(help: "Bytes in a document.")
  var valueSize = 400

  @Option(help: "Runs per engine, at least three for a median worth the name.")
  var runs = 3

  @Option(
    name: .customLong("engines"), help: "Engines to run, with commas between; all by default.")
  var engineNames: String?

  @Option(name: .customLong("workloads"), help: "Workloads to run, with commas between.")
  var workloadNames: String?

  @Option(help: "Where to write the rows as JSON.")
  var json: String?

  @Option(help: "Where databases are made and removed; on the device to be measured.")
  var directory = ".build-bench/databases"

  @Option(help: "Passes over each read workload in a run; many of them help a profiler.")
  var passes: Int?

  @Option(help: .hidden)
  var child: String?

  func validate() throws {
    guard runs >= 1, valueSize >= 16, documents ?? 1 >= 1, passes ?? 1 >= 1 else {
      throw ValidationError(
        "Runs, passes and documents begin at 1, and a document has 16 bytes or more.")
    }
    _ = try (workloads(), chosenEngines())
  }

  func run() async throws {
    var plan = Plan(
      documents: documents ?? (quick ? 100_000 : 1_000_000), valueLength: valueSize,
      workloads: try workloads(), quick: quick)
    plan.passes = passes ?? plan.passes
    if let child {
      guard let engine = engines.first(where: { $0.name == child }) else {
        throw ValidationError("No engine is called \(child).")
      }
      let result = try await EngineRun.perform(engine, plan, in: directory)
      try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(result))
      return
    }
    let comparison = Comparison(
      plan: plan, engines: try chosenEngines().map { $0.name }, runs: runs, directory: directory)
    let report = try await comparison.perform(
      childArguments: [
        "--value-size", "\(valueSize)", "--documents", "\(plan.documents)",
        "--passes", "\(plan.passes)",
      ]
        + (quick ? ["--quick"] : [])
        + ["--workloads", plan.workloads.map(\.rawValue).joined(separator: ",")])
    print(report.table())
    if let json {
      try report.json().write(to: URL(fileURLWithPath: json))
    }
    if !report.errors.isEmpty {
      throw ExitCode.failure
    }
  }

  private func workloads() throws -> [Workload] {
    guard let workloadNames else { return Workload.allCases }
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
