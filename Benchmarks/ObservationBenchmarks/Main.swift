// The observation suite: what a write pays for those who listen and are not concerned, and how soon
// those who are hear of it. Ondol beside GRDB, whose observations are the closest there is. The
// program starts itself once per engine and run. `Scripts/bench --suite observation` builds it.

import ArgumentParser
import BenchmarkKit
import Foundation

@main
struct ObservationBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite observation",
    abstract: "Writes beside many listeners, and times what they are told.")

  @OptionGroup var options: SuiteOptions

  /// What a child process is to do.
  struct ChildTask: Codable {
    var engine: String
    var plan: Plan
    var directory: String
  }

  func run() async throws {
    if let child = options.child {
      let task = try JSONDecoder().decode(ChildTask.self, from: Data(child.utf8))
      return try await perform(task)
    }
    var plan = Plan(documents: min(options.documentCount, 100_000), quick: options.quick)
    plan.workloads = try options.workloads() ?? Workload.allCases
    let report = try measure(plan)
    try options.tell(report.table(), rows: report.json(), report.errors)
  }

  private func measure(_ plan: Plan) throws -> Report {
    var report = Report(plan: plan, runs: options.runCount)
    for round in 1...options.runCount {
      for engine in try options.engines(of: engines, name: { $0.name }) {
        progress("run \(round) of \(options.runCount): \(engine.name)")
        let place = options.directory + "/" + engine.name
        do {
          report.results.append(
            try inFreshDirectory(place) { place in
              try runChild(
                ChildTask(engine: engine.name, plan: plan, directory: place), named: engine.name,
                as: RunResult.self)
            })
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
    guard let engine = engines.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    var result = RunResult(engine: engine.name, values: [:])
    for workload in task.plan.workloads {
      let place = task.directory + "/" + workload.rawValue.replacing(" ", with: "-")
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
      result.values[workload.rawValue] = try await engine.measure(workload, task.plan, in: place)
    }
    try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(result))
  }
}

/// Who is measured.
protocol ObservedEngine: SendableMetatype {
  static var name: String { get }

  /// The figure of a workload; nil where the engine has nothing like it.
  static func measure(
    _ workload: Workload, _ plan: Plan, in directory: String
  ) async throws -> Double?
}

private let engines: [any ObservedEngine.Type] = {
  var engines: [any ObservedEngine.Type] = [OndolListeners.self]
  #if PEER_GRDB
    engines.append(GRDBListeners.self)
  #endif
  return engines
}()
