// Reads an index of words from one snapshot: the postings of a run's terms, and the documents that
// are not in a run yet. Everything is checked as it is read.

internal import OndolEngine

/// Reads one index of words, in one scope.
final class WordIndexReader {
  /// The most terms that a prefix may match.
  static let mostTerms = 1_024

  let rows: Rows
  let index: IndexDefinition
  let runs: [SearchRun]
  /// The first generation that may have documents.
  private let firstFresh: UInt64
  /// The prefix of the keys of postings.
  private let scope: [UInt8]
  /// Over the chunks of all runs.
  private var walk: RangeWalk

  init(_ index: IndexDefinition, scope: [UInt8], in rows: Rows) throws(DatabaseError) {
    self.rows = rows
    self.index = index
    self.scope = scope
    let state = try rows.searchState(of: index)
    runs = state.runs
    firstFresh = state.firstFresh
    let keys = index.searchKeys
    walk = RangeWalk(rows, [KeyRange(lower: keys.runs(from: 0), upper: keys.document(0))])
  }

  // MARK: - Runs

  /// Shows the entries of a run from a key on, until `visit` returns false.
  private func forEachEntry(
    of run: SearchRun, from key: [UInt8],
    _ visit: (ChunkReader) throws(MalformedBytes) -> Bool
  ) throws(DatabaseError) {
    let range = index.searchKeys.range(run.number)
    let end = range.upper
    var isThere = try walk.next(from: range.lower + key)
    var isFirst = true
    while isThere, walk.cursor.key.compare(end.bytes) < 0 {
      var chunk = ChunkReader(try walk.value.array)
      do throws(MalformedBytes) {
        if isFirst, try chunk.seek(key), !(try visit(chunk)) { return }
        while try chunk.next() {
          if !(try visit(chunk)) { return }
        }
      } catch {
        throw DatabaseError(searching: index, error)
      }
      isFirst = false
      isThere = try walk.next()
    }
  }

  /// The statistics of a run's documents that scores depend on. Runs do not change, so they are
  /// cached.
  func statistics(
    of run: SearchRun, _ known: SearchStatisticsCache
  ) throws(DatabaseError) -> SearchStatistics {
    let place = SearchStatisticsCache.Place(
      index: index.keyspace, run: run.number, scope: scope)
    if let statistics = known[place] { return statistics }
    let key = scope + [0]
    var statistics = SearchStatistics()
    try forEachEntry(of: run, from: key) { (entry) throws(MalformedBytes) in
      if entry.key == key { statistics = try entry.statistics() }
      return false
    }
    known[place] = statistics
    return statistics
  }

  /// The postings of the terms that match at a place, in a field.
  func postings(
    of place: SearchPlace, field: Int, in run: SearchRun, positions: Bool
  ) throws(DatabaseError) -> Postings {
    var lists: [Postings] = []
    for term in place {
      let key = scope + [UInt8(field + 1)] + term.bytes
      switch term {
      case .exact:
        var list = Postings()
        try forEachEntry(of: run, from: key) { (entry) throws(MalformedBytes) in
          guard entry.key == key, entry.entry.count > 0 else { return false }
          try entry.decode(positions: positions, into: &list)
          return true
        }
        if !list.documents.isEmpty { lists.append(list) }
      case .prefix:
        lists += try postings(behind: key, of: run, positions: positions)
      }
    }
    guard !lists.isEmpty else { return Postings() }
    let all = lists
    let merged = try checkingRow(of: index) { () throws(MalformedBytes) in
      try Postings(merging: all, keepsPositions: positions)
    }
    if let last = merged.documents.last, last >= UInt32(clamping: run.count) {
      throw DatabaseError(
        searching: index, MalformedBytes(at: 0, "a posting of no document of its run"))
    }
    return merged
  }

  private func postings(
    behind prefix: [UInt8], of run: SearchRun, positions: Bool
  ) throws(DatabaseError) -> [Postings] {
    var lists: [Postings] = []
    var last: [UInt8] = []
    try forEachEntry(of: run, from: prefix) { (entry) throws(MalformedBytes) in
      guard entry.key.starts(with: prefix), entry.entry.count > 0 else { return false }
      if entry.key != last {
        last = entry.key
        lists.append(Postings())
      }
      try entry.decode(positions: positions, into: &lists[lists.count - 1])
      return lists.count <= Self.mostTerms
    }
    guard lists.count <= Self.mostTerms else {
      throw DatabaseError(
        .resourceExhausted,
        "more than \(Self.mostTerms) words have this beginning; search for a longer one")
    }
    return lists
  }

  /// Adds the terms of a run that begin with `prefix`, and the number of documents of each.
  func countTerms(
    of run: SearchRun, field: Int, behind prefix: [UInt8], into counts: inout [[UInt8]: Int]
  ) throws(DatabaseError) {
    let start = scope + [UInt8(field + 1)]
    var left = Self.mostTerms * 8
    try forEachEntry(of: run, from: start + prefix) { (entry) throws(MalformedBytes) in
      guard entry.key.starts(with: start + prefix), left > 0 else { return false }
      left -= 1
      counts[Array(entry.key[start.count...]), default: 0] += entry.entry.count
      return true
    }
  }

  /// The tail of a document of a run; nil when it was deleted or written since.
  func tail(of document: UInt32, in run: SearchRun) throws(DatabaseError) -> [UInt8]? {
    guard let bytes = try rows.row(index.searchKeys.document(run.first + UInt64(document))) else {
      return nil
    }
    return try checkingRow(of: index) { () throws(MalformedBytes) in
      try SearchedDocument(bytes.bytes).tail
    }
  }

  // MARK: - Documents that are not in a run

  /// Shows the tail and the terms of each document that is not in a run yet.
  func forEachFresh(
    _ visit: ([UInt8], FreshRow) throws(MalformedBytes) -> Void
  ) throws(DatabaseError) {
    let keys = index.searchKeys
    let begin = keys.fresh(firstFresh).count
    let all = KeyRange(lower: keys.fresh(firstFresh), upper: keys.runs(from: 0))
    var walk = RangeWalk(rows, [all])
    while try walk.next() {
      try walk.show { (key, value) throws(DatabaseError) in
        guard key.extracting(begin...).starts(with: scope) else { return }
        do throws(MalformedBytes) {
          try visit(key.extracting(begin...).array, FreshRow(value.array))
        } catch {
          throw DatabaseError(searching: index, error)
        }
      }
    }
  }
}

/// The statistics of recently searched runs that scores depend on.
final class SearchStatisticsCache: Sendable {
  struct Place: Hashable, Sendable {
    var index: Keyspace
    var run: UInt64
    var scope: [UInt8]
  }

  private static let mostPlaces = 4_096
  private let known = Guarded<[Place: SearchStatistics]>([:])

  subscript(place: Place) -> SearchStatistics? {
    get { known.withLock { $0[place] } }
    set {
      known.withLock { known in
        if known.count >= Self.mostPlaces { known.removeAll() }
        known[place] = newValue
      }
    }
  }
}
