// An index of words, read from one snapshot: the postings of a run's terms, and the documents that
// are not gathered yet. Everything is checked as it is read.

internal import OndolEngine

/// Reads one index of words, in one scope.
struct WordIndexReader: Sendable {
  /// Terms that a beginning of a word may stand for.
  static let mostTerms = 1_024

  let rows: Rows
  let index: IndexDefinition
  let runs: [SearchRun]
  /// What the keys of postings begin with.
  private let scope: [UInt8]

  init(_ index: IndexDefinition, scope: [UInt8], in rows: Rows) throws(DatabaseError) {
    self.rows = rows
    self.index = index
    self.scope = scope
    runs = try rows.searchState(of: index).runs
  }

  // MARK: - Runs

  /// Shows the entries of a run from a key on, until `visit` answers false.
  private func forEachEntry(
    of run: SearchRun, from key: [UInt8],
    _ visit: (borrowing ChunkReader) throws(MalformedBytes) -> Bool
  ) throws(DatabaseError) {
    var range = index.searchKeys.range(run.number)
    range.lower += key
    var walk = RangeWalk(rows, [range])
    var goesOn = true
    while goesOn, try walk.next() {
      let chunk = try walk.value
      do throws(MalformedBytes) {
        var reader = ChunkReader(chunk)
        while goesOn, try reader.next() {
          if reader.key.bytes.compare(key.bytes) >= 0 { goesOn = try visit(reader) }
        }
      } catch {
        throw DatabaseError(searching: index, error)
      }
    }
  }

  /// What scores depend on, of the documents of a run.
  func statistics(of run: SearchRun) throws(DatabaseError) -> SearchStatistics {
    let key = scope + [0]
    var statistics = SearchStatistics()
    try forEachEntry(of: run, from: key) { (entry) throws(MalformedBytes) in
      if entry.key == key { statistics = try entry.statistics() }
      return false
    }
    return statistics
  }

  /// The postings of the terms that may stand at a place, in a field.
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
          guard entry.key == key else { return false }
          try entry.decode(positions: positions, into: &list)
          return true
        }
        if !list.documents.isEmpty { lists.append(list) }
      case .prefix:
        lists += try postings(behind: key, of: run, positions: positions)
      }
    }
    let merged = Postings(merging: lists, keepsPositions: positions)
    if let last = merged.documents.last, last >= UInt32(run.count) {
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
      guard entry.key.starts(with: prefix) else { return false }
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
        "more than \(Self.mostTerms) words begin so; search for a longer beginning")
    }
    return lists
  }

  /// Adds the terms of a run that begin with `prefix`, and how many documents have each.
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

  /// The tail of a document of a run; nil when it is no more, or was written since.
  func tail(of document: UInt32, in run: SearchRun) throws(DatabaseError) -> [UInt8]? {
    guard let bytes = try rows.row(index.searchKeys.document(run.first + UInt64(document))) else {
      return nil
    }
    return try checkingRow(of: index) { () throws(MalformedBytes) in
      try SearchedDocument(bytes.bytes).tail
    }
  }

  // MARK: - Documents that are not gathered

  /// Shows the tail and the terms of each document that is not gathered yet.
  func forEachFresh(
    _ visit: ([UInt8], borrowing FreshRow) throws(MalformedBytes) -> Void
  ) throws(DatabaseError) {
    let begin = index.searchKeys.fresh([]).count
    let lower = index.searchKeys.fresh(scope)
    let upper = scope.isEmpty ? index.searchKeys.runs(from: 0) : KeyRange(prefix: lower).upper
    var walk = RangeWalk(rows, [KeyRange(lower: lower, upper: upper)])
    while try walk.next() {
      try walk.show { (key, value) throws(DatabaseError) in
        do throws(MalformedBytes) {
          try visit(key.extracting(begin...).array, FreshRow(value))
        } catch {
          throw DatabaseError(searching: index, error)
        }
      }
    }
  }
}
