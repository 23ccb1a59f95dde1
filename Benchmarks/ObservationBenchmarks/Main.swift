// The observation suite: what a write pays for listeners that it does not affect, and how soon the
// affected ones receive it. It compares Ondol with GRDB, whose observations are the closest
// equivalent. The program starts itself once for each engine and run. `Scripts/bench --suite
// observation` builds it.

import ArgumentParser
import BenchmarkKit
import Foundation

@main
struct ObservationBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite observation",
    abstract: "Writes beside many listeners, and times their deliveries.")

  @OptionGroup var options: SuiteOptions

  func run() async throws {
    if let task = try options.childTask(of: Plan.self) { return try await perform(task) }
    var plan = Plan(documents: min(options.documentCount, 100_000), quick: options.quick)
    plan.workloads = try options.workloads() ?? Workload.allCases
    var report = SuiteReport(
      "observation", plan.workloads, runs: options.runCount, documents: { _ in plan.documents },
      valueSize: { _ in 100 })
    let chosen = try options.engines(of: engines, name: { $0.name })
    options.takeTurns(chosen.map { $0.name }, plan, into: &report)
    try options.tell(report)
  }

  /// Runs the child's task.
  private func perform(_ task: SuiteTask<Plan>) async throws {
    guard let engine = engines.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    var result = SuiteResult(engine: engine.name)
    for workload in task.plan.workloads {
      let place = task.directory + "/" + workload.rawValue.replacing(" ", with: "-")
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
      let figure = try await engine.measure(workload, task.plan, in: place)
      result.note(workload, figure?.value, spread: figure?.spread)
    }
    try options.tell(result)
  }
}

/// A measured engine.
protocol ObservedEngine: SendableMetatype {
  static var name: String { get }

  /// Returns the figure of a workload; nil if the engine has no equivalent.
  static func measure(
    _ workload: Workload, _ plan: Plan, in directory: String
  ) async throws -> Figure?
}

/// The result of a workload.
struct Figure {
  var value: Double
  var spread: Spread?

  init(_ value: Double) {
    self.value = value
  }

  /// The median of single operations.
  init?(microseconds: [Double]) {
    guard let spread = Spread(microseconds: microseconds) else { return nil }
    value = spread.p50
    self.spread = spread
  }
}

/// A listener received another value than the written one.
struct WrongSnapshot: Error {}

private let engines: [any ObservedEngine.Type] = {
  var engines: [any ObservedEngine.Type] = [OndolListeners.self]
  #if PEER_GRDB
    engines.append(GRDBListeners.self)
  #endif
  return engines
}()
