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

  @OptionGroup var options: SuiteOptions

  /// What a child process is to do.
  struct ChildTask: Codable {
    var engine: String
    var plan: Plan
    var directory: String
  }

  func validate() throws {
    guard options.documentCount >= 10_000 else {
      throw ValidationError("Documents begin at 10,000.")
    }
    _ = try (workloads(), chosenStores())
  }

  func run() async throws {
    if let child = options.child {
      let task = try JSONDecoder().decode(ChildTask.self, from: Data(child.utf8))
      return try await perform(task)
    }
    var plan = Plan(
      documents: options.documentCount, workloads: try workloads(), quick: options.quick)
    plan.passes = options.passes ?? plan.passes
    let report = try compare(plan)
    try options.tell(report.table(), rows: report.json(), report.errors)
  }

  /// Runs every engine, one after the other, as many times as asked.
  private func compare(_ plan: Plan) throws -> Report {
    let runs = options.runCount
    let expected = Queries(plan).expected(plan)
    var report = Report(plan: plan, runs: runs)
    for round in 1...runs {
      for engine in try chosenStores() {
        progress("run \(round) of \(runs): \(engine.name)")
        do {
          let place = options.directory + "/" + engine.name
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
    try options.workloads() ?? Workload.allCases
  }

  private func chosenStores() throws -> [any DocumentStore.Type] {
    try options.engines(of: stores) { $0.name }
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
