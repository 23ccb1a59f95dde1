// The documents' suite: the same documents and queries for Ondol, GRDB and SQLite's JSON, side by
// side, through the interface that an app would use. The program starts itself once for each engine
// and run, and the engines take turns. `Scripts/bench --suite documents` builds and starts it.

import ArgumentParser
import BenchmarkKit
import Foundation
import Peers

@main
struct DocumentBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite documents",
    abstract: "Writes and queries the same documents with Ondol and its peers, and compares them.")

  @OptionGroup var options: SuiteOptions

  func validate() throws {
    guard options.documentCount >= 10_000 else {
      throw ValidationError("Documents must be at least 10,000.")
    }
    _ = try (workloads(), chosenStores())
  }

  func run() async throws {
    if let task = try options.childTask(of: Plan.self) { return try await perform(task) }
    var plan = Plan(
      documents: options.documentCount, workloads: try workloads(), quick: options.quick)
    plan.passes = options.passes ?? plan.passes
    let expected = Queries(plan).expected(plan)
    var report = SuiteReport(
      "documents", plan.workloads, runs: options.runCount, documents: { plan.count($0) },
      valueSize: { _ in Plan.valueSize })
    report.heading = [
      "\(plan.documents) documents of about 1 KB with ten fields; cache"
        + " \(Plan.cacheBytes >> 30) GiB each."
    ]
    options.takeTurns(try chosenStores().map { $0.name }, plan, into: &report) { result in
      result.checksums.compactMap { name, found in
        guard let workload = Workload(rawValue: name), found != expected[workload] else {
          return nil
        }
        return "\(result.engine): \(name): read other documents than were written"
      }
    }
    try options.tell(report)
  }

  /// Runs the child's task.
  private func perform(_ task: SuiteTask<Plan>) async throws {
    guard let type = stores.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    try options.tell(try await DocumentRun.perform(type, task.plan, in: task.directory))
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
