// Carries a search out on one snapshot: words are looked up in every run, scored, and the best are
// asked whether they meet the query's other conditions, one after the other until there are enough.
// Only those are looked up, so a common word costs its postings and not its documents.

internal import OndolEngine

/// A search, carried out on one snapshot.
struct SearchExecutor {
  /// The documents of one pattern.
  private struct SearchedPart {
    var naming: DocumentNaming
    var matcher: Matcher
    var shaper: DocumentShaper
    var upgrader: RowUpgrader?
    var reader: WordIndexReader
    /// The fields of the search, by their numbers in the index.
    var fields: [Int]
    /// Tails of the documents that are not gathered yet.
    var fresh: [[UInt8]] = []
  }

  /// A run of a part; nil stands for the documents not gathered yet.
  private struct Source {
    var part: Int
    var run: SearchRun?
  }

  private struct Candidate {
    var score: Double
    var source: Int
    var document: UInt32
  }

  /// A document that was found.
  private struct Found {
    var score: Double
    var key: [UInt8]
    var part: Int
    var source: Int
    var document: UInt32
    var orderedBy: [Value?] = []
  }

  private let search: SearchQuery
  private let query: NormalQuery
  private let rows: Rows
  private let parsed: ParsedSearch
  private var parts: [SearchedPart] = []
  private var sources: [Source] = []
  private var evaluator: SearchEvaluator
  /// Documents that have the words, whether they meet the other conditions or not.
  private(set) var candidateCount = 0

  init(_ search: SearchQuery, _ rows: Rows) throws(DatabaseError) {
    self.search = search
    self.rows = rows.atOneMoment
    let shape = try search.shape()
    query = try NormalQuery(shape)
    parsed = ParsedSearch(search.text, matchesAll: search.matching == .all, Tokenizer())
    evaluator = SearchEvaluator(parsed, Scoring(statistics: SearchStatistics(), weights: []))
    try addParts(shape)
    try look()
  }

  // MARK: - Looking up

  private mutating func addParts(_ shape: QueryShape) throws(DatabaseError) {
    switch shape.source {
    case .collection(let path):
      let pattern = CollectionPattern(path)
      guard let entry = try rows.entry(of: pattern) else { return }
      try add(entry, pattern, path, shape)
    case .group(let id):
      for family in try rows.catalog.families(withCollections: id, in: rows) {
        for (pattern, entry) in family.collections.sorted(by: {
          $0.value.keyspace < $1.value.keyspace
        }) where pattern.collectionID == id {
          try add(entry, pattern, nil, shape)
        }
      }
    }
  }

  private mutating func add(
    _ entry: CollectionEntry, _ pattern: CollectionPattern, _ path: CollectionPath?,
    _ shape: QueryShape
  ) throws(DatabaseError) {
    let wanted = search.fields.map { IndexField($0) }
    let fitting = entry.searches.filter { index in
      index.kind.isOfGroup == (path == nil) && wanted.allSatisfy { index.fields.contains($0) }
    }.sorted { $0.fields.count < $1.fields.count }
    guard let index = fitting.first(where: { $0.state == .ready }) else {
      let names = wanted.map(\.description).joined(separator: ", ")
      throw DatabaseError(
        .failedPrecondition,
        fitting.isEmpty
          ? "there is no index of the words in \(names)"
          : "the index '\(fitting[0].name)' is being"
            + " built, and finds nothing before it is ready",
        suggestion: fitting.isEmpty ? "createSearchIndex(on:) makes one" : "wait for it",
        path: "\(pattern)")
    }
    let naming = DocumentNaming(pattern, entry.keyspace, collection: path)
    let matcher = Matcher(
      query, naming, symbols: entry.symbols, entry.timeToLive, endingAfter: rows.moment)
    let scope = path == nil ? [] : Array(naming.prefix.dropFirst(Keyspace.prefixLength))
    parts.append(
      SearchedPart(
        naming: naming, matcher: matcher,
        shaper: DocumentShaper(search.query.database, naming, entry.symbols, shape.selection),
        upgrader: rows.pendingUpgrade(of: pattern, entry).map { RowUpgrader($0, naming, matcher) },
        reader: try WordIndexReader(index, scope: scope, in: rows),
        fields: wanted.compactMap { index.fields.firstIndex(of: $0) }))
  }

  /// Looks the words up, in two steps: what scores depend on, and then the postings.
  private mutating func look() throws(DatabaseError) {
    guard parsed.node != nil else { return }
    var statistics = SearchStatistics()
    var fresh: [FreshPostings] = []
    let count = search.fields.count
    for number in parts.indices {
      let part = parts[number]
      for run in part.reader.runs {
        statistics.add(Self.chosen(part.fields, of: try part.reader.statistics(of: run)))
      }
      var postings = FreshPostings(parsed, fields: part.fields)
      var tails: [[UInt8]] = []
      try part.reader.forEachFresh { (tail, row) throws(MalformedBytes) in
        let lengths = part.fields.map { $0 < row.lengths.count ? row.lengths[$0] : 0 }
        statistics.add(documentOf: lengths)
        try postings.add(row, UInt32(tails.count))
        tails.append(tail)
      }
      parts[number].fresh = tails
      fresh.append(postings)
    }
    let weights = (0..<count).map { place -> Double in
      guard let part = parts.first, let search = part.reader.index.kind.search,
        place < part.fields.count, part.fields[place] < search.weights.count
      else { return 1 }
      return Double(search.weights[part.fields[place]]) / 1_000
    }
    evaluator = SearchEvaluator(parsed, Scoring(statistics: statistics, weights: weights))
    for (number, part) in parts.enumerated() {
      for run in part.reader.runs {
        sources.append(Source(part: number, run: run))
        try evaluator.addRun { (leaf) throws(DatabaseError) in
          let unit = parsed.units[leaf.unit]
          return try part.reader.postings(
            of: unit.places[leaf.place], field: part.fields[leaf.field], in: run,
            positions: unit.needsPositions)
        }
      }
      sources.append(Source(part: number, run: nil))
      let postings = fresh[number]
      try evaluator.addRun { (leaf) throws(DatabaseError) in
        var leaf = leaf
        leaf.field = part.fields[leaf.field]
        return postings[leaf]
      }
    }
  }

  private static func chosen(_ fields: [Int], of all: SearchStatistics) -> SearchStatistics {
    var chosen = all
    chosen.tokens = fields.map { $0 < all.tokens.count ? all.tokens[$0] : 0 }
    return chosen
  }

  // MARK: - Finding

  /// The documents found, in order.
  mutating func matches() throws(DatabaseError) -> [SearchMatch] {
    guard query.limit > 0 else { return [] }
    var heap = CandidateHeap<Candidate> { $0.score > $1.score }
    for (source, hits) in evaluator.finish().enumerated() {
      for place in hits.documents.indices {
        heap.add(
          Candidate(
            score: hits.values[place], source: source, document: hits.documents[place]))
      }
    }
    candidateCount = heap.count
    heap.order()
    let shape = try search.shape()
    let found = try shape.orders.isEmpty ? byScore(&heap) : byFields(&heap)
    var matches: [SearchMatch] = []
    for document in found {
      guard let snapshot = try snapshot(of: document) else { continue }
      let terms = evaluator.parts(of: document.document, in: document.source).map { part in
        SearchTermScore(
          text: parsed.units[part.unit].text, frequency: part.frequency,
          documents: evaluator.documentCounts[part.unit], score: part.score)
      }
      matches.append(
        SearchMatch(document: snapshot, score: document.score, terms: terms, search: parsed))
    }
    return query.isReversed ? matches.reversed() : matches
  }

  /// The number of documents found.
  mutating func count() throws(DatabaseError) -> Int {
    var count = 0
    for (source, hits) in evaluator.finish().enumerated() {
      for document in hits.documents {
        if try find(Candidate(score: 0, source: source, document: document)) != nil { count += 1 }
      }
    }
    return count
  }

  private func byScore(
    _ heap: inout CandidateHeap<Candidate>
  ) throws(DatabaseError) -> [Found] {
    var found: [Found] = []
    let wanted = query.limit.addingReportingOverflow(query.offset)
    let limit = wanted.overflow ? Int.max : wanted.partialValue
    while found.count < limit, let best = heap.takeFirst() {
      // Documents of one score are in the order of their keys.
      var equal = [best]
      while let next = heap.first, next.score == best.score {
        equal.append(next)
        heap.takeFirst()
      }
      var group: [Found] = []
      for candidate in equal {
        if let document = try find(candidate), isBehindStart(document) { group.append(document) }
      }
      group.sort { $0.key.bytes.compare($1.key.bytes) < 0 }
      found += group
    }
    return Array(found.prefix(limit).dropFirst(query.offset))
  }

  private func isBehindStart(_ document: Found) -> Bool {
    guard let start = search.start else { return true }
    if document.score != start.score { return document.score < start.score }
    let tail = document.key.dropFirst(Keyspace.prefixLength)
    return Array(tail).bytes.compare(start.tail.bytes) > 0
  }

  private func byFields(
    _ heap: inout CandidateHeap<Candidate>
  ) throws(DatabaseError) -> [Found] {
    var found: [Found] = []
    while let candidate = heap.takeFirst() {
      if let document = try find(candidate) { found.append(document) }
    }
    found.sort { query.orders.areInOrder($0.orderedBy, $1.orderedBy) }
    return Array(found.dropFirst(query.offset).prefix(query.limit))
  }

  /// The document of a candidate, if it is there and meets the query's conditions.
  private func find(_ candidate: Candidate) throws(DatabaseError) -> Found? {
    let source = sources[candidate.source]
    let part = parts[source.part]
    let tail: [UInt8]?
    if let run = source.run {
      tail = try part.reader.tail(of: candidate.document, in: run)
    } else {
      tail = part.fresh[Int(candidate.document)]
    }
    guard let tail else { return nil }
    let key = part.naming.keyspace.prefix + tail
    var found: Found?
    _ = try rows.show(key, part.upgrader) { (key, row) throws(DatabaseError) in
      let view = try part.shaper.view(row, key)
      guard try part.matcher.matches(view, key) else { return }
      found = Found(
        score: candidate.score, key: key.array, part: source.part, source: candidate.source,
        document: candidate.document, orderedBy: try part.matcher.sortKeys(of: view, key))
    }
    return found
  }

  private func snapshot(of found: Found) throws(DatabaseError) -> DocumentSnapshot? {
    let part = parts[found.part]
    var snapshot: DocumentSnapshot?
    _ = try rows.show(found.key, part.upgrader) { (key, row) throws(DatabaseError) in
      snapshot = try part.shaper.snapshot(part.shaper.view(row, key), row, key)
    }
    return snapshot
  }

  // MARK: - Suggestions

  /// Terms that begin as the last word of the text does, those of most documents first.
  func suggestions(for text: String, limit: Int) throws(DatabaseError) -> [SearchSuggestion] {
    let list = Tokenizer().tokens(of: text)
    guard !list.tokens.isEmpty else { return [] }
    let prefix = list.term(list.tokens.count - 1)
    var counts: [[UInt8]: Int] = [:]
    for part in parts {
      for field in part.fields {
        for run in part.reader.runs {
          try part.reader.countTerms(of: run, field: field, behind: prefix, into: &counts)
        }
        let start = [UInt8(field + 1)] + prefix
        try part.reader.forEachFresh { (_, row) throws(MalformedBytes) in
          try row.forEach { (term, _, _) throws(MalformedBytes) in
            if term.starts(with: start) { counts[term.extracting(1...).array, default: 0] += 1 }
            return true
          }
        }
      }
    }
    return counts.compactMap { (term, documents) in
      String(utf8: term.bytes).map { SearchSuggestion(term: $0, documents: documents) }
    }.sorted {
      $0.documents != $1.documents
        ? $0.documents > $1.documents : $0.term.compareBytes($1.term) < 0
    }.prefix(max(0, limit)).map { $0 }
  }
}

/// The first of many, one after the other, without sorting those that nobody asks for.
private struct CandidateHeap<Element> {
  private var elements: [Element] = []
  private let isInFront: (Element, Element) -> Bool

  init(_ isInFront: @escaping (Element, Element) -> Bool) {
    self.isInFront = isInFront
  }

  var count: Int { elements.count }
  var first: Element? { elements.first }

  mutating func add(_ element: Element) { elements.append(element) }

  /// To be called once all were added.
  mutating func order() {
    for place in stride(from: elements.count / 2 - 1, through: 0, by: -1) { sink(place) }
  }

  @discardableResult
  mutating func takeFirst() -> Element? {
    guard let first = elements.first, let last = elements.popLast() else { return nil }
    if !elements.isEmpty {
      elements[0] = last
      sink(0)
    }
    return first
  }

  private mutating func sink(_ start: Int) {
    var place = start
    while true {
      let left = 2 * place + 1
      guard left < elements.count else { return }
      let right = left + 1
      let child =
        right < elements.count && isInFront(elements[right], elements[left]) ? right : left
      guard isInFront(elements[child], elements[place]) else { return }
      elements.swapAt(child, place)
      place = child
    }
  }
}
