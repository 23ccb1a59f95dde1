// The blob suite: puts and gets of bytes compared with plain files and SQLite. A put returns when
// its bytes are on the device. The program starts itself once for each engine and run.
// `Scripts/bench --suite blobs` builds it.

import ArgumentParser
import BenchmarkKit

@main
struct BlobBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite blobs", abstract: "Puts and gets of small and large blobs.")

  @OptionGroup var options: SuiteOptions

  func run() async throws {
    if let task = try options.childTask(of: Plan.self) { return try await perform(task) }
    var plan = Plan(quick: options.quick)
    plan.workloads = try options.workloads() ?? Workload.allCases
    var report = SuiteReport(
      "blobs", plan.workloads, runs: options.runCount, documents: { plan.count($0) },
      valueSize: { $0.length })
    let chosen = try options.engines(of: engines, name: { $0.name })
    options.takeTurns(chosen.map { $0.name }, plan, into: &report)
    try options.tell(report)
  }

  /// Runs the child's task.
  private func perform(_ task: SuiteTask<Plan>) async throws {
    guard let engine = engines.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    let run = BlobRun(try await engine.open(in: task.directory), task.plan)
    var result = SuiteResult(engine: engine.name)
    result.values = try await run.measure()
    try options.tell(result)
  }
}
