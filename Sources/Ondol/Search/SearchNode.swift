// A prepared search: units that have scores, and how they are combined. It is evaluated for one run
// of documents after the other, and for the documents that are not in a run yet. Ordinals of
// different runs are different documents, so nothing is carried from one run to the next except the
// numbers of documents.

internal import OndolEngine

/// The forms of a search term.
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

/// One place of a phrase: any of the terms matches there.
typealias SearchPlace = [SearchTerm]

/// A part of a search that has one score.
struct SearchUnit: Sendable, Hashable {
  enum Form: Sendable, Hashable {
    /// Consecutive places; a single place is a term.
    case phrase
    /// All of them within that many positions, in any order.
    case near(Int)
  }

  var form: Form
  var places: [SearchPlace]
  /// The text as it was typed.
  var text: String

  var needsPositions: Bool { places.count > 1 }
}

/// How units are combined.
indirect enum SearchNode: Sendable, Hashable {
  case unit(Int)
  /// Documents that match all; scores are added.
  case all([SearchNode])
  /// Documents that match any; scores are added.
  case any([SearchNode])
  /// Documents that match the first and, when they match the second, score more.
  case bonus(SearchNode, SearchNode)
  /// Documents that match the first and not the second.
  case without(SearchNode, SearchNode)

  /// Units that a document in the result may have; it must have one of them.
  var positiveUnits: [Int] {
    switch self {
    case .unit(let unit): [unit]
    case .all(let nodes), .any(let nodes): nodes.flatMap(\.positiveUnits)
    case .bonus(let first, let second): first.positiveUnits + second.positiveUnits
    case .without(let node, _): node.positiveUnits
    }
  }
}

extension ParsedSearch {
  /// Terms of which every document of the result has at least one. When several sets qualify, this
  /// is the one that the fewest documents are likely to have.
  var cover: [SearchTerm] { node.map(cover(of:)) ?? [] }

  private func cover(of node: SearchNode) -> [SearchTerm] {
    switch node {
    case .unit(let unit): rarest(units[unit].places)
    case .all(let nodes): rarest(nodes.map(cover(of:)))
    case .any(let nodes): Array(Set(nodes.flatMap(cover(of:))))
    case .bonus(let first, _), .without(let first, _): cover(of: first)
    }
  }

  private func rarest(_ covers: [[SearchTerm]]) -> [SearchTerm] {
    covers.min { Self.frequency(of: $0) < Self.frequency(of: $1) } ?? []
  }

  /// Long words are rarer than short ones, and words rarer than prefixes.
  private static func frequency(of terms: [SearchTerm]) -> Double {
    terms.reduce(0) { sum, term in
      let length = Double(max(1, term.bytes.count))
      return if case .exact = term { sum + 1 / length } else { sum + 8 / length }
    }
  }
}

/// The documents of a run that have a unit, with their values.
struct UnitHits: Sendable {
  var documents: [UInt32] = []
  /// Weighted occurrences, normalized by length; replaced by scores when they are scored.
  var values: [Double] = []

  /// Turns the counts into scores.
  mutating func score(_ inverse: Double) {
    for place in values.indices { values[place] = Scoring.score(values[place], inverse) }
  }

  /// Adds the hits of another field.
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

  /// All of the left, with the values that the right adds to them.
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
  /// The matching documents of one run, with their scores.
  func evaluate(_ units: [UnitHits]) -> UnitHits {
    switch self {
    case .unit(let unit): return units[unit]
    case .any(let nodes):
      var results = nodes.map { $0.evaluate(units) }
      // Short lists first, so that long ones are not copied for each.
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
  /// The documents that have the unit, with the occurrences, from the postings of each of its
  /// places.
  func occurrences(in places: [Postings]) throws(MalformedBytes) -> (
    documents: [UInt32], counts: [UInt32], lengths: [UInt32]
  ) {
    guard let first = places.first else { return ([], [], []) }
    if places.count == 1 { return (first.documents, first.occurrences, first.lengths) }
    var documents: [UInt32] = []
    var counts: [UInt32] = []
    var lengths: [UInt32] = []
    let lists = places.map(\.documents)
    var cursors = [Int](repeating: 0, count: places.count)
    var readers = places.map { PositionCursor($0) }
    var positions = [[UInt32]](repeating: [], count: places.count)
    next: for place in first.documents.indices {
      let document = first.documents[place]
      cursors[0] = place
      for other in 1..<lists.count {
        let end = lists[other].count
        var cursor = cursors[other]
        while cursor < end, lists[other][cursor] < document { cursor += 1 }
        cursors[other] = cursor
        guard cursor < end else { break next }
        guard lists[other][cursor] == document else { continue next }
      }
      for other in readers.indices {
        try readers[other].read(cursors[other], into: &positions[other])
      }
      let count = count(positions)
      guard count > 0 else { continue }
      documents.append(document)
      counts.append(count)
      lengths.append(first.lengths[place])
    }
    return (documents, counts, lengths)
  }

  /// How often the places occur together, from the positions of each in one document.
  func count(_ lists: [[UInt32]]) -> UInt32 {
    var count: UInt32 = 0
    if case .phrase = form, lists.count == 2 {
      // Most phrases have two words.
      var place = 0
      for position in lists[0] {
        while place < lists[1].count, lists[1][place] <= position { place += 1 }
        if place < lists[1].count, lists[1][place] == position + 1 { count += 1 }
      }
      return count
    }
    matches(lists.map { $0[...] }) { _ in count += 1 }
    return count
  }

  /// Shows the positions of each joint occurrence of the places.
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
          // The next one directly after it, or the first within reach.
          place = Self.first(in: list, from: low).flatMap { $0 <= position + reach ? $0 : nil }
        }
        guard let place else { break }
        found.append(place)
      }
      if found.count == lists.count { visit(found) }
    }
  }

  /// The first element of a sorted list at or after `low`.
  private static func first(in list: ArraySlice<UInt32>, from low: UInt32) -> UInt32? {
    var (start, end) = (list.startIndex, list.endIndex)
    while start < end {
      let middle = (start + end) / 2
      if list[middle] < low { start = middle + 1 } else { end = middle }
    }
    return start < list.endIndex ? list[start] : nil
  }
}
