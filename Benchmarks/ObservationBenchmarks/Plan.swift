// What is measured, and how much of it.

import BenchmarkKit

enum Workload: String, SuiteWorkload {
  /// A write beside listeners that it does not concern, as a ratio to one beside none.
  case writeBeside100000 = "write beside 100000 listeners"
  /// The same with as many as an engine bears that asks each of them.
  case writeBeside1000 = "write beside 1000 listeners"
  /// To the only listener there is.
  case delivery = "delivery p50"
  /// To one of many, the others of whom it does not concern; as many as an engine bears that asks
  /// each of them, and more.
  case deliveryBeside1000 = "delivery beside 1000 p50"
  case deliveryBeside100000 = "delivery beside 100000 p50"
  /// To a listener in another open, which only reads, of the same files.
  case besideWriter = "delivery beside the writer p50"
  case identical = "delivery to 10000 identical"
  case largeResult = "1 of 100000 results changes"
  case idle = "memory for one that never reads"

  var unit: String {
    switch self {
    case .writeBeside100000, .writeBeside1000: "x"
    case .delivery, .deliveryBeside1000, .deliveryBeside100000, .besideWriter, .largeResult: "µs"
    case .identical: "ms"
    case .idle: "MB"
    }
  }

  var goal: Double? {
    switch self {
    case .largeResult: 20
    case .idle: 16
    default: nil
    }
  }
}

struct Plan: Codable {
  /// Results of the large query.
  var documents: Int
  var quick: Bool
  var workloads: [Workload] = []

  init(documents: Int, quick: Bool) {
    self.documents = documents
    self.quick = quick
  }

  /// Writes timed together, and how many times.
  var groupSize: Int { 200 }
  var groups: Int { quick ? 20 : 100 }
  /// Deliveries timed.
  var deliveries: Int { quick ? 500 : 3_000 }
  /// The same where each takes long.
  var slowDeliveries: Int { quick ? 20 : 100 }
  /// Writes that one who never reads sleeps through.
  var sleptThrough: Int { quick ? 100_000 : 1_000_000 }
  /// The same of documents of 200 kB.
  var largeSleptThrough: Int { quick ? 500 : 1_900 }
}
