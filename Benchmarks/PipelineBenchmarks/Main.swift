// The pipelines suite: reports over the same sales by Ondol's pipelines, SQLite with a column for
// each field, SQLite with JSON texts, and DuckDB. The program starts itself once for each engine
// and run, and compares the answers. `Scripts/bench --suite pipelines` builds it.

import ArgumentParser
import BenchmarkKit
import Peers

@main
struct PipelineBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite pipelines", abstract: "Reports over documents.")

  @OptionGroup var options: SuiteOptions

  func run() async throws {
    if let task = try options.childTask(of: Plan.self) { return try await perform(task) }
    var plan = Plan(
      documents: options.documentCount, workloads: try options.workloads() ?? Workload.allCases)
    plan.passes = options.passes ?? plan.passes
    let documents = plan.documents
    var report = SuiteReport(
      "pipelines", plan.workloads, runs: options.runCount, documents: { _ in documents },
      valueSize: { _ in 190 })
    report.heading = [
      "\(documents) sales of ten fields, a tenth as many sellers, and no index;"
        + " the median of \(plan.passes) passes in each run."
    ]
    let names = stores.map { $0.name } + (DuckDBReports.python == nil ? [] : [DuckDBReports.name])
    options.takeTurns(try options.engines(of: names) { $0 }, plan, into: &report)
    for workload in plan.workloads {
      let answers = Set(report.results.compactMap { $0.checksums[workload.rawValue] })
      if answers.count > 1 {
        report.errors.append("\(workload.rawValue): engines give different answers")
      }
    }
    try options.tell(report)
  }

  /// Runs the child's task.
  private func perform(_ task: SuiteTask<Plan>) async throws {
    if task.engine == DuckDBReports.name {
      return try options.tell(try DuckDBReports.measure(task.plan, in: task.directory))
    }
    guard let type = stores.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    try options.tell(try await measure(type, task))
  }

  private func measure<Store: ReportStore>(
    _ type: Store.Type, _ task: SuiteTask<Plan>
  ) async throws -> SuiteResult {
    let plan = task.plan
    var result = SuiteResult(engine: type.name, settings: type.settings)
    var store = try await type.open(task.directory)
    let load = try await microseconds { try await store.load(plan.documents) }
    result.note(Workload.load, Double(plan.documents) / load * 1e6)
    // The rows are read as a process finds them that opens the database.
    try await store.close()
    store = try await type.open(task.directory)
    ProcessMemory.restartPeak()
    for report in plan.reports {
      var times: [Double] = []
      for _ in 0..<plan.passes {
        var answer: ReportAnswer?
        let time = try await microseconds {
          answer = try await store.answer(report, hashes: false)
        }
        if let answer, answer.seen != 0 { times.append(time / 1_000) }
      }
      guard !times.isEmpty else { continue }
      let checksum = try await store.answer(report, hashes: true)?.checksum
      result.note(Workload.report(report), median(times), checksum: checksum)
    }
    result.note(Workload.memory, ProcessMemory.current().map { Double($0.peakBytes) / 1e6 })
    if let store = store as? OndolReportStore { try await store.measureWrites(plan, &result) }
    try await store.close()
    return result
  }
}

/// The engines of this build, in the order of the table.
private let stores: [any ReportStore.Type] = {
  var stores: [any ReportStore.Type] = [OndolReportStore.self]
  #if PEER_SQLITE
    stores +=
      [
        SQLiteReportStore<TypedColumns>.self, SQLiteReportStore<JSONColumns>.self,
      ] as [any ReportStore.Type]
  #endif
  return stores
}()
