// The PostgreSQL suite: a database on a server, one in files, and the same work in handwritten SQL.
// The program starts itself once for each engine and run, each with a server of its own, and once
// for each process that reads or writes beside it. `Scripts/bench --suite postgres` builds it.

import ArgumentParser
import BenchmarkKit
import Peers

@main
struct PostgresBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite postgres", abstract: "Measures a database on PostgreSQL.")

  @OptionGroup var options: SuiteOptions

  func run() async throws {
    if let task = try options.childTask(of: Plan.self) { return try await perform(task) }
    var plan = Plan(
      documents: options.documentCount(usually: 100_000, quick: 20_000),
      workloads: try options.workloads() ?? Workload.allCases, quick: options.quick)
    plan.passes = options.passes ?? plan.passes
    let documents = plan.documents
    var report = SuiteReport(
      "postgres", plan.workloads, runs: options.runCount, documents: { _ in documents },
      valueSize: { _ in 1_024 })
    report.heading = ["\(documents) documents of about 1 KB with three indexes."]
    options.takeTurns(
      try options.engines(of: engines) { $0.name }.map { $0.name }, plan, into: &report)
    for workload in plan.workloads
    where Set(report.results.compactMap { $0.checksums[workload.rawValue] }).count > 1 {
      report.errors.append("\(workload.rawValue): engines read different documents")
    }
    try options.tell(report)
  }

  /// Runs the child's task.
  private func perform(_ task: SuiteTask<Plan>) async throws {
    guard let type = engines.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    if let role = task.plan.role {
      let place = PostgresRun.place(task.plan.server, task.directory)
      return try await HelperRun(plan: task.plan, place: place).run(type, role)
    }
    try options.tell(try await PostgresRun(task).measure(type))
  }
}

private let engines: [any Contender.Type] = [
  OndolOnServer.self, OndolInFiles.self, SQLByHand.self,
]
