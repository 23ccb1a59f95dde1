// `ondol-stress load`, `ycsb` and `soak`: run as a shell runs them, and the parts whose figures
// must be right: the histogram compared with sorted numbers, the distributions with their formulas.

import Foundation
import OndolTestKit
import Testing
import OndolPlatform

@Suite struct `A load on documents` {
  private struct Report: Decodable {
    struct Latency: Decodable {
      var p50: Double
      var p99: Double
      var maximum: Double
    }

    struct Operation: Decodable {
      var count: Int
      var failed: Int
      var latency: Latency
      var service: Latency
    }

    var seed: UInt64
    var isInterrupted: Bool
    var wrong: Int
    var total: Operation
    var operations: [String: Operation]
  }

  private static let everything = """
    {"name": "all", "documents": 300, "fields": 3, "fieldLength": [0, 40], "count": 1500,
     "keys": "uniform", "tasks": 3, "scanLength": 10, "operations": {"get": 4, "put": 2,
     "insert": 1, "update": 2, "query": 1, "scan": 1, "transaction": 2, "delete": 1, "listener": 1}}
    """

  @Test func `reports every kind of operation, and finds nothing wrong`() async throws {
    try await withTemporaryDirectory { directory in
      let (scenario, report) = (directory.appending(path: "a"), directory.appending(path: "b"))
      try Data(Self.everything.utf8).write(to: scenario)
      let run = try StressTool(["load", scenario.path, "--seed", "7", "--report", report.path])
      let result = try run.finish()
      #expect(result.status == 0, "\(result.messages)")
      #expect(result.output.hasPrefix("all: 1500 operations in "))
      #expect(result.output.contains(" 0 failed, 0 wrong, seed 7"))
      let found = try JSONDecoder().decode(Report.self, from: try Data(contentsOf: report))
      #expect(found.seed == 7 && !found.isInterrupted && found.wrong == 0)
      #expect(found.total.count == 1_500 && found.total.failed == 0)
      #expect(found.operations.count == 9)
      #expect(found.operations.values.map(\.count).reduce(0, +) == 1_500)
    }
  }

  @Test func `of batches is held against its limits`() async throws {
    struct Batches: Decodable {
      var seed: UInt64
      var commits: Int
      var faults: [String]
    }
    try await withTemporaryDirectory { directory in
      let report = directory.appending(path: "a")
      let options = [
        "load", "--batch", "5", "--writers", "3", "--seconds", "0.3", "--seed", "7", "--report",
        report.path,
      ]
      var result = try StressTool(options).finish()
      #expect(result.status == 0, "\(result.messages)")
      #expect(result.output.hasPrefix("batches: 3 writers of 5 rows, "))
      #expect(result.output.contains(" stops: sound, seed 7"))
      var found = try JSONDecoder().decode(Batches.self, from: try Data(contentsOf: report))
      #expect(found.seed == 7 && found.commits >= 3 && found.faults.isEmpty)
      // No commit takes a nanosecond.
      result = try StressTool(
        options + ["--limit-p999", "0.000001", "--limit-worst", "0.000001"]
      ).finish()
      #expect(result.status == 1, "\(result.messages)")
      found = try JSONDecoder().decode(Batches.self, from: try Data(contentsOf: report))
      #expect(found.faults.map { $0.prefix(5) } == ["p99.9", "worst"])
      for wrong in [
        ["load"], ["load", "a", "--batch", "5"], ["load", "a", "--writers", "2"],
        ["load", "--batch", "0"], ["load", "--batch", "5", "--rate", "9"],
        ["load", "--batch", "5", "--limit-worst", "0"],
      ] {
        let status = try StressTool(wrong).finish().status
        #expect(status != 0 && status != 1, "\(wrong)")
      }
    }
  }

  @Test func `exceeds a limit by its measurements`() {
    var latencies = LatencyHistogram()
    let limits = LatencyLimits(p999: 20, worst: 250)
    #expect(limits.faults(of: latencies).count == 2)
    for _ in 0..<9_990 { latencies.record(.milliseconds(5)) }
    for _ in 0..<10 { latencies.record(.milliseconds(249)) }
    #expect(limits.faults(of: latencies).isEmpty)
    latencies.record(.milliseconds(251))
    #expect(limits.faults(of: latencies).map { $0.prefix(5) } == ["p99.9", "worst"])
    for _ in 0..<5_000 { latencies.record(.milliseconds(5)) }
    #expect(limits.faults(of: latencies).map { $0.prefix(5) } == ["worst"])
    #expect(LatencyLimits().faults(of: latencies).isEmpty)
    #expect(!LatencyLimits(p999: 0).areValid && !LatencyLimits(worst: .infinity).areValid)
  }

  /// All operations are due almost at once, so all except the first wait. Their own durations do
  /// not show that.
  @Test func `counts time from when an operation was due`() async throws {
    try await withTemporaryDirectory { directory in
      let (scenario, report) = (directory.appending(path: "a"), directory.appending(path: "b"))
      try Data(#"{"documents": 100, "operations": {"get": 1}, "count": 2000}"#.utf8)
        .write(to: scenario)
      let result = try StressTool([
        "load", scenario.path, "--rate", "100000000", "--tasks", "1", "--report", report.path,
      ]).finish()
      #expect(result.status == 0, "\(result.messages)")
      let total = try JSONDecoder().decode(Report.self, from: try Data(contentsOf: report)).total
      #expect(total.latency.p50 > 20 * total.service.p50)
    }
  }

  @Test func `leaves a report when it is interrupted`() async throws {
    try await withTemporaryDirectory { directory in
      let (scenario, report) = (directory.appending(path: "a"), directory.appending(path: "b"))
      try Data(#"{"documents": 100, "rate": 500, "seconds": 3600}"#.utf8).write(to: scenario)
      let run = try StressTool(["load", scenario.path, "--report", report.path])
      // A progress line comes every second.
      run.read(until: " a second, p50")
      run.interrupt()
      let result = try run.finish()
      #expect(result.status == 130, "\(result.messages)")
      #expect(result.output.hasSuffix(", interrupted\n"))
      let found = try JSONDecoder().decode(Report.self, from: try Data(contentsOf: report))
      #expect(found.isInterrupted && found.total.count > 0)
    }
  }

  @Test(arguments: [
    (#"{"operatoins": {}}"#, "operatoins"), (#"{"operations": {"jump": 1}}"#, "jump"),
    (#"{"operations": {"get": 0}}"#, "weights"), (#"{"tasks": 0}"#, "range"), ("[", "not"),
  ])
  func `refuses a scenario that makes no sense`(_ text: String, _ reason: String) async throws {
    try await withTemporaryDirectory { directory in
      let scenario = directory.appending(path: "scenario")
      try Data(text.utf8).write(to: scenario)
      let result = try StressTool(["load", scenario.path]).finish()
      #expect(result.status == 64)
      #expect(result.messages.contains(reason), "\(result.messages)")
    }
  }

  @Test(arguments: ["A", "b", "C", "D", "E", "F"])
  func `can be that of YCSB`(_ workload: String) async throws {
    let result = try StressTool([
      "ycsb", workload, "--documents", "400", "--operations", "400", "--seed", "3",
    ]).finish()
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.output.hasPrefix("ycsb \(workload.uppercased()): 400 operations in "))
  }

  @Test func `can go on and be watched`() async throws {
    let result = try StressTool([
      "soak", "--hours", "0.0006", "--documents", "200", "--verify-every", "0.01", "--seed", "5",
    ]).finish()
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.output.contains(": sound, seed 5"), "\(result.output)")
  }

  @Test func `is left with a verdict when a soak is interrupted`() async throws {
    let run = try StressTool(["soak", "--hours", "5", "--documents", "200"])
    run.read(until: "documents in ")
    run.interrupt()
    let result = try run.finish()
    #expect(result.status == 130, "\(result.messages)")
    #expect(result.output.contains(", interrupted\n"), "\(result.output)")
  }

  // MARK: - Parts

  @Test(arguments: 1...20)
  func `is measured to within a hundredth`(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var (whole, parts) = (LatencyHistogram(), [LatencyHistogram(), LatencyHistogram()])
    let values = (0..<2_000).map { _ in random.next() >> UInt64(random.below(64)) }
    for value in values {
      whole.record(nanoseconds: value)
      parts[random.below(2)].record(nanoseconds: value)
    }
    parts[0] += parts[1]
    let sorted = values.sorted()
    for percent in [0.1, 1, 25, 50, 90, 99, 99.9, 99.99, 100] {
      let place = max(1, Int((Double(sorted.count) * percent / 100).rounded(.up))) - 1
      let (expected, found) = (Double(sorted[place]), Double(whole.percentile(percent)))
      #expect(found >= expected && found <= expected * 1.01 + 1, "SEED=\(seed), \(percent) %")
      #expect(parts[0].percentile(percent) == whole.percentile(percent))
    }
    #expect(whole.maximum == sorted.last && whole.count == 2_000)
  }

  @Test func `draws documents as often as their distribution says`() {
    let (items, draws) = (1_000, 200_000)
    var random = SeededRandom(seed: 1)
    var counts = [Int](repeating: 0, count: items)
    let zipfian = Zipfian(items: items)
    for _ in 0..<draws { counts[Int(zipfian.next(&random))] += 1 }
    let zeta = (1...items).map { 1 / pow(Double($0), 0.99) }.reduce(0, +)
    for item in 0..<2 {
      let expected = Double(draws) / (pow(Double(item + 1), 0.99) * zeta)
      #expect(abs(Double(counts[item]) - expected) < expected * 0.05)
    }
    #expect(counts[..<10].reduce(0, +) > counts[500...].reduce(0, +))
    let latest = KeyChooser(.latest, documents: items)
    let chosen = (0..<1_000).map { _ in latest.choose(below: items, &random) }
    #expect(chosen.filter { $0 >= items - 100 }.count > 500)
    #expect(chosen.allSatisfy { (0..<items).contains($0) })
  }
}

/// `ondol-stress`, running.
final class StressTool {
  struct Result {
    var status: Int32
    var output: String
    var messages: String
  }

  private let process = Process()
  private let output = Pipe()
  private let messages = Pipe()
  private var text = ""

  init(_ arguments: [String]) throws {
    process.executableURL = try Child.product("ondol-stress")
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = messages
    try process.run()
  }

  /// Waits for a message. There are no more after the process has ended.
  func read(until part: String) {
    while !text.contains(part) {
      let data = messages.fileHandleForReading.availableData
      if data.isEmpty { return }
      text += String(decoding: data, as: UTF8.self)
    }
  }

  func interrupt() { kill(process.processIdentifier, SIGINT) }

  func finish() throws -> Result {
    let rest = try messages.fileHandleForReading.readToEnd() ?? Data()
    let printed = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Result(
      status: process.terminationStatus, output: String(decoding: printed, as: UTF8.self),
      messages: text + String(decoding: rest, as: UTF8.self))
  }
}
