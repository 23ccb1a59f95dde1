// `crash` and `faults`: a disk in memory that loses power, or fails, at every operation of many
// small workloads. A unit is one workload.

import ArgumentParser
import OndolTestKit

struct CrashCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "crash", abstract: "Cuts the power, or kills, before every operation.")

  @Option(help: "The smallest number of crashes.")
  var crashes = 20_000

  @Option(help: "Operations of a workload to crash before, evenly spread; 0 for all.")
  var operations = 40

  @Option(help: "The part that crashes: engine, documents, blobs, keyed or rekeyed.")
  var floor = Floor.documents

  @Option(help: "A sync that the disk drops; the suite must then find a violation.")
  var sabotage: Sabotage?

  @OptionGroup var options: StressOptions

  func run() async throws {
    let (open, sabotage, operations) = (floor.open, sabotage, operations)
    let run = StressRun("crash", "crashes", target: crashes, hasPoints: true, options)
    try await run.run { seed in
      var test = CrashTest(seed: seed, sabotage: sabotage, open: open)
      test.operationsPerWorkload = operations == 0 ? nil : operations
      return UnitResult(test.runOne())
    }
  }
}

struct FaultsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "faults",
    abstract: "Fails every operation once, permanently, and for lack of space.",
    discussion: "A sync that fails forgets what it had not saved, as systems do.")

  @Option(help: "The smallest number of faults.")
  var faults = 10_000

  @Option(help: "The number of a workload's faults to try, evenly spread; 0 for all.")
  var perWorkload = 120

  @Option(help: "The part that meets them: engine, documents, blobs, keyed or rekeyed.")
  var floor = Floor.documents

  @Flag(
    help: """
      After each fault, which strikes once, everything else goes on: failed calls are made again, \
      and the store is opened twice afterwards.
      """)
  var goOn = false

  @OptionGroup var options: StressOptions

  func run() async throws {
    let (open, perWorkload) = (floor.open, perWorkload)
    if goOn {
      let run = StressRun(
        "faults --go-on", "openings after faults", target: faults, hasPoints: true, options)
      return try await run.run { seed in
        var test = GoOnTest(seed: seed, open: open)
        test.faultsPerWorkload = perWorkload == 0 ? nil : perWorkload
        return UnitResult(test.runOne())
      }
    }
    let run = StressRun("faults", "lives after faults", target: faults, hasPoints: true, options)
    try await run.run { seed in
      var test = FaultTest(seed: seed, open: open)
      test.isExhaustive = true
      test.faultsPerWorkload = perWorkload == 0 ? nil : perWorkload
      return UnitResult(test.runOne())
    }
  }
}

extension Sabotage: ExpressibleByArgument {}

extension UnitResult {
  init(_ report: CrashReport) {
    self.init(
      cases: report.crashes, points: report.points, violation: report.violation?.description)
  }
}
