// From the postings of a search's terms to scored documents, run by run. First everything is
// looked up, because what a term tells depends on how many documents have it in all runs together;
// then units become scores and scores are combined.

internal import OndolEngine

/// One list of postings that a search needs: a place of a unit, in a field.
struct SearchLeaf: Sendable, Hashable {
  var unit: Int
  var place: Int
  /// The number of the field in the index, from 0.
  var field: Int
}

/// Evaluates a search.
struct SearchEvaluator: Sendable {
  let search: ParsedSearch
  let scoring: Scoring
  /// By run.
  private var hits: [[UnitHits]] = []
  /// Documents that each unit is in.
  private(set) var documentCounts: [Int]

  init(_ search: ParsedSearch, _ scoring: Scoring) {
    self.search = search
    self.scoring = scoring
    documentCounts = [Int](repeating: 0, count: search.units.count)
  }

  /// The fields that are searched.
  var fields: [Int] { scoring.weights.indices.filter { scoring.weights[$0] > 0 } }

  /// Adds the next run.
  mutating func addRun(
    _ postings: (SearchLeaf) throws(DatabaseError) -> Postings
  ) throws(DatabaseError) {
    var run: [UnitHits] = []
    for (number, unit) in search.units.enumerated() {
      var hits = UnitHits()
      for field in fields {
        var places: [Postings] = []
        for place in unit.places.indices {
          let list = try postings(SearchLeaf(unit: number, place: place, field: field))
          // What is missing at one place need not be looked up at the others.
          guard !list.documents.isEmpty else { break }
          places.append(list)
        }
        guard places.count == unit.places.count else { continue }
        hits.add(frequencies(of: unit, field, places))
      }
      documentCounts[number] += hits.documents.count
      run.append(hits)
    }
    hits.append(run)
  }

  private func frequencies(of unit: SearchUnit, _ field: Int, _ places: [Postings]) -> UnitHits {
    let found = unit.occurrences(in: places)
    let average = scoring.statistics.averageLength(of: field)
    let weight = scoring.weights[field]
    var hits = UnitHits()
    hits.documents = found.documents
    hits.values.reserveCapacity(found.documents.count)
    for place in found.documents.indices {
      hits.values.append(
        scoring.frequency(
          found.counts[place], length: found.lengths[place], weight: weight, average: average))
    }
    return hits
  }

  /// The documents found, by run, with their scores.
  func finish() -> [UnitHits] {
    guard let node = search.node else { return [] }
    let inverse = documentCounts.map(scoring.inverseFrequency)
    return hits.map { run in
      var run = run
      for unit in run.indices { run[unit].score(inverse[unit]) }
      return node.evaluate(run)
    }
  }

  /// What each unit adds to the score of one document: its frequency there and its score.
  func parts(of document: UInt32, in run: Int) -> [(unit: Int, frequency: Double, score: Double)] {
    hits[run].enumerated().compactMap { (number, unit) in
      guard let place = unit.place(of: document) else { return nil }
      let inverse = scoring.inverseFrequency(documentCounts[number])
      return (number, unit.values[place], Scoring.score(unit.values[place], inverse))
    }
  }
}

extension UnitHits {
  fileprivate func place(of document: UInt32) -> Int? {
    var (low, high) = (0, documents.count)
    while low < high {
      let middle = (low + high) / 2
      if documents[middle] < document { low = middle + 1 } else { high = middle }
    }
    return low < documents.count && documents[low] == document ? low : nil
  }
}

/// Collects the postings of a search's terms from documents that are not gathered yet.
struct FreshPostings {
  private struct Wanted {
    var leaf: SearchLeaf
    var terms: [(term: SearchTerm, hash: UInt64)]
    var postings = Postings()
  }

  private var wanted: [Wanted] = []
  private var places: [SearchLeaf: Int] = [:]

  init(_ search: ParsedSearch, fields: [Int]) {
    for (number, unit) in search.units.enumerated() {
      for field in fields {
        for (place, terms) in unit.places.enumerated() {
          let leaf = SearchLeaf(unit: number, place: place, field: field)
          places[leaf] = wanted.count
          wanted.append(
            Wanted(leaf: leaf, terms: terms.map { Self.within(field, $0) }))
        }
      }
    }
  }

  /// The term with the number of the field in front.
  private static func within(_ field: Int, _ term: SearchTerm) -> (SearchTerm, UInt64) {
    let bytes = [UInt8(field + 1)] + term.bytes
    switch term {
    case .exact: return (.exact(bytes), TermFilter.hash(bytes.bytes))
    case .prefix: return (.prefix(bytes), 0)
    }
  }

  /// Adds the terms of a document; documents come in order.
  mutating func add(_ row: borrowing FreshRow, _ document: UInt32) throws(MalformedBytes) {
    let mayMatter = wanted.contains { wanted in
      wanted.terms.contains { (term, hash) in
        if case .exact = term { row.mayHave(hash) } else { true }
      }
    }
    guard mayMatter else { return }
    var found: [Int: (count: Int, positions: [UInt32])] = [:]
    try row.forEach { (bytes, count, list) throws(MalformedBytes) in
      for number in wanted.indices {
        let isWanted = wanted[number].terms.contains { (term, _) in
          switch term {
          case .exact(let wanted): bytes.compare(wanted.bytes) == 0
          case .prefix(let prefix): bytes.starts(with: prefix)
          }
        }
        guard isWanted else { continue }
        found[number, default: (0, [])].count += count
        found[number, default: (0, [])].positions += try PositionReader.positions(list)
      }
      return true
    }
    for (number, (count, positions)) in found {
      let field = wanted[number].leaf.field
      guard field < row.lengths.count else { continue }
      wanted[number].postings.append(
        document, occurrences: UInt32(count), length: UInt32(row.lengths[field]),
        positions.sorted())
    }
  }

  subscript(leaf: SearchLeaf) -> Postings {
    places[leaf].map { wanted[$0].postings } ?? Postings()
  }
}
