// Runs the units of a suite, several at a time, until there are enough cases, and reports the
// result. An interrupt ends the run with the result so far.

import ArgumentParser
import Foundation
import OndolTerminal
import OndolEngine
import OndolTestKit

/// The result of one unit of a suite.
struct UnitResult: Sendable {
  var cases = 0
  /// The number of different (workload, operation) pairs, if the suite has them.
  var points = 0
  /// Other counts, by their names.
  var counts: [String: Int] = [:]
  var violation: String?
}

/// One run of one suite.
struct StressRun: Sendable {
  private struct Tally {
    var sum = UnitResult()
    var violations = 0
    var nextUnit = 0
    var lastReport = ContinuousClock.now
  }

  private static let reportInterval = Duration.seconds(5)

  /// The suite, as in `crash`.
  var name: String
  /// The noun of the cases, as in `crashes`.
  var cases: String
  /// The smallest number of cases to run.
  var target: Int
  var hasPoints = false
  /// Printed after the verdict.
  var remark: String?
  let options: StressOptions
  private let seed: UInt64
  private let tally = Guarded(Tally())

  init(
    _ name: String, _ cases: String, target: Int, hasPoints: Bool = false, remark: String? = nil,
    _ options: StressOptions
  ) {
    self.name = name
    self.cases = cases
    self.target = target
    self.hasPoints = hasPoints
    self.remark = remark
    self.options = options
    seed = options.seed ?? UInt64.random(in: 1..<1 << 32)
  }

  /// Runs units, each with a seed, and ends the process's command with the verdict.
  func run(_ unit: @escaping @Sendable (UInt64) async throws -> UnitResult) async throws {
    try await run { number in
      await runUnit(SeededRandom.derive(seed, number), unit)
    } replaying: { replay in
      await runUnit(replay, unit)
    }
  }

  /// Runs units by number. `--replay` names a number.
  func runNumbered(
    _ unit: @escaping @Sendable (Int) async throws -> UnitResult
  ) async throws {
    let unit: @Sendable (UInt64) async throws -> UnitResult = { try await unit(Int($0)) }
    try await run {
      await runUnit(UInt64($0), unit)
    } replaying: {
      await runUnit($0, unit)
    }
  }

  private func run(
    _ unit: @escaping @Sendable (Int) async -> Void,
    replaying replay: (UInt64) async -> Void
  ) async throws {
    // An interrupt is no failure of the suite: the run ends with the verdict so far.
    let interrupt = Interrupt { _ in
      print(verdict)
      exit(130)
    }
    defer { interrupt.end() }
    if let seed = options.replay {
      await replay(seed)
    } else {
      Console.say("\(name): seed \(seed), \(target) \(cases), \(options.jobs) at a time")
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<options.jobs {
          group.addTask {
            while let number = takeUnit() { await unit(number) }
          }
        }
      }
    }
    print(verdict)
    let counts = tally.withLock { $0.sum.counts }.sorted { $0.key < $1.key }
    if !counts.isEmpty {
      print("\(name): " + counts.map { "\($0.value) \($0.key)" }.joined(separator: ", "))
    }
    guard tally.withLock({ $0.violations == 0 }) else { throw ExitCode(1) }
  }

  /// Returns the number of the next unit; nil if there are enough.
  private func takeUnit() -> Int? {
    tally.withLock { tally in
      guard tally.sum.cases < target, tally.violations == 0 else { return nil }
      defer { tally.nextUnit += 1 }
      return tally.nextUnit
    }
  }

  private func runUnit(
    _ seed: UInt64, _ unit: @Sendable (UInt64) async throws -> UnitResult
  ) async {
    var result = UnitResult(cases: 1)
    do {
      result = try await unit(seed)
    } catch {
      result.violation = "\(error)"
    }
    if let violation = result.violation {
      Console.say(lines: "\(name): violation; --replay \(seed) shows it again\n\(violation)")
    }
    let isReportDue = tally.withLock { [result] tally in
      tally.sum.cases += result.cases
      tally.sum.points += result.points
      tally.sum.counts.merge(result.counts, uniquingKeysWith: +)
      tally.violations += result.violation == nil ? 0 : 1
      guard ContinuousClock.now - tally.lastReport > Self.reportInterval else { return false }
      tally.lastReport = .now
      return true
    }
    if isReportDue { Console.say(lines: verdict) }
  }

  private var verdict: String {
    tally.withLock { tally in
      let points = hasPoints ? " at \(tally.sum.points) points" : ""
      let origin = options.replay.map { "replay \($0)" } ?? "seed \(seed)"
      return "\(name): \(tally.sum.cases) \(cases)\(points), \(tally.violations) violations, "
        + origin + (remark.map { " (\($0))" } ?? "")
    }
  }
}
