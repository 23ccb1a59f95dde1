// `hostile`: every damage to a small database. A unit is some hundred damages, spread over all of
// them. It runs in a process of its own, because the bugs that it looks for may end that process.

import ArgumentParser
import Foundation
import OndolTerminal
import OndolEngine
import OndolTestKit

struct HostileCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hostile",
    abstract: "Damages files in every way and reads everything.",
    discussion: """
      Every bit flipped, every length cut to, every sector zeroed, doubled and swapped, files gone \
      and exchanged; as it is, and with checksums made right again. Then only traps and endless \
      work are violations, because values may be others.
      """)

  private static let unitLength = 500

  @Option(help: "The number of damages to try; by default all.")
  var cases: Int?

  @Option(help: .hidden)
  var worker: Int?

  @Option(help: "Only try the damage with this number.")
  var number: Int?

  @OptionGroup var options: StressOptions

  func run() async throws {
    let sample = (options.seed ?? 1) % 64
    let test = try HostileTest(seed: sample)
    if let number {
      print(test.describe(number))
      return print(test.run([number]))
    }
    if let worker {
      let report = test.run(Self.numbers(ofUnit: worker, among: test.count))
      print(report.cases, report.refused, report.unharmed, report.tornTails, report.otherAnswers)
      if let violation = report.violation { print(violation) }
      return
    }
    try await runAll(test, sample)
  }

  private func runAll(_ test: HostileTest, _ sample: UInt64) async throws {
    var options = options
    options.seed = sample
    Console.say(lines: test.inventory)
    let totals = Guarded(HostileReport())
    defer { print(totals.withLock { $0 }) }
    let run = StressRun(
      "hostile", "damages", target: cases ?? test.count, options)
    try await run.runNumbered { number in
      let report = try HostileWorker.run(number, seed: sample)
      totals.withLock { $0 += report }
      return UnitResult(cases: report.cases, violation: report.violation)
    }
  }

  /// Takes every n-th damage, so that some units are a fair sample and all units together are all
  /// damages.
  private static func numbers(ofUnit unit: Int, among count: Int) -> [Int] {
    let units = (count + unitLength - 1) / unitLength
    return Array(stride(from: unit, to: count, by: units))
  }
}

/// This program, started again for one unit.
private enum HostileWorker {
  static func run(_ unit: Int, seed: UInt64) throws -> HostileReport {
    let process = Process()
    let output = Pipe()
    process.executableURL = Bundle.main.executableURL
    process.arguments = ["hostile", "--worker", "\(unit)", "--seed", "\(seed)"]
    process.standardOutput = output
    try process.run()
    let text = String(
      decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    let lines = text.split(separator: "\n", maxSplits: 1)
    let counts = (lines.first ?? "").split(separator: " ").compactMap { Int($0) }
    guard process.terminationReason == .exit, counts.count == 5 else {
      var report = HostileReport()
      report.violation = "unit \(unit) ended with \(process.terminationStatus): \(text)"
      return report
    }
    return HostileReport(counts: counts, violation: lines.dropFirst().first.map(String.init))
  }
}
