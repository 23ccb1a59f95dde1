// A search, made ready: units that score, and how they are combined. Evaluated for one run of
// documents after the other, and for those not gathered yet; ordinals of different runs are
// different documents, so nothing is carried from one to the next but how many documents have what.

/// What a term of a search may be.
enum SearchTerm: Sendable, Hashable {
  case exact([UInt8])
  case prefix([UInt8])

  var bytes: [UInt8] {
    switch self {
    case .exact(let bytes), .prefix(let bytes): bytes
    }
  }

  func matches(_ term: ArraySlice<UInt8>) -> Bool {
    switch self {
    case .exact(let bytes): term == bytes[...]
    case .prefix(let bytes): term.starts(with: bytes)
    }
  }
}

/// One place of a phrase: any of the terms may stand there.
typealias SearchPlace = [SearchTerm]

/// What scores as one.
struct SearchUnit: Sendable, Hashable {
  enum Form: Sendable, Hashable {
    /// One place behind the other; of one place alone, a term.
    case phrase
    /// All of them within so many positions, in any order.
    case near(Int)
  }

  var form: Form
  var places: [SearchPlace]
  /// As it was asked for.
  var text: String

  var needsPositions: Bool { places.count > 1 }
}

/// How units are combined.
indirect enum SearchNode: Sendable, Hashable {
  case unit(Int)
  /// Documents that meet all; scores are added.
  case all([SearchNode])
  /// Documents that meet any; scores are added.
  case any([SearchNode])
  /// Documents that meet the first and, when they meet the second, score more.
  case bonus(SearchNode, SearchNode)
  /// Documents that meet the first and not the second.
  case without(SearchNode, SearchNode)

  /// Units that a document in the result may have; one of them it must have.
  var positiveUnits: [Int] {
    switch self {
    case .unit(let unit): [unit]
    case .all(let nodes), .any(let nodes): nodes.flatMap(\.positiveUnits)
    case .bonus(let first, let second): first.positiveUnits + second.positiveUnits
    case .without(let node, _): node.positiveUnits
    }
  }
}

/// Documents of a run that a unit is in, and how much.
struct UnitHits: Sendable {
  var documents: [UInt32] = []
  /// Occurrences, weighted and set off against lengths; scores once they are scored.
  var values: [Double] = []

  /// Makes scores of what was counted.
  mutating func score(_ inverse: Double) {
    for place in values.indices { values[place] = Scoring.score(values[place], inverse) }
  }

  /// Adds what another field has.
  mutating func add(_ other: UnitHits) {
    if documents.isEmpty { self = other } else { self = .any(self, other) }
  }

  static func any(_ left: UnitHits, _ right: UnitHits) -> UnitHits {
    if left.documents.isEmpty { return right }
    if right.documents.isEmpty { return left }
    var result = UnitHits()
    let room = left.documents.count + right.documents.count
    result.documents.reserveCapacity(room)
    result.values.reserveCapacity(room)
    var (first, second) = (0, 0)
    while first < left.documents.count || second < right.documents.count {
      let one = first < left.documents.count ? left.documents[first] : .max
      let other = second < right.documents.count ? right.documents[second] : .max
      let hasOne = first < left.documents.count && (one <= other || second == right.documents.count)
      let hasOther =
        second < right.documents.count && (other <= one || first == left.documents.count)
      result.documents.append(hasOne ? one : other)
      result.values.append(
        (hasOne ? left.values[first] : 0) + (hasOther ? right.values[second] : 0))
      if hasOne { first += 1 }
      if hasOther { second += 1 }
    }
    return result
  }

  /// Those of the left that the right has (`isWanted`) or lacks, with both values added.
  static func filter(_ left: UnitHits, by right: UnitHits, isWanted: Bool) -> UnitHits {
    var result = UnitHits()
    var second = 0
    for first in left.documents.indices {
      let document = left.documents[first]
      while second < right.documents.count, right.documents[second] < document { second += 1 }
      let isFound = second < right.documents.count && right.documents[second] == document
      guard isFound == isWanted else { continue }
      result.documents.append(document)
      result.values.append(left.values[first] + (isFound ? right.values[second] : 0))
    }
    return result
  }

  /// All of the left, and what the right adds to them.
  static func bonus(_ left: UnitHits, _ right: UnitHits) -> UnitHits {
    var result = left
    var second = 0
    for first in left.documents.indices {
      let document = left.documents[first]
      while second < right.documents.count, right.documents[second] < document { second += 1 }
      guard second < right.documents.count, right.documents[second] == document else { continue }
      result.values[first] += right.values[second]
    }
    return result
  }
}

extension SearchNode {
  /// The documents of one run that are found, with their scores.
  func evaluate(_ units: [UnitHits]) -> UnitHits {
    switch self {
    case .unit(let unit): return units[unit]
    case .any(let nodes):
      var results = nodes.map { $0.evaluate(units) }
      // Pairs of short lists first, so that long ones are not copied for each.
      results.sort { $0.documents.count < $1.documents.count }
      return results.reduce(UnitHits()) { .any($0, $1) }
    case .all(let nodes):
      var results = nodes.map { $0.evaluate(units) }
      guard !results.isEmpty else { return UnitHits() }
      results.sort { $0.documents.count < $1.documents.count }
      return results.dropFirst().reduce(results[0]) { .filter($0, by: $1, isWanted: true) }
    case .bonus(let first, let second):
      return .bonus(first.evaluate(units), second.evaluate(units))
    case .without(let first, let second):
      return .filter(first.evaluate(units), by: second.evaluate(units), isWanted: false)
    }
  }
}

// MARK: - Phrases

extension SearchUnit {
  /// The documents in which the unit is, with the occurrences, of the postings of each of its
  /// places.
  func occurrences(in places: [Postings]) -> (
    documents: [UInt32], counts: [UInt32], lengths: [UInt32]
  ) {
    guard let first = places.first else { return ([], [], []) }
    if places.count == 1 { return (first.documents, first.occurrences, first.lengths) }
    var documents: [UInt32] = []
    var counts: [UInt32] = []
    var lengths: [UInt32] = []
    var cursors = [Int](repeating: 0, count: places.count)
    next: for place in first.documents.indices {
      let document = first.documents[place]
      cursors[0] = place
      for other in 1..<places.count {
        let list = places[other].documents
        while cursors[other] < list.count, list[cursors[other]] < document { cursors[other] += 1 }
        guard cursors[other] < list.count else { break next }
        guard list[cursors[other]] == document else { continue next }
      }
      let count = count(zip(places, cursors).map { $0.positions(of: $1) })
      guard count > 0 else { continue }
      documents.append(document)
      counts.append(count)
      lengths.append(first.lengths[place])
    }
    return (documents, counts, lengths)
  }

  /// How often the places come together, of the positions of each in one document.
  func count(_ lists: [ArraySlice<UInt32>]) -> UInt32 {
    var count: UInt32 = 0
    matches(lists) { _ in count += 1 }
    return count
  }

  /// Shows the positions of each time that the places come together.
  func matches(_ lists: [ArraySlice<UInt32>], _ visit: ([UInt32]) -> Void) {
    guard let first = lists.first else { return }
    for position in first {
      var found = [position]
      for (offset, list) in lists.enumerated().dropFirst() {
        let place: UInt32?
        switch form {
        case .phrase:
          let wanted = position + UInt32(offset)
          place = Self.first(in: list, from: wanted).flatMap { $0 == wanted ? $0 : nil }
        case .near(let distance):
          let reach = UInt32(clamping: distance)
          let low = position > reach ? position - reach : 0
          // The nearest one behind, or the first within reach.
          place = Self.first(in: list, from: low).flatMap { $0 <= position + reach ? $0 : nil }
        }
        guard let place else { break }
        found.append(place)
      }
      if found.count == lists.count { visit(found) }
    }
  }

  /// The first of a sorted list that is `low` or behind.
  private static func first(in list: ArraySlice<UInt32>, from low: UInt32) -> UInt32? {
    var (start, end) = (list.startIndex, list.endIndex)
    while start < end {
      let middle = (start + end) / 2
      if list[middle] < low { start = middle + 1 } else { end = middle }
    }
    return start < list.endIndex ? list[start] : nil
  }
}
