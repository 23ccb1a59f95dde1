// The amount of each workload in one run, the same for every engine. The parent makes the plan from
// the options and passes it to its children unchanged.

import BenchmarkKit
import Peers

struct Plan: Codable {
  static let rowsPerSeek = 50
  static let hotKeys = 1_000
  static let documentsPerBatch = 1_000
  static let cacheBytes = 1 << 30
  static let limitedCacheBytes = 64 << 20
  /// The process's memory limit in `get uniform equal memory`.
  static let equalMemoryBytes = 128 << 20
  static let smallDocuments = 20_000
  static let overwrites = 5
  static let writers = 64
  /// The number of rows that a concurrent writer commits, one by one, before it checks the clock.
  static let rowsPerTurn = 10
  static let readers = 2
  /// The open-loop rate of the writer beside the readers, in documents a second. The lines below
  /// the table name an engine that cannot keep it.
  static let pacedRate = 10_000
  static let recoveryBytes = 64 << 20

  var documents: Int
  var valueLength: Int
  var keyOrder: KeyOrder
  var workloads: [Workload]
  /// Reads are measured in passes, and a run's figure is the median pass.
  var passes: Int
  var getsPerPass: Int
  var hotGetsPerPass: Int
  var limitedGetsPerPass: Int
  var seeksPerPass: Int
  var reopens: Int
  var putsProcess: Int
  var putsPower: Int
  var batchesPower: Int
  var rowsPerWriter: Int
  var writersSeconds: Double
  var readersSeconds: Double
  /// The share of gets in the mixed workload; nil leaves the workload out.
  var readFraction: Double?
  var mixedOperations: Int
  /// The duration of each kind of sustained write.
  var sustainedSeconds: Double = 0
  /// Whether the table shows the cost of encryption.
  var comparesSealed = false

  var scans: Int { passes }
  /// A tenth, because most of these gets wait for the device.
  var equalGetsPerPass: Int { limitedGetsPerPass / 10 }
  var documentsSmall: Int { min(documents, Self.smallDocuments) }
  /// Fewer than are loaded, because overwriting a million documents five times would take SQLite
  /// longer than everything else together.
  var documentsOverwritten: Int { min(max(documents / 5, 1), 200_000) }

  init(
    documents: Int, valueLength: Int, keyOrder: KeyOrder, workloads: [Workload],
    readFraction: Double?, quick: Bool
  ) {
    self.documents = documents
    self.valueLength = valueLength
    self.keyOrder = keyOrder
    self.workloads = workloads
    self.readFraction = readFraction
    passes = quick ? 3 : 5
    getsPerPass = quick ? 30_000 : 100_000
    hotGetsPerPass = quick ? 50_000 : 100_000
    limitedGetsPerPass = quick ? 10_000 : 50_000
    seeksPerPass = quick ? 500 : 2_000
    reopens = quick ? 3 : 5
    putsProcess = quick ? 3_000 : 20_000
    putsPower = quick ? 200 : 1_000
    batchesPower = quick ? 10 : 30
    rowsPerWriter = quick ? 500 : 2_000
    writersSeconds = quick ? 0.3 : 1
    readersSeconds = quick ? 0.3 : 2
    mixedOperations = quick ? 5_000 : 50_000
  }

  func includes(_ workload: Workload) -> Bool { workloads.contains(workload) }

  func includesAny(of workloads: [Workload]) -> Bool { workloads.contains(where: includes) }

  /// Returns the phases of a run of `engine`, in order.
  func phases(engine: String, round: Int) -> [Phase] {
    var wanted = Set(workloads.map(\.phase))
    if wanted.contains(where: \.needsLoad) { wanted.insert(.load) }
    if wanted.contains(.recover) { wanted.insert(.crash) }
    return Phase.allCases.filter { phase in
      wanted.contains(phase) && (engine == "Ondol" || !phase.isOndolsOnly)
        && (round == 1 || !phase.onlyOnce)
    }
  }
}
