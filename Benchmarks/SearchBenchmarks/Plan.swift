// The rows of the search suite, and the amount of work for each.

import BenchmarkKit

enum Workload: String, SuiteWorkload {
  case load
  case put = "single put"
  case size
  case rareWord = "rare word"
  case commonWords = "two common words"
  case phrase
  case prefix
  case syllables = "two syllables"
  case besideSearches = "write beside 10000 searches"

  static let questions: [Workload] = [.rareWord, .commonWords, .phrase, .prefix, .syllables]

  var unit: String {
    switch self {
    case .load: "docs/s"
    case .size: "MB"
    case .besideSearches: "x of none"
    default: "µs"
    }
  }

  var lowerIsBetter: Bool { self != .load }

  var goal: Double? {
    switch self {
    case .put: 40
    case .syllables: 1_000
    case .besideSearches: 1.3
    default: nil
    }
  }
}

struct Plan: Codable {
  var documents: Int
  var workloads: [Workload]
  var quick: Bool
  var passes = 3

  /// The number of documents in a commit of the load.
  static let batchSize = 500
  static let listeners = 10_000

  var puts: Int { quick ? 1_000 : 4_000 }
  var questions: Int { quick ? 20 : 50 }
}
