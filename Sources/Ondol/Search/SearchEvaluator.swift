// Turns the postings of a search's terms into scored documents, run by run. It looks up everything
// first, because the weight of a term depends on how many documents in all runs have it. Then units
// become scores, and scores are combined.

internal import OndolEngine

/// One list of postings that a search needs: one place of a unit, in a field.
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
  /// The number of documents with each unit.
  private(set) var documentCounts: [Int]

  init(_ search: ParsedSearch, _ scoring: Scoring) {
    self.search = search
    self.scoring = scoring
    documentCounts = [Int](repeating: 0, count: search.units.count)
  }

  /// The fields that are searched.
  var fields: [Int] { scoring.weights.indices.filter { scoring.weights[$0] > 0 } }

  /// Adds the next run.
  ///
  /// - Parameter failure: the error for postings that cannot be read.
  mutating func addRun(
    failure: (MalformedBytes) -> DatabaseError,
    _ postings: (SearchLeaf) throws(DatabaseError) -> Postings
  ) throws(DatabaseError) {
    var run: [UnitHits] = []
    for (number, unit) in search.units.enumerated() {
      var hits = UnitHits()
      for field in fields {
        var places: [Postings] = []
        for place in unit.places.indices {
          let list = try postings(SearchLeaf(unit: number, place: place, field: field))
          // When one place has no documents, the others need no lookup.
          guard !list.documents.isEmpty else { break }
          places.append(list)
        }
        guard places.count == unit.places.count else { continue }
        do throws(MalformedBytes) {
          hits.add(try frequencies(of: unit, field, places))
        } catch {
          throw failure(error)
        }
      }
      documentCounts[number] += hits.documents.count
      run.append(hits)
    }
    hits.append(run)
  }

  private func frequencies(
    of unit: SearchUnit, _ field: Int, _ places: [Postings]
  ) throws(MalformedBytes) -> UnitHits {
    let found = try unit.occurrences(in: places)
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

  /// The contribution of each unit to the score of one document: its frequency there and its score.
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

/// Collects the postings of a search's terms from documents that are not in a run yet.
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

  /// The term, preceded by the number of the field.
  private static func within(_ field: Int, _ term: SearchTerm) -> (SearchTerm, UInt64) {
    let bytes = [UInt8(field + 1)] + term.bytes
    switch term {
    case .exact: return (.exact(bytes), TermFilter.hash(bytes))
    case .prefix: return (.prefix(bytes), 0)
    }
  }

  /// Adds the terms of a document; documents come in order.
  mutating func add(_ row: FreshRow, _ document: UInt32) throws(MalformedBytes) {
    let mayMatter = wanted.contains { wanted in
      wanted.terms.contains { (term, hash) in
        if case .exact = term { row.mayHave(hash) } else { true }
      }
    }
    guard mayMatter else { return }
    var found: [Int: [UInt32]] = [:]
    var reader = row.terms()
    while try reader.next() {
      for number in wanted.indices {
        guard wanted[number].terms.contains(where: { $0.term.matches(reader.term[...]) }) else {
          continue
        }
        found[number, default: []] += try reader.readPositions()
      }
    }
    for (number, positions) in found {
      let field = wanted[number].leaf.field
      guard field < row.lengths.count else { continue }
      wanted[number].postings.append(
        document, occurrences: UInt32(positions.count), length: UInt32(row.lengths[field]))
      wanted[number].postings.appendPositions(positions.sorted())
    }
  }

  subscript(leaf: SearchLeaf) -> Postings {
    places[leaf].map { wanted[$0].postings } ?? Postings()
  }
}
