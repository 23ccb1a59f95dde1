// The search suite: the same texts and questions for Ondol, both tokenizers of SQLite's FTS5 and
// Xapian. The program starts itself once for each engine and run. `Scripts/bench --suite search`
// builds it.

import ArgumentParser
import BenchmarkKit
import Peers

@main
struct SearchBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite search", abstract: "Finds texts by their words.")

  @OptionGroup var options: SuiteOptions

  func run() async throws {
    if let task = try options.childTask(of: Plan.self) { return try await perform(task) }
    var plan = Plan(
      documents: options.documentCount(usually: 100_000, quick: 20_000),
      workloads: try options.workloads() ?? Workload.allCases, quick: options.quick)
    plan.passes = options.passes ?? plan.passes
    let documents = plan.documents
    var report = SuiteReport(
      "search", plan.workloads, runs: options.runCount, documents: { _ in documents },
      valueSize: { _ in 1_200 })
    report.heading = [
      "\(documents) texts of about 1.2 KB, a quarter in Hangul; questions read the ten best texts."
    ]
    let chosen = try options.engines(of: stores) { $0.name }
    options.takeTurns(chosen.map { $0.name }, plan, into: &report)
    for workload in Workload.questions {
      let counts = Set(report.results.compactMap { $0.checksums[workload.rawValue] })
      // A phrase, a prefix and a word mean the same in all engines. Pairs of syllables do not.
      if counts.count > 1, workload != .syllables {
        report.errors.append("\(workload.rawValue): engines find different numbers of texts")
      }
    }
    try options.tell(report)
  }

  /// Runs the child's task.
  private func perform(_ task: SuiteTask<Plan>) async throws {
    guard let type = stores.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    let run = SearchRun(plan: task.plan, directory: task.directory)
    try options.tell(try await run.measure(type))
  }
}

/// The engines of this build, in the order of the table.
private let stores: [any SearchStore.Type] = {
  var stores: [any SearchStore.Type] = [OndolSearchStore.self]
  #if PEER_SQLITE
    stores += [FTS5WordStore.self, FTS5TrigramStore.self] as [any SearchStore.Type]
  #endif
  #if PEER_XAPIAN
    stores.append(XapianStore.self)
  #endif
  return stores
}()
