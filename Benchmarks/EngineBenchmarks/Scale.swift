// A database many times as large as memory: its load, size, opening and reads. One process loads,
// and starts another that opens and reads, so that nothing that the load left in memory helps or is
// counted.

import BenchmarkKit
import CPeers
import Foundation
import Peers

/// The task of the child process.
struct ScalePlan: Codable {
  /// The number of documents of the smallest size. For larger ones, the number takes about as long.
  var documents: Int
  var gets: Int
  /// Set for the process that reads: the size of a document in the existing database, in bytes.
  var readsValueLength: Int?

  func documents(of valueLength: Int) -> Int {
    valueLength == ScaleRun.smallLength ? documents : max(1, documents / 50)
  }
}

/// The workloads, for both sizes of documents.
enum ScaleWorkload: String, SuiteWorkload {
  case load = "load, 100 B"
  case wait = "longest write, 100 B"
  case written = "written for a byte, 100 B"
  case kept = "kept for a byte, 100 B"
  case opening = "opening, 100 B"
  case get = "get, 100 B"
  case descriptors = "descriptors, 100 B"
  case memory = "memory, 100 B"
  case loadLarge = "load, 16 KiB"
  case waitLarge = "longest write, 16 KiB"
  case writtenLarge = "written for a byte, 16 KiB"
  case keptLarge = "kept for a byte, 16 KiB"
  case openingLarge = "opening, 16 KiB"
  case getLarge = "get, 16 KiB"
  case descriptorsLarge = "descriptors, 16 KiB"
  case memoryLarge = "memory, 16 KiB"

  /// The measured figure, without the size.
  enum Measure: String {
    case load, wait, written, kept, opening, get, descriptors, memory
  }

  init?(_ measure: Measure, valueLength: Int) {
    let suffix = valueLength == ScaleRun.smallLength ? ", 100 B" : ", 16 KiB"
    let found = Self.allCases.first { $0.rawValue.hasSuffix(suffix) && $0.measure == measure }
    guard let found else { return nil }
    self = found
  }

  var measure: Measure {
    switch self {
    case .load, .loadLarge: .load
    case .wait, .waitLarge: .wait
    case .written, .writtenLarge: .written
    case .kept, .keptLarge: .kept
    case .opening, .openingLarge: .opening
    case .get, .getLarge: .get
    case .descriptors, .descriptorsLarge: .descriptors
    case .memory, .memoryLarge: .memory
    }
  }

  var valueLength: Int {
    rawValue.hasSuffix("100 B") ? ScaleRun.smallLength : ScaleRun.largeLength
  }

  var unit: String {
    switch measure {
    case .load: "docs/s"
    case .wait, .opening: "ms"
    case .written, .kept, .memory: "x"
    case .get: "µs"
    case .descriptors: "files"
    }
  }

  var lowerIsBetter: Bool { measure != .load }

  var goal: Double? {
    switch measure {
    case .opening: 20
    case .descriptors: 256
    case .memory: 1.2
    case .load, .wait, .written, .kept, .get: nil
    }
  }
}

/// One engine's turn.
struct ScaleRun {
  static let smallLength = 100
  static let largeLength = 16 << 10
  /// The engines with a mode in which one cache is all their memory.
  static let engines = ["Ondol", "RocksDB"]
  private static let cacheBytes = 64 << 20
  private static let documentsPerCommit = 100
  private static let keyLength = 16

  let task: SuiteTask<ScalePlan>
  let type: any KeyValueEngine.Type
  private var result: SuiteResult

  static func perform(
    _ task: SuiteTask<ScalePlan>, _ types: [any KeyValueEngine.Type]
  ) async throws -> SuiteResult {
    guard let type = types.first(where: { $0.name == task.engine }) else {
      throw PeerError(task.engine, "start", "there is no such engine")
    }
    var run = ScaleRun(
      task: task, type: type,
      result: SuiteResult(engine: task.engine, settings: "\(type.version), one cache of 64 MiB"))
    if let length = task.plan.readsValueLength {
      try await run.read(valueLength: length)
    } else {
      for length in [smallLength, largeLength] { try await run.loadAndRead(valueLength: length) }
    }
    return run.result
  }

  private func path(_ valueLength: Int) -> String { task.directory + "/\(valueLength)" }

  private func open(_ valueLength: Int) async throws -> any KeyValueEngine {
    try await type.open(
      OpenOptions(
        directory: path(valueLength), cacheBytes: Self.cacheBytes, durability: .process,
        cacheIsAll: true))
  }

  private mutating func note(_ measure: ScaleWorkload.Measure, _ length: Int, _ value: Double?) {
    guard let workload = ScaleWorkload(measure, valueLength: length) else { return }
    result.note(workload, value)
  }

  // MARK: - Loading

  private mutating func loadAndRead(valueLength: Int) async throws {
    let directory = path(valueLength)
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let written = Self.writtenBytes() ?? 0
    let memory = ProcessMemory.current()?.residentBytes ?? 0
    ProcessMemory.restartPeak()
    let documents = task.plan.documents(of: valueLength)
    let dataset = Dataset(valueLength: valueLength, keyOrder: .random)
    let engine = try await open(valueLength)
    var (nanoseconds, longest): (UInt64, UInt64) = (0, 0)
    var rows = RowList(valueLength: valueLength)
    for first in stride(from: 0, to: documents, by: Self.documentsPerCommit) {
      rows.removeAll()
      for number in first..<min(first + Self.documentsPerCommit, documents) {
        rows.append(number, of: dataset)
      }
      let start = peer_now()
      try await engine.write(rows)
      let time = peer_now() - start
      nanoseconds += time
      longest = max(longest, time)
    }
    let peak = (ProcessMemory.current()?.peakBytes ?? 0) - memory
    try await engine.close()
    writeOutEverything()
    let bytes = Double(documents) * Double(Self.keyLength + valueLength)
    note(.load, valueLength, Double(documents) / Double(nanoseconds) * 1e9)
    note(.wait, valueLength, Double(longest) / 1e6)
    note(.written, valueLength, Self.writtenBytes().map { Double($0 - written) / bytes })
    note(.kept, valueLength, Double(allocatedBytes(below: directory)) / bytes)

    var plan = task.plan
    plan.readsValueLength = valueLength
    let read = try runChild(
      SuiteTask(engine: task.engine, plan: plan, directory: task.directory), named: task.engine,
      as: SuiteResult.self)
    result.values.merge(read.values) { $1 }
    // The load needs more memory than the gets do.
    note(.memory, valueLength, Double(max(0, peak)) / Double(Self.cacheBytes))
  }

  /// The bytes that this process has passed to the system in writes, if the system reports them.
  private static func writtenBytes() -> UInt64? {
    let text = try? String(contentsOfFile: "/proc/self/io", encoding: .utf8)
    let line = text?.split(separator: "\n").first { $0.hasPrefix("wchar:") }
    return line?.split(separator: " ").last.flatMap { UInt64($0) }
  }

  // MARK: - Reading

  private mutating func read(valueLength: Int) async throws {
    let dataset = Dataset(valueLength: valueLength, keyOrder: .random)
    let documents = task.plan.documents(of: valueLength)
    var random = SplitMix(state: 77)
    var start = peer_now()
    let engine = try await open(valueLength)
    note(.opening, valueLength, Double(peer_now() - start) / 1e6)
    var nanoseconds: UInt64 = 0
    // The first tenth fills the cache.
    let warming = task.plan.gets / 10
    for (count, isTimed) in [(warming, false), (task.plan.gets, true)] {
      var keys = KeyList()
      for _ in 0..<count { keys.append(dataset.key(Int.random(in: 0..<documents, using: &random))) }
      start = peer_now()
      _ = try await engine.get(keys)
      if isTimed { nanoseconds = peer_now() - start }
    }
    note(.get, valueLength, Double(nanoseconds) / Double(task.plan.gets) / 1e3)
    let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
    note(.descriptors, valueLength, files.map { Double($0.count) })
    try await engine.close()
  }
}
