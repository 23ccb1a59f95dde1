// `tenants`: many databases in one process, as in an app that gives each customer one. They share
// threads and descriptors, so an idle one must cost next to nothing, and a busy one must not delay
// the reads of the others.

import ArgumentParser
import Foundation
import Ondol
import OndolEngine
import OndolTerminal
import OndolTestKit

struct TenantsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tenants",
    abstract: "Opens many databases at once, and measures idle ones and waits between them.",
    discussion: """
      Makes the databases, opens all of them, and says how many threads, descriptors and bytes of \
      memory they have. Then it times reads of most of them, alone and while one database is \
      written and scanned as fast as it can be. Exit status 1 when there are more than 16 threads, \
      or an idle database takes more than 60 KB or more than 2 descriptors beside its lock. Memory \
      and threads are known on Linux only. A database takes 3 descriptors: for thousands of them \
      the process's hard limit must be high enough.
      """)

  @Option(help: "The number of open databases.")
  var databases = 500

  @Option(help: "The seconds of each measurement of reads.")
  var seconds = 5.0

  @Option(help: "The number of documents in each database.")
  var documents = 20

  @OptionGroup var place: PlaceOptions

  func validate() throws {
    guard databases > 1, documents > 0, seconds > 0, seconds.isFinite else {
      throw ValidationError(
        "--databases must be above 1, and --documents and --seconds above 0")
    }
  }

  func run() async throws {
    let report = try await place.use { seed, path in
      var tenants = Tenants(count: databases, documents: documents, seed: seed, path: path)
      return try await tenants.run(for: .seconds(seconds))
    }
    for line in report.table + report.faults { Console.say(lines: line) }
    print(report.verdict)
    try endCommand(isSound: report.faults.isEmpty, isInterrupted: false)
  }
}

/// The result of many databases.
struct TenantsReport: Encodable {
  /// What all of them use at one moment.
  struct Look: Encodable {
    /// Ondol's threads, by their names; 0 if the system does not report them.
    var threads: Int
    /// The number of descriptors for each database, in addition to its lock.
    var descriptors: Double
    /// The resident bytes of a database.
    var memory: Int
  }

  static let mostThreads = 16
  static let mostMemory = 60_000
  static let mostDescriptors = 2.0

  var seed: UInt64
  var databases: Int
  /// After opening, and after each has been written and has come to rest.
  var opened, written: Look
  /// After one database was busy.
  var threads = 0
  /// The latencies of the others' reads, in microseconds, without and with a busy database.
  var p50Alone = 0.0
  var p50Beside = 0.0
  var p99Alone = 0.0
  var p99Beside = 0.0
  /// The commits of the busy database.
  var commits = 0

  var faults: [String] {
    var faults: [String] = []
    let most = max(opened.threads, written.threads, threads)
    if most > Self.mostThreads { faults.append("\(most) threads") }
    for (name, look) in [("opened", opened), ("written", written)] {
      if look.descriptors > Self.mostDescriptors {
        faults.append("\(name): \(look.descriptors) descriptors a database beside its lock")
      }
    }
    if opened.memory > Self.mostMemory { faults.append("\(opened.memory) bytes a database") }
    return faults
  }

  var table: [String] {
    [("opened", opened), ("written", written)].map { name, look in
      "\(name): \(look.threads) threads; a database takes \(look.memory) bytes and "
        + "\(LoadReport.number(look.descriptors)) descriptors beside its lock"
    } + [
      "reads of the others, p50 and p99: alone \(LoadReport.number(p50Alone)) and "
        + "\(LoadReport.number(p99Alone)) µs, beside one that works hard "
        + "\(LoadReport.number(p50Beside)) and \(LoadReport.number(p99Beside)) µs "
        + "(\(commits) commits, \(threads) threads)"
    ]
  }

  var verdict: String {
    "tenants: \(databases) databases, \(max(opened.threads, threads)) threads, "
      + "\(opened.memory) bytes and \(LoadReport.number(opened.descriptors)) descriptors each, "
      + "p99 times \(LoadReport.number(p99Beside / max(p99Alone, 1e-9))) beside one that works "
      + "hard: \(faults.isEmpty ? "sound" : "\(faults.count) faults"), seed \(seed)"
  }
}

/// Databases that are all open at once.
struct Tenants {
  let count: Int
  let documents: Int
  let seed: UInt64
  let path: String
  private var databases: [Database] = []

  init(count: Int, documents: Int, seed: UInt64, path: String) {
    self.count = count
    self.documents = documents
    self.seed = seed
    self.path = path
  }

  mutating func run(for duration: Duration) async throws -> TenantsReport {
    Console.say(
      "tenants: seed \(seed), \(count) databases in \(path), "
        + "\(FileLimit.raise()) descriptors at most")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    for number in 0..<count {
      let database = try await Database.open(at: place(number))
      try await write(documents, to: database)
      try await database.close()
      Console.progress("making: \(number + 1)", number: number / 10)
    }
    let before = SoakSample(time: 0, operations: 0, database: path)
    for number in 0..<count { databases.append(try await Database.open(at: place(number))) }
    let opened = look(since: before)
    for database in databases { try await write(1, to: database) }
    for database in databases { try await database.compact() }
    var report = TenantsReport(
      seed: seed, databases: count, opened: opened, written: look(since: before))
    Console.endProgress()
    let alone = await readLatencies(for: duration)
    let work = HardWork(databases[0], seed: seed)
    async let commits = work.run()
    let beside = await readLatencies(for: duration)
    work.stop()
    report.commits = try await commits
    report.threads = Self.threadCount()
    (report.p50Alone, report.p99Alone) = Self.microseconds(alone)
    (report.p50Beside, report.p99Beside) = Self.microseconds(beside)
    for database in databases { try await database.close() }
    return report
  }

  private func place(_ number: Int) -> String { "\(path)/\(number).ondol" }

  private func write(_ count: Int, to database: Database) async throws {
    let batch = database.batch()
    for number in 0..<count {
      let fields: [String: Value] = ["number": .integer(Int64(number)), "text": "of a tenant"]
      try batch.setData(fields, forDocument: database.collection("notes").document("\(number)"))
    }
    try await batch.commit(durability: .process)
  }

  // MARK: - Reads

  /// Reads all databases except the first, one after another with pauses, so that the latencies
  /// show waits for the busy database and not for each other.
  private func readLatencies(for duration: Duration) async -> LatencyHistogram {
    var latencies = LatencyHistogram()
    var random = SeededRandom(seed: seed)
    let end = ContinuousClock.now + duration
    while ContinuousClock.now < end {
      let database = databases[Int.random(in: 1..<count, using: &random)]
      let number = Int.random(in: 0..<documents, using: &random)
      let start = ContinuousClock.now
      _ = try? await database.collection("notes").document("\(number)").getDocument()
      latencies.record(ContinuousClock.now - start)
      try? await Task.sleep(for: .microseconds(500))
    }
    return latencies
  }

  private static func microseconds(_ latencies: LatencyHistogram) -> (p50: Double, p99: Double) {
    (Double(latencies.percentile(50)) / 1_000, Double(latencies.percentile(99)) / 1_000)
  }

  // MARK: - Looking

  private func look(since before: SoakSample) -> TenantsReport.Look {
    let now = SoakSample(time: 0, operations: 0, database: path)
    return TenantsReport.Look(
      threads: Self.threadCount(),
      descriptors: Double(now.descriptors - before.descriptors) / Double(count) - 1,
      memory: (now.memory - before.memory) / count)
  }

  /// The number of the process's threads that have one of Ondol's names.
  private static func threadCount() -> Int {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
    return tasks.count { task in
      let name = try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)
      return name?.hasPrefix("ondol-") ?? false
    }
  }
}

/// One database that is written and scanned as fast as possible.
private final class HardWork: Sendable {
  private static let writers = 4
  private static let documents = 20_000

  private let database: Database
  private let seed: UInt64
  private let isOver = Guarded(false)

  init(_ database: Database, seed: UInt64) {
    self.database = database
    self.seed = seed
  }

  func stop() { isOver.withLock { $0 = true } }

  /// Works until it is stopped, and returns the number of its commits.
  func run() async throws -> Int {
    try await withThrowingTaskGroup(of: Int.self) { group in
      for writer in 0..<Self.writers {
        group.addTask { [self] in try await write(as: writer) }
      }
      group.addTask { [self] in
        while !isOver.withLock({ $0 }) {
          _ = try await database.collection("work").whereField("number", isLessThan: 0)
            .getDocuments()
        }
        return 0
      }
      return try await group.reduce(0, +)
    }
  }

  private func write(as writer: Int) async throws -> Int {
    var random = SeededRandom(seed: SeededRandom.derive(seed, writer))
    let text = String(repeating: "work ", count: 100)
    var commits = 0
    while !isOver.withLock({ $0 }) {
      let batch = database.batch()
      for _ in 0..<100 {
        let number = Int.random(in: 0..<Self.documents, using: &random)
        let fields: [String: Value] = ["number": .integer(Int64(number)), "text": .string(text)]
        try batch.setData(fields, forDocument: database.collection("work").document("\(number)"))
      }
      try await batch.commit(durability: .process)
      commits += 1
    }
    return commits
  }
}
