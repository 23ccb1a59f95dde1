// The blob suite: bytes put and got beside plain files and SQLite, where a put is on the device
// when it returns. The program starts itself once per engine and run. `Scripts/bench --suite blobs`
// builds it.

import ArgumentParser
import BenchmarkKit
import Foundation

@main
struct BlobBenchmarks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench --suite blobs", abstract: "Puts and gets of small and large blobs.")

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
    var plan = Plan(quick: options.quick)
    plan.workloads = try options.workloads() ?? Workload.allCases
    var report = Report(plan: plan, runs: options.runCount)
    for round in 1...options.runCount {
      for engine in try options.engines(of: engines, name: { $0.name }) {
        progress("run \(round) of \(options.runCount): \(engine.name)")
        let place = options.directory + "/" + engine.name.replacing(" ", with: "-")
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
    try options.tell(report.table(), rows: report.json(), report.errors)
  }

  /// The child's side.
  private func perform(_ task: ChildTask) async throws {
    guard let engine = engines.first(where: { $0.name == task.engine }) else {
      throw ValidationError("No engine is called \(task.engine).")
    }
    let run = BlobRun(try await engine.open(in: task.directory), task.plan)
    let result = RunResult(engine: engine.name, values: try await run.measure())
    try FileHandle.standardOutput.write(contentsOf: JSONEncoder().encode(result))
  }
}
