// The documents' suite: the same documents and questions for Ondol, GRDB and SQLite's JSON, side by
// side, through the interface an app would use. The program starts itself once per engine and run,
// engines taking turns. `Scripts/bench --suite documents` builds and starts it.

import ArgumentParser
import BenchmarkKit
import Foundation
import Peers

@main
struct DocumentBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite documents",
    abstract: "Writes and asks for the same documents with Ondol and its peers, and compares.")

  @Flag(help: "100,000 documents, two runs and fewer operations.")
  var quick = false

  @Option(help: "How many documents to write. 1,000,000, or 100,000 with --quick.")
  var documents: Int?

  @Option(help: "Runs per engine: 3, or 2 with --quick. Fewer than three make no real median.")
  var runs: Int?

  @Option(
    name: .customLong("engines"), help: "Engines to run, with commas between; all by default.")
  var engineNames: String?

  @Option(name: .customLong("workloads"), help: "Workloads to run, with commas between.")
  var workloadNames: String?

  @Option(help: "Where to write the rows as JSON.")
  var json: String?

  @Option(help: "Where databases are made and removed; on the device to be measured.")
  var directory = ".build-bench/databases"

  @Option(help: "Passes over each kind of read in a run; many of them help a profiler.")
  var passes: Int?

  @Option(help: .hidden)
  var child: String?

  /// What a child process is to do.
  struct ChildTask: Codable {
    var engine: String
    var plan: Plan
    var directory: String
  }

  func validate() throws {
    guard runs ?? 1 >= 1, documents ?? 10_000 >= 10_000, passes ?? 1 >= 1 else {
      throw ValidationError("Runs and passes begin at 1, and documents at 10,000.")
    }
    _ = try (workloads(), chosenEngines())
  }

  func run() async throws {
    if let child {
      let task = try JSONDecoder().decode(ChildTask.self, from: Data(child.utf8))
      return try await perform(task)
    }
    var plan = Plan(
      documents: documents ?? (quick ? 100_000 : 1_000_000), workloads: try workloads(),
      quick: quick)
    plan.passes = passes ?? plan.passes
    let report = try compare(plan)
    print(report.table())
    if let json { try report.json().write(to: URL(fileURLWithPath: json)) }
    if !report.errors.isEmpty { throw ExitCode.failure }
  }

  /// Runs every engine, one after the other, as many times as asked.
  private func compare(_ plan: Plan) throws -> Report {
    let runs = runs ?? (quick ? 2 : 3)
    let expected = Queries(plan).expected(plan)
    var report = Report(plan: plan, runs: runs)
    for round in 1...runs {
      for engine in try chosenEngines() {
        progress("run \(round) of \(runs): \(engine.name)")
        do {
          let place = directory + "/" + engine.name
          let result = try inFreshDirectory(place) { place in
            try runChild(
              ChildTask(engine: engine.name, plan: plan, directory: place), named: engine.name,
              as: RunResult.self)
          }
          report.errors += result.measurements.compactMap { measurement in
            guard let found = measurement.checksum, found != expected[measurement.workload] else {
              return nil
            }
            return "\(engine.name): \(measurement.workload.rawValue): read other documents than "
              + "were written"
          }
          report.results.append(result)
        } catch {
          report.errors.append("\(error)")
        }
      }
    }
    progress("")
    return report
  }

  /// The child's side.
  private func perform(_ task: ChildTask) async throws {
    guard let type = stores.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    let result = try await DocumentRun.perform(type, task.plan, in: task.directory)
    try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(result))
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

  private func chosenEngines() throws -> [any DocumentStore.Type] {
    guard let engineNames else { return stores }
    return try engineNames.split(separator: ",").map { name in
      let wanted = name.trimmingCharacters(in: .whitespaces).lowercased()
      guard let store = stores.first(where: { $0.name.lowercased() == wanted }) else {
        let known = stores.map { $0.name }.joined(separator: ", ")
        throw ValidationError("This build has no engine called \(name). It has: \(known).")
      }
      return store
    }
  }
}

/// The engines of this build, in the order of the table.
private let stores: [any DocumentStore.Type] = {
  var stores: [any DocumentStore.Type] = [OndolStore.self]
  #if PEER_GRDB
    stores.append(GRDBStore.self)
  #endif
  #if PEER_SQLITE
    stores.append(SQLiteJSONStore.self)
  #endif
  return stores
}()
