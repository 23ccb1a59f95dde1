// How a query finds its documents. The planner makes a plan, and the executor carries it out.

internal import OndolEngine

/// How a query finds its documents in one pattern.
struct Plan: Sendable {
  /// One way to candidates. Several ways may lead to the same document.
  enum Access: Sendable {
    /// Lookups of documents' keys, which are sorted.
    case lookups([[UInt8]])
    /// The documents whose keys are in the range.
    case scan(KeyRange, reversed: Bool)
    /// The rows of an index.
    case index(IndexScan)
    /// The documents that have a row in each of the indexes. Each index gives its rows in the order
    /// of the documents' keys.
    case intersection([IndexScan])
  }

  /// Together the ways lead to every document of the result. With no ways, nothing can match.
  var ways: [Access]
  /// Whether each way gives its candidates in the query's order.
  var isInOrder: Bool
  /// Whether each candidate is in the result, so that counting needs no document.
  var isExact = false
  /// Whether there are more ways than the planner looked at.
  var isCutShort = false
  /// The fields of an index that would serve the query, when no index does.
  var suggestion: [IndexField]?

  /// The number of fields that the least narrow way has fixed.
  var fixed: Int {
    ways.map { way in
      switch way {
      case .lookups: .max
      case .scan: 0
      case .index(let scan): scan.fixed
      case .intersection(let scans): scans.map(\.fixed).reduce(0, +)
      }
    }.min() ?? .max
  }

  /// The names of unfinished indexes in the plan, each once.
  var unfinishedIndexes: [String] {
    var names: [String] = []
    for way in ways {
      let scans: [IndexScan] =
        switch way {
        case .lookups, .scan: []
        case .index(let scan): [scan]
        case .intersection(let scans): scans
        }
      for scan in scans where scan.index.state != .ready && !names.contains(scan.index.name) {
        names.append(scan.index.name)
      }
    }
    return names
  }

  static let nothing = Plan(ways: [], isInOrder: true, isExact: true)
}

/// Ranges of one index.
struct IndexScan: Sendable {
  let index: IndexDefinition
  /// Sorted and not overlapping.
  var ranges: [KeyRange]
  /// Bytes before a row's first component.
  var prefixLength: Int
  /// Whether the rows are walked from the last to the first.
  var isReversed = false
  /// Whether a document can have several rows in the ranges.
  var isRepeating = false
  /// Fields fixed to one value or to a list of values; see `IndexStatistics`.
  var fixed = 0
}

extension KeyRange {
  /// The ranges sorted, each once, without empty ones.
  static func normalized(_ ranges: [KeyRange]) -> [KeyRange] {
    var distinct: [KeyRange] = []
    for range in ranges.sorted(by: { $0.lower.bytes.compare($1.lower.bytes) < 0 })
    where !range.isEmpty && distinct.last != range {
      distinct.append(range)
    }
    return distinct
  }
}
