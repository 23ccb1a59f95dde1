// The measurements, and their amounts.

import BenchmarkKit

enum Workload: String, SuiteWorkload {
  /// A write beside unaffected listeners, as a ratio to one without listeners.
  case writeBeside100000 = "write beside 100000 listeners"
  /// The same with as many listeners as an engine can handle that queries for each of them.
  case writeBeside1000 = "write beside 1000 listeners"
  /// A delivery to the only listener.
  case delivery = "delivery p50"
  /// A delivery to one of many listeners, while the others are unaffected: as many as an engine can
  /// handle that queries for each of them, and more.
  case deliveryBeside1000 = "delivery beside 1000 p50"
  case deliveryBeside100000 = "delivery beside 100000 p50"
  /// A delivery to a listener in another open of the same files, which only reads.
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
  /// The number of results of the large query.
  var documents: Int
  var quick: Bool
  var workloads: [Workload] = []

  init(documents: Int, quick: Bool) {
    self.documents = documents
    self.quick = quick
  }

  /// The number of writes that are timed together, and the number of times.
  var groupSize: Int { 200 }
  var groups: Int { quick ? 20 : 100 }
  /// The number of timed deliveries.
  var deliveries: Int { quick ? 500 : 3_000 }
  /// The same for deliveries that take long.
  var slowDeliveries: Int { quick ? 20 : 100 }
  /// The number of writes that an idle listener leaves unread.
  var sleptThrough: Int { quick ? 100_000 : 1_000_000 }
  /// The same for documents of 200 kB.
  var largeSleptThrough: Int { quick ? 500 : 1_900 }
}
