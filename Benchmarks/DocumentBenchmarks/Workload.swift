// The workloads by name, each with its unit and its largest time. The names are a contract: tables
// and checks elsewhere find rows by them.

import BenchmarkKit

/// One measured workload.
enum Workload: String, SuiteWorkload {
  case get = "get document"
  case decode = "decode document"
  case batchWrite = "batch write"
  case equality = "equality 1 of 1M"
  case inSeven = "in 7"
  case page = "page 20"
  case scan = "scan 1 of 11000"
  case decodeAll = "decode 35000"
  case countAll = "count all"
  case countWhere = "count where"
  case groupByIndex = "group by index"
  case groupByScan = "group by scan"
  case prefixScan = "prefix scan"
  case buildIndex1 = "build index 1"
  case buildIndex2 = "build index 2"
  case getOnMainActor = "get document from @MainActor"
  case textPage = "page 20 of texts"
  case foldedPage = "page 20 of folded texts"
  case wholeEquality = "equality of an integer"
  case exactEquality = "equality of a decimal"

  var unit: String {
    switch self {
    case .get, .decode, .equality, .inSeven, .page, .getOnMainActor, .textPage, .foldedPage,
      .wholeEquality, .exactEquality:
      "µs"
    case .batchWrite: "docs/s"
    default: "ms"
    }
  }

  var lowerIsBetter: Bool { self != .batchWrite }

  /// Ondol's goal on the machine of Docs/Performance.md; nil if the only goal is to be ahead of the
  /// peers.
  var goal: Double? {
    switch self {
    case .get: 2
    case .batchWrite: 60_000
    case .equality: 10
    case .inSeven: 40
    case .page: 60
    case .scan: 10
    case .decodeAll: 150
    default: nil
    }
  }

  /// Whether it uses the listing.
  var isOfListing: Bool {
    switch self {
    case .countAll, .countWhere, .groupByIndex, .groupByScan, .prefixScan, .buildIndex1,
      .buildIndex2:
      true
    default: false
    }
  }

  /// Whether it uses kinds of values that the peers do not have.
  var isOfWares: Bool {
    switch self {
    case .textPage, .foldedPage, .wholeEquality, .exactEquality: true
    default: false
    }
  }
}

/// The amount of each workload in one run, the same for every engine.
struct Plan: Codable {
  static let cacheBytes = 2 << 30
  static let documentsPerBatch = 1_000
  static let archived = 11_000
  static let exported = 35_000
  /// The mean size of a document's fields, for the rows.
  static let valueSize = 1_024

  var documents: Int
  var workloads: [Workload]
  /// Reads are measured in passes, and a run's figure is the median pass.
  var passes: Int
  var getsPerPass: Int
  var queriesPerPass: Int
  var scansPerPass = 5

  init(documents: Int, workloads: [Workload], quick: Bool) {
    self.documents = documents
    self.workloads = workloads
    passes = quick ? 3 : 5
    getsPerPass = quick ? 5_000 : 20_000
    queriesPerPass = quick ? 1_000 : 3_000
  }

  func includes(_ workload: Workload) -> Bool { workloads.contains(workload) }

  /// The number of files in the listing.
  var listed: Int { 3 * documents }

  /// Returns the number of a workload's documents.
  func count(_ workload: Workload) -> Int {
    switch workload {
    case .scan: Self.archived
    case .decodeAll: Self.exported
    case _ where workload.isOfWares: Ware.count
    default: workload.isOfListing ? listed : documents
    }
  }
}
