// Carries out a search on one snapshot. It looks up the words in every run and scores the
// documents. Then it checks the query's other conditions on the best ones, one after the other,
// until there are enough. Only these documents are read, so a common word costs its postings and
// not its documents.

internal import OndolEngine

/// A search on one snapshot.
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
    /// The tails of the documents that are not in a run yet.
    var fresh: [[UInt8]] = []

    var failure: (MalformedBytes) -> DatabaseError {
      { [index = reader.index] in DatabaseError(searching: index, $0) }
    }
  }

  /// A run of a part; nil means the documents that are not in a run yet.
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
    var snapshot: DocumentSnapshot?
  }

  private let search: SearchQuery
  private let query: NormalQuery
  private let rows: Rows
  private var parsed: ParsedSearch
  /// The tokenizer of the indexes.
  private(set) var tokenizer = Tokenizer()
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
    parsed = ParsedSearch("", matchesAll: false, tokenizer)
    evaluator = SearchEvaluator(parsed, Scoring(statistics: SearchStatistics(), weights: []))
    try addParts(shape)
    parsed = ParsedSearch(search.text, matchesAll: search.matching == .all, tokenizer)
    try look()
  }

  // MARK: - Lookup

  private mutating func addParts(_ shape: QueryShape) throws(DatabaseError) {
    switch shape.source {
    case .collection(let path):
      let pattern = CollectionPattern(path)
      guard let entry = try rows.entry(of: pattern) else { return }
      let index = try fitting(entry, pattern, isOfGroup: false)[0]
      tokenizer = try rows.tokenizer(of: index, pattern)
      try add(entry, index, pattern, path, shape)
    case .group(let id):
      var searched: [(CollectionPattern, CollectionEntry, [IndexDefinition])] = []
      for family in try rows.catalog.families(withCollections: id, in: rows) {
        for (pattern, entry) in family.collections.sorted(by: {
          $0.value.keyspace < $1.value.keyspace
        }) where pattern.collectionID == id {
          searched.append((pattern, entry, try fitting(entry, pattern, isOfGroup: true)))
        }
      }
      guard let first = searched.first else { return }
      // All of them are searched for the same terms.
      guard
        let chosen = first.2.first(where: { index in
          searched.allSatisfy { $0.2.contains { $0.kind.hasTokenizer(of: index.kind) } }
        })
      else {
        throw DatabaseError(
          .failedPrecondition, "the collections of the group have no index of words in common",
          suggestion: "wait for the one that is being built", path: id.text)
      }
      tokenizer = try rows.tokenizer(of: chosen, first.0)
      for (pattern, entry, indexes) in searched {
        let index = indexes.first { $0.kind.hasTokenizer(of: chosen.kind) }
        if let index { try add(entry, index, pattern, nil, shape) }
      }
    }
  }

  /// The indexes that can serve the search, at least one: those with the fewest fields first, and
  /// among these the oldest first.
  private func fitting(
    _ entry: CollectionEntry, _ pattern: CollectionPattern, isOfGroup: Bool
  ) throws(DatabaseError) -> [IndexDefinition] {
    let wanted = search.fields.map { IndexField($0) }
    let fitting = entry.searches.filter { index in
      index.kind.isOfGroup == isOfGroup && wanted.allSatisfy { index.fields.contains($0) }
    }.sorted { ($0.fields.count, $0.keyspace.rawValue) < ($1.fields.count, $1.keyspace.rawValue) }
    let ready = fitting.filter { $0.state == .ready }
    guard !ready.isEmpty else {
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
    return ready
  }

  private mutating func add(
    _ entry: CollectionEntry, _ index: IndexDefinition, _ pattern: CollectionPattern,
    _ path: CollectionPath?, _ shape: QueryShape
  ) throws(DatabaseError) {
    let wanted = search.fields.map { IndexField($0) }
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

  /// Looks up the words in two steps: the statistics that scores depend on, and then the postings.
  private mutating func look() throws(DatabaseError) {
    guard parsed.node != nil else { return }
    var statistics = SearchStatistics()
    var fresh: [FreshPostings] = []
    let count = search.fields.count
    for number in parts.indices {
      let part = parts[number]
      for run in part.reader.runs {
        let known = search.query.database.searchStatistics
        statistics.add(Self.chosen(part.fields, of: try part.reader.statistics(of: run, known)))
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
        try evaluator.addRun(failure: part.failure) { (leaf) throws(DatabaseError) in
          let unit = parsed.units[leaf.unit]
          return try part.reader.postings(
            of: unit.places[leaf.place], field: part.fields[leaf.field], in: run,
            positions: unit.needsPositions)
        }
      }
      sources.append(Source(part: number, run: nil))
      let postings = fresh[number]
      try evaluator.addRun(failure: part.failure) { (leaf) throws(DatabaseError) in
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

  // MARK: - Results

  /// The documents found, in order.
  mutating func matches() throws(DatabaseError) -> [SearchMatch] {
    guard query.limit > 0 else { return [] }
    let shape = try search.shape()
    let all = evaluator.finish()
    candidateCount = all.reduce(0) { $0 + $1.documents.count }
    let found = try shape.orders.isEmpty ? byScore(all) : byFields(all)
    var matches: [SearchMatch] = []
    for document in found {
      guard let snapshot = try snapshot(of: document) else { continue }
      let terms = evaluator.parts(of: document.document, in: document.source).map { part in
        SearchTermScore(
          text: parsed.units[part.unit].text, frequency: part.frequency,
          documents: evaluator.documentCounts[part.unit], score: part.score)
      }
      matches.append(
        SearchMatch(
          document: snapshot, score: document.score, terms: terms, search: parsed,
          tokenizer: tokenizer))
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

  /// The best matches, as many as wanted. It looks at a few more candidates than that first, and at
  /// more only when too many of those were deleted or do not meet the other conditions.
  private func byScore(_ all: [UnitHits]) throws(DatabaseError) -> [Found] {
    let wanted = query.limit.addingReportingOverflow(query.offset)
    let limit = wanted.overflow ? Int.max : wanted.partialValue
    var room = max(64, limit > candidateCount / 4 ? candidateCount : limit * 4)
    var found: [Found] = []
    var bound = Double.infinity
    while true {
      let (best, isAll) = candidates(all, room, below: bound)
      // At the end of the room, there may be more candidates with the same score.
      let cut = isAll ? -Double.infinity : best.last?.score ?? -Double.infinity
      var next = 0
      while found.count < limit, next < best.count, best[next].score > cut {
        // Documents with the same score are in the order of their keys.
        let score = best[next].score
        var group: [Found] = []
        while next < best.count, best[next].score == score {
          if let document = try find(best[next], isWhole: true), isBehindStart(document) {
            group.append(document)
          }
          next += 1
        }
        if group.count > 1 { group.sort { $0.key.bytes.compare($1.key.bytes) < 0 } }
        found += group
        bound = score
      }
      guard !isAll, found.count < limit else { break }
      room = room.multipliedReportingOverflow(by: 8).partialValue
    }
    return Array(found.prefix(limit).dropFirst(query.offset))
  }

  /// The best `room` candidates below a score, and whether these are all.
  private func candidates(
    _ all: [UnitHits], _ room: Int, below bound: Double
  ) -> (best: [Candidate], isAll: Bool) {
    var kept: [Candidate] = []
    kept.reserveCapacity(min(candidateCount, 2 * room))
    var least = -Double.infinity
    var isAll = true
    for (source, hits) in all.enumerated() {
      for place in hits.documents.indices {
        let score = hits.values[place]
        guard score > least, score < bound else {
          if score < bound { isAll = false }
          continue
        }
        kept.append(Candidate(score: score, source: source, document: hits.documents[place]))
        guard kept.count >= 2 * room else { continue }
        kept.sort { $0.score > $1.score }
        kept.removeLast(kept.count - room)
        least = kept.last?.score ?? least
        isAll = false
      }
    }
    kept.sort { $0.score > $1.score }
    if kept.count > room {
      kept.removeLast(kept.count - room)
      isAll = false
    }
    return (kept, isAll)
  }

  private func isBehindStart(_ document: Found) -> Bool {
    guard let start = search.start else { return true }
    if document.score != start.score { return document.score < start.score }
    let tail = document.key.dropFirst(Keyspace.prefixLength)
    return Array(tail).bytes.compare(start.tail.bytes) > 0
  }

  private func byFields(_ all: [UnitHits]) throws(DatabaseError) -> [Found] {
    var found: [Found] = []
    for (source, hits) in all.enumerated() {
      for (document, score) in zip(hits.documents, hits.values) {
        let candidate = Candidate(score: score, source: source, document: document)
        if let document = try find(candidate) { found.append(document) }
      }
    }
    found.sort { query.orders.areInOrder($0.orderedBy, $1.orderedBy) }
    return Array(found.dropFirst(query.offset).prefix(query.limit))
  }

  /// The document of a candidate, if it exists and meets the query's conditions.
  ///
  /// - Parameter isWhole: whether to copy the document; otherwise only its sort keys are read.
  private func find(
    _ candidate: Candidate, isWhole: Bool = false
  ) throws(DatabaseError) -> Found? {
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
        document: candidate.document,
        orderedBy: isWhole ? [] : try part.matcher.sortKeys(of: view, key),
        snapshot: isWhole ? try part.shaper.snapshot(view, row, key) : nil)
    }
    return found
  }

  private func snapshot(of found: Found) throws(DatabaseError) -> DocumentSnapshot? {
    if let snapshot = found.snapshot { return snapshot }
    let part = parts[found.part]
    var snapshot: DocumentSnapshot?
    _ = try rows.show(found.key, part.upgrader) { (key, row) throws(DatabaseError) in
      snapshot = try part.shaper.snapshot(part.shaper.view(row, key), row, key)
    }
    return snapshot
  }

  // MARK: - Suggestions

  /// Terms that begin with the last word of the text, those of most documents first.
  func suggestions(for text: String, limit: Int) throws(DatabaseError) -> [SearchSuggestion] {
    let list = tokenizer.beginnings(of: text)
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
          var reader = row.terms()
          while try reader.next() {
            if reader.term.starts(with: start) {
              counts[Array(reader.term.dropFirst()), default: 0] += 1
            }
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
