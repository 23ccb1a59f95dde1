// `load` and `ycsb`: operations on documents, from a scenario or from the benchmark of Cooper et
// al., and their latencies.

import ArgumentParser
import Foundation
import Ondol
import OndolTerminal
import OndolEngine
import OndolTestKit

/// The place of a run, its seed and the place of its report.
struct PlaceOptions: ParsableArguments {
  @Option(help: "The seed of everything random; by default random itself.")
  var seed: UInt64?

  @Option(help: "The file for the report, as JSON.")
  var report: String?

  @Option(
    help: "The database's directory, which must be new or empty; by default a temporary one."
  )
  var at: String?

  /// Creates the directory, and removes what exists only for the run after `body` has run.
  func use<Report: Encodable>(
    _ body: (_ seed: UInt64, _ path: String) async throws -> Report
  ) async throws -> Report {
    let place = try LoadPlace(at)
    defer { place.remove() }
    let result = try await body(seed ?? UInt64.random(in: 1..<1 << 32), place.path)
    guard let report else { return result }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    try (try encoder.encode(result) + Data("\n".utf8)).write(to: URL(filePath: report))
    return result
  }
}

/// Ends the process's command with the result of a run.
func endCommand(isSound: Bool, isInterrupted: Bool) throws {
  if !isSound { throw ExitCode(1) }
  if isInterrupted { throw ExitCode(130) }
}

/// The options of `load` and `ycsb`.
struct LoadOptions: ParsableArguments {
  @OptionGroup var place: PlaceOptions

  @Option(
    help: "Operations a second, regardless of answers; 0 for as many as possible.")
  var rate: Double?

  @Option(help: "The number of concurrent operations.")
  var tasks: Int?

  @Option(help: "The duration in seconds.")
  var seconds: Double?

  @Option(help: "What commits survive: memory, process or power.")
  var durability: DurabilityName?

  func apply(to scenario: inout Scenario) throws {
    if let rate { scenario.rate = rate }
    if let tasks { scenario.tasks = tasks }
    if let seconds { scenario.seconds = seconds }
    if let durability { scenario.durability = durability }
    try scenario.validate()
  }

  /// Loads a database and runs the scenario in it.
  func run(_ scenario: Scenario) async throws {
    let report = try await place.use { seed, path in
      try await run(scenario, seed: seed, at: path)
    }
    for line in report.table + report.faults { Console.say(lines: line) }
    print(report.verdict)
    try endCommand(isSound: report.isSound, isInterrupted: report.isInterrupted)
  }

  private func run(
    _ scenario: Scenario, seed: UInt64, at path: String
  ) async throws -> LoadReport {
    let database = try await Database.open(at: path)
    let target = LoadDatabase(database, scenario)
    let run = LoadRun(target, seed: seed)
    let interrupt = Interrupt(first: run.stop)
    defer { interrupt.end() }
    Console.say("\(scenario.name): seed \(seed), \(scenario.documents) documents in \(path)")
    let beginning = ContinuousClock.now
    try await target.load(seed: seed) { count in
      if count % 10_000 == 0 { Console.progress("loading: \(count)", number: count / 10_000) }
      return !interrupt.hasCome
    }
    Console.endProgress()
    Console.say(
      "\(scenario.name): loaded in \(LoadReport.number((.now - beginning) / .seconds(1))) s")
    let progress = LoadProgress()
    await run.run { progress.show($0) }
    Console.endProgress()
    try await database.close()
    return LoadReport(run, isInterrupted: interrupt.hasCome)
  }
}

struct LoadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "load", abstract: "Puts documents under the load in a file.",
    discussion: """
      The file is JSON; every field may be left out:
        {"name": "shop", "documents": 100000, "fields": 10, "fieldLength": [50, 150],
         "keys": "zipfian", "operations": {"get": 80, "update": 10, "query": 5, "insert": 5},
         "rate": 5000, "tasks": 8, "seconds": 60, "durability": "process"}
      Operations: get, put, insert, update, query, scan, transaction, delete, listener. Keys: \
      uniform, zipfian, latest. With a rate, an operation's latency counts from the moment at \
      which it was due. Exit status 1 when an operation failed or an answer was wrong, 130 when \
      interrupted, with the report so far.

      With --batch in the place of a file, writers commit batches of rows to the engine without a \
      pause, and --limit-p999 and --limit-worst say how long that may take: status 1 when it \
      took longer.
      """)

  @Argument(help: "The scenario's file; not with --batch.")
  var scenario: String?

  @OptionGroup var options: LoadOptions

  @OptionGroup var batches: BatchLoadOptions

  func validate() throws {
    guard (scenario == nil) == (try batches.plan(options) != nil) else {
      throw ValidationError("load takes a scenario's file, or --batch")
    }
  }

  func run() async throws {
    if let plan = try batches.plan(options) { return try await run(plan) }
    guard let file = scenario else { return }
    var scenario = try Scenario(contentsOf: file)
    try options.apply(to: &scenario)
    try await options.run(scenario)
  }

  private func run(_ plan: BatchLoadPlan) async throws {
    let report = try await options.place.use { seed, path in
      Console.say("batches: seed \(seed), in \(path)")
      return try await BatchLoad(plan, seed: seed).run(at: path)
    }
    for fault in report.faults { Console.say(lines: fault) }
    print(report.verdict)
    try endCommand(isSound: report.isSound, isInterrupted: report.isInterrupted)
  }
}

struct YCSBCommand: AsyncParsableCommand {
  /// The workloads of the core package.
  enum Workload: String, ExpressibleByArgument, CaseIterable {
    case a, b, c, d, e, f

    var operations: [OperationKind: Double] {
      switch self {
      case .a: [.get: 50, .update: 50]
      case .b: [.get: 95, .update: 5]
      case .c: [.get: 100]
      case .d: [.get: 95, .insert: 5]
      case .e: [.scan: 95, .insert: 5]
      case .f: [.get: 50, .transaction: 50]
      }
    }

    var keys: KeyDistribution { self == .d ? .latest : .zipfian }
  }

  static let configuration = CommandConfiguration(
    commandName: "ycsb", abstract: "Runs a workload of YCSB: A to F.",
    discussion: """
      Documents of ten fields of 100 bytes; A: 50 % reads, 50 % updates; B: 95 % and 5 %; C: \
      reads; D: 95 % reads of the newest, 5 % inserts; E: 95 % scans of up to 100 documents, 5 % \
      inserts; F: 50 % reads, 50 % read-modify-writes, in a transaction. Keys are zipfian.
      """)

  @Argument(
    help: "A, B, C, D, E or F.",
    transform: { text in
      guard let workload = Workload(rawValue: text.lowercased()) else {
        throw ValidationError("there is no workload '\(text)'; there are A to F")
      }
      return workload
    })
  var workload: Workload

  @Option(help: "The number of documents to load first.")
  var documents = 100_000

  @Option(help: "The number of operations; by default as many as fit in the time.")
  var operations: Int?

  @OptionGroup var options: LoadOptions

  func run() async throws {
    var scenario = Scenario()
    scenario.name = "ycsb \(workload.rawValue.uppercased())"
    scenario.documents = documents
    scenario.operations = workload.operations
    scenario.keys = workload.keys
    scenario.count = operations
    // Runs the requested number, however long that takes.
    if operations != nil { scenario.seconds = 86_400 }
    try options.apply(to: &scenario)
    try await options.run(scenario)
  }
}

/// Prints a line a second.
private final class LoadProgress: Sendable {
  private let last = Guarded((number: 0, count: UInt64(0)))

  func show(_ run: LoadRun) {
    let total = run.tally.total
    let (number, before) = last.withLock { last in
      defer { last = (last.number + 1, total.latency.count) }
      return last
    }
    Console.progress(
      "\(run.scenario.name): \(LoadReport.number(run.elapsed / .seconds(1))) s, "
        + "\(total.latency.count - before) a second, p50 "
        + "\(LoadReport.number(Double(total.latency.percentile(50)) / 1_000)) µs, p99 "
        + "\(LoadReport.number(Double(total.latency.percentile(99)) / 1_000)) µs", number: number)
  }
}

/// The place of a database under load.
struct LoadPlace {
  let path: String
  private let isPassing: Bool

  init(_ path: String?) throws {
    isPassing = path == nil
    let place =
      path.map { URL(filePath: $0) }
      ?? FileManager.default.temporaryDirectory
      .appending(path: "ondol-stress-\(ProcessInfo.processInfo.processIdentifier)")
    let contents = (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? []
    guard contents.isEmpty else { throw ValidationError("\(place.path) is not empty") }
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    self.path = place.appending(path: "load.ondol").path
  }

  /// Removes everything that exists only for the run.
  func remove() {
    guard isPassing else { return }
    try? FileManager.default.removeItem(at: URL(filePath: path).deletingLastPathComponent())
  }
}
