// The workloads by name, each with its unit and which direction is better. The names are a
// contract: tables and checks elsewhere look rows up by them.

/// One thing that is measured.
enum Workload: String, CaseIterable, Codable {
  case load
  case putProcess = "single put .process"
  case putPower = "single put .power"
  case getUniform = "get uniform"
  case getHot = "get hot"
  case fullScan = "full scan"
  case seek = "seek + 50"
  case reopen
  case size = "size on disk"

  var unit: String {
    switch self {
    case .load: "docs/s"
    case .putProcess, .putPower, .seek: "µs"
    case .getUniform, .getHot: "ns"
    case .fullScan: "ns/doc"
    case .reopen: "ms"
    case .size: "MB"
    }
  }

  var lowerIsBetter: Bool { self != .load }
}

/// How much of each workload one run does. The same for every engine.
struct Plan: Codable {
  static let rowsPerSeek = 50
  static let hotKeys = 1_000
  static let cacheBytes = 1 << 30

  var documents: Int
  var valueLength: Int
  var workloads: [Workload]
  var documentsPerBatch = 1_000
  /// Reads are measured in passes, and a run's figure is the median pass.
  var passes: Int
  var getsPerPass: Int
  var hotGetsPerPass: Int
  var seeksPerPass: Int
  var scans: Int { passes }
  var reopens: Int
  var putsProcess: Int
  var putsPower: Int

  init(documents: Int, valueLength: Int, workloads: [Workload], quick: Bool) {
    self.documents = documents
    self.valueLength = valueLength
    self.workloads = workloads
    passes = quick ? 3 : 5
    getsPerPass = quick ? 30_000 : 100_000
    hotGetsPerPass = quick ? 50_000 : 100_000
    seeksPerPass = quick ? 500 : 2_000
    reopens = quick ? 3 : 5
    putsProcess = quick ? 3_000 : 20_000
    putsPower = quick ? 200 : 1_000
  }

  func includes(_ workload: Workload) -> Bool { workloads.contains(workload) }
}

/// What one run of one engine found for one workload.
struct Measurement: Codable {
  var workload: Workload
  var value: Double
  /// The slowest hundredth of the operations, where each was timed alone.
  var slowestHundredth: Double?
  /// Of what was read; `nil` where nothing is.
  var checksum: UInt64?
}

/// All that one run of one engine found.
struct RunResult: Codable {
  var engine: String
  var version: String
  var settings: String
  var measurements: [Measurement]
  /// What settling after the load took; not part of the load's figure.
  var settleSeconds: Double
}
