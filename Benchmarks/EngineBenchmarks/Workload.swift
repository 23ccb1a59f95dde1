// The workloads by name, each with its unit, the better direction, and the phase of a run that
// measures it. The names are a contract: tables and checks elsewhere find rows by them.

import BenchmarkKit

/// One measured workload.
enum Workload: String, CaseIterable, Codable {
  case load
  case putProcess = "single put .process"
  case putPower = "single put .power"
  case deviceWrite = "device synced write"
  case putPowerRatio = "single put .power / device"
  case batchPower = "batch 1000 .power"
  case writersPower = "64 writers .power"
  case getUniform = "get uniform"
  case getSmall = "get uniform 20k"
  case getLimited = "get uniform 64 MiB cache"
  case getEqual = "get uniform equal memory"
  case getHot = "get hot"
  case readersWhileWriting = "readers while writing"
  case mixed
  case fullScan = "full scan"
  case seek = "seek + 50"
  case seekOne = "seek + 1"
  case reopen
  case recovery = "recovery 64 MiB log"
  case size = "size on disk"
  case sizeOverwritten = "size after 5 overwrites"
  case peakMemory = "peak memory of the load"
  case residentMemory = "resident memory"
  case residentLimited = "resident memory 64 MiB cache"

  var unit: String {
    switch self {
    case .load, .batchPower: "docs/s"
    case .writersPower: "commits/s"
    case .readersWhileWriting: "gets/s"
    case .putProcess, .putPower, .deviceWrite, .seek, .seekOne: "µs"
    case .putPowerRatio: "x"
    case .getUniform, .getHot, .getSmall, .getLimited, .getEqual, .mixed: "ns"
    case .fullScan: "ns/doc"
    case .reopen, .recovery: "ms"
    case .size, .sizeOverwritten, .peakMemory, .residentMemory, .residentLimited: "MB"
    }
  }

  var lowerIsBetter: Bool { !unit.hasSuffix("/s") }

  /// The largest acceptable figure of an encrypted database relative to a plain one, or the
  /// smallest if more is better; nil without a goal.
  var sealedFactor: Double? {
    switch self {
    case .getUniform: 1.03
    case .getLimited: 1.6
    case .load: 0.85
    case .putPower: 1.1
    default: nil
    }
  }

  /// Whether the engines affect it.
  var comparesEngines: Bool { self != .deviceWrite }

  var phase: Phase {
    switch self {
    case .load, .size, .peakMemory: .load
    case .reopen, .getUniform, .getHot, .fullScan, .seek, .seekOne, .residentMemory: .read
    case .getLimited, .residentLimited: .readLimited
    case .getEqual: .readEqual
    case .putProcess, .putPower, .deviceWrite, .putPowerRatio, .batchPower, .mixed: .write
    case .writersPower, .readersWhileWriting: .share
    case .getSmall: .readSmall
    case .sizeOverwritten: .overwrite
    case .recovery: .recover
    }
  }
}

/// A part of a run: a separate process, so that memory is counted from zero, on the databases of
/// the phases before it.
enum Phase: String, CaseIterable, Codable {
  case load
  case read
  case readLimited
  /// In a group of processes with a memory limit.
  case readEqual
  case write
  case share
  case readSmall
  case overwrite
  /// Leaves its logs unclosed, as a killed process does.
  case crash
  case recover

  /// Whether it uses the database of `load`.
  var needsLoad: Bool {
    switch self {
    case .read, .readLimited, .readEqual, .write, .share: true
    case .load, .readSmall, .overwrite, .crash, .recover: false
    }
  }

  /// Only Ondol's logs are measured.
  var isOndolsOnly: Bool { self == .crash || self == .recover }

  /// Its result is the same each time, and it takes long.
  var onlyOnce: Bool { self == .overwrite }
}

/// The result of one run of one engine for one workload.
struct Measurement: Codable {
  var workload: Workload
  var value: Double
  /// The spread of single operations, if they were timed.
  var spread: Spread?
  /// The checksum of the reads; `nil` if there are none, or if the run itself has compared it.
  var checksum: UInt64?
  /// The rate of the writer beside the readers, in documents a second.
  var attained: Double?
}

/// The result of one run of one engine, or of one phase of it.
struct RunResult: Codable {
  var engine: String
  var version: String
  var settings: String
  var measurements: [Measurement] = []
  /// The duration of settling after the load, which the load's figure does not include.
  var settleSeconds: Double?
  var sustained: [SustainedFigures] = []
}
