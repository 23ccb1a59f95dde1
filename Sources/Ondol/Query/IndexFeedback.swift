// What queries tell after they were carried out: how many rows a value of an index has, which the
// planner asks when it has a choice, and which index they would have needed.

internal import OndolEngine

extension Database {
  /// Notes how many rows an index had for what was asked of it. The walk must have come to its end.
  func note(_ walk: CandidateWalk) {
    guard let scan = walk.wholeScan else { return }
    statistics.withLock {
      $0.note(walk.visited, of: scan.ranges.count, in: scan.index.keyspace, fixed: scan.fixed)
    }
  }

  /// Creates the index a query would have needed, when the database is to do so.
  func suggestIndex(after executor: borrowing Executor, returned: Int) {
  }
}

extension CandidateWalk {
  /// The one index that was walked, as opposed to several or none.
  var wholeScan: IndexScan? {
    if case .index(let index) = way { index.scan } else { nil }
  }
}
