// How a query finds its documents: what the planner makes and the executor carries out.

internal import OndolEngine

/// How a query finds its documents in one pattern.
struct Plan: Sendable {
  /// One way to candidates. A document may come on several ways.
  enum Access: Sendable {
    /// Lookups of documents' keys, which are sorted.
    case lookups([[UInt8]])
    /// The documents whose keys are in the range.
    case scan(KeyRange, reversed: Bool)
    /// The rows of an index.
    case index(IndexScan)
    /// The documents that have a row in each of the indexes; each gives its rows in the order of
    /// the documents' keys.
    case intersection([IndexScan])
  }

  /// Together they lead to every document of the result; when there are none, nothing can match.
  var ways: [Access]
  /// Whether each way gives its candidates in the order the query wants.
  var isInOrder: Bool
  /// Whether each candidate is in the result, so that counting them needs no document.
  var isExact = false
  /// Whether there are more ways than were looked at.
  var isCutShort = false
  /// Fields an index should have to serve the query, when none does.
  var suggestion: [IndexField]?

  /// Fields that the least narrow way has fixed.
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

  /// The names of indexes in it that are still being built, each once.
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
  /// Sorted, and they do not overlap.
  var ranges: [KeyRange]
  /// Bytes in front of a row's first component.
  var prefixLength: Int
  /// Whether the rows are walked from the last to the first.
  var isReversed = false
  /// Whether a document can have several rows in the ranges.
  var isRepeating = false
  /// Fields fixed to one value or a list of them; see `IndexStatistics`.
  var fixed = 0
}

extension KeyRange {
  /// The ranges sorted, each once, empty ones left out.
  static func normalized(_ ranges: [KeyRange]) -> [KeyRange] {
    var distinct: [KeyRange] = []
    for range in ranges.sorted(by: { $0.lower.bytes.compare($1.lower.bytes) < 0 })
    where !range.isEmpty && distinct.last != range {
      distinct.append(range)
    }
    return distinct
  }
}
