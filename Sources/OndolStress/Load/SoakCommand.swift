// `soak`: hours of every operation at once on one database. Documents come and go so that their
// number stays the same. Memory, open files and space must stay the same as well, every answer is
// checked, and from time to time the database verifies itself and is reopened.

import ArgumentParser
import Foundation
import Ondol
import OndolTerminal
import OndolTestKit

struct SoakCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "soak",
    abstract: "Runs everything at once for hours, and watches memory and space.",
    discussion: """
      Every answer is checked. At intervals the load pauses and the database verifies itself at \
      full depth; every second time it is closed and opened again before. The verdict says whether \
      memory, open files or space grew though the documents did not. Exit status 1 when they did, \
      or when anything failed or was wrong; 130 when interrupted, with the verdict so far.
      """)

  @Option(help: "The duration in hours.")
  var hours = 1.0

  @Option(help: "Minutes from one verification to the next.")
  var verifyEvery = 10.0

  @Option(help: "The constant number of documents.")
  var documents = 50_000

  @Option(help: "Operations a second; 0 for as many as possible.")
  var rate = 0.0

  @OptionGroup var place: PlaceOptions

  func validate() throws {
    guard hours > 0, hours.isFinite, verifyEvery > 0, verifyEvery.isFinite, documents > 0 else {
      throw ValidationError("--hours, --verify-every and --documents must be above 0")
    }
  }

  func run() async throws {
    let result = try await place.use { seed, path in
      var soak = Soak(scenario: scenario, seed: seed, path: path)
      return try await soak.run(
        for: .seconds(hours * 3_600), verifyingEvery: .seconds(verifyEvery * 60))
    }
    for fault in result.faults { Console.say(lines: fault) }
    print(result.verdict)
    try endCommand(isSound: result.isSound, isInterrupted: result.isInterrupted)
  }

  private var scenario: Scenario {
    var scenario = Scenario()
    scenario.name = "soak"
    scenario.documents = documents
    scenario.fieldLength = SizeRange(20)
    scenario.fieldLength.most = 200
    scenario.rate = rate
    scenario.operations = [
      .get: 40, .put: 12, .update: 20, .query: 8, .scan: 4, .transaction: 8, .delete: 6,
      .listener: 2,
    ]
    return scenario
  }
}

/// The result of a soak.
struct SoakResult: Encodable {
  var seed: UInt64
  var seconds: Double
  var operations: UInt64
  var verifications, openings: Int
  var isInterrupted: Bool
  /// The faults, in the order of discovery.
  var faults: [String]
  var samples: [SoakSample]

  var isSound: Bool { faults.isEmpty }

  var verdict: String {
    let last = samples.last
    return "soak: \(operations) operations in \(LoadReport.number(seconds)) s, \(verifications)"
      + " verifications, \(openings) openings, memory \((last?.memory ?? 0) >> 20) MiB,"
      + " \(last?.descriptors ?? 0) descriptors, space \((last?.space ?? 0) >> 20) MiB:"
      + " \(isSound ? "sound" : "\(faults.count) faults"), seed \(seed)"
      + (isInterrupted ? ", interrupted" : "")
  }
}

/// A long run over one database.
struct Soak {
  let scenario: Scenario
  let seed: UInt64
  let path: String
  private var faults: [String] = []
  private var samples: [SoakSample] = []
  private var operations: UInt64 = 0
  private var verifications = 0
  private var openings = 1

  init(scenario: Scenario, seed: UInt64, path: String) {
    self.scenario = scenario
    self.seed = seed
    self.path = path
  }

  mutating func run(
    for duration: Duration, verifyingEvery interval: Duration
  ) async throws -> SoakResult {
    let stop = StopSign()
    let interrupt = Interrupt(first: stop.raise)
    defer { interrupt.end() }
    Console.say(
      "soak: seed \(seed), \(LoadReport.number(duration / .seconds(3_600))) hours,"
        + " \(scenario.documents) documents in \(path)")
    var database = try await Database.open(at: path)
    try await LoadDatabase(database, scenario).load(seed: seed) { _ in !interrupt.hasCome }
    let start = ContinuousClock.now
    let sampleInterval = max(Duration.milliseconds(200), min(.seconds(10), duration / 60))
    var nextVerification = start + interval
    var round = 0
    while ContinuousClock.now - start < duration, !interrupt.hasCome, faults.isEmpty {
      round += 1
      await soak(database, until: min(sampleInterval, duration - (.now - start)), round, stop)
      let time = (ContinuousClock.now - start) / .seconds(1)
      samples.append(SoakSample(time: time, operations: operations, database: path))
      show(samples.count)
      guard ContinuousClock.now >= nextVerification else { continue }
      nextVerification = .now + interval
      try await verify(&database)
    }
    try await verify(&database)
    try await database.close()
    Console.endProgress()
    if !interrupt.hasCome { faults += SoakVerdict.growth(samples) }
    return SoakResult(
      seed: seed, seconds: (ContinuousClock.now - start) / .seconds(1), operations: operations,
      verifications: verifications, openings: openings, isInterrupted: interrupt.hasCome,
      faults: faults, samples: samples)
  }

  private mutating func soak(
    _ database: Database, until end: Duration, _ round: Int, _ stop: StopSign
  ) async {
    var part = scenario
    part.seconds = max(0.05, end / .seconds(1))
    let run = LoadRun(LoadDatabase(database, part), seed: seed &+ UInt64(round))
    stop.whenRaised { run.stop() }
    await run.run()
    let tally = run.tally
    operations += tally.total.latency.count
    if tally.wrong + tally.total.failed > 0 {
      faults.append("\(tally.wrong) wrong answers, \(tally.total.failed) failures")
      faults += tally.faults
    }
  }

  /// Verifies the database, every second time after closing and reopening it.
  private mutating func verify(_ database: inout Database) async throws {
    verifications += 1
    if verifications % 2 == 0 {
      try await database.close()
      database = try await Database.open(at: path)
      openings += 1
    }
    let errors = try await database.verify(depth: .full).filter { $0.severity == .error }
    faults += errors.prefix(5).map { "verification: \($0)" }
  }

  private func show(_ number: Int) {
    guard let last = samples.last else { return }
    Console.progress(
      "soak: \(LoadReport.number(last.time)) s, \(operations) operations, memory "
        + "\(last.memory >> 20) MiB, \(last.descriptors) descriptors, space "
        + "\(last.space >> 20) MiB",
      number: number)
  }
}
