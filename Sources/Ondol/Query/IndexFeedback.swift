// What queries tell after they were carried out: how many rows a value of an index has, which the
// planner asks when it has a choice, and which index they would have needed.

internal import Logging
internal import OndolEngine

extension Database {
  /// Notes how many rows an index had for what was asked of it. The walk must have come to its end.
  func note(_ walk: CandidateWalk) {
    guard let scan = walk.wholeScan else { return }
    statistics.withLock {
      $0.note(walk.visited, of: scan.ranges.count, in: scan.index.keyspace, fixed: scan.fixed)
    }
  }

  /// Documents a query must have looked at before an index is made for it.
  private static let noticedDocuments = 100
  /// How many it must have looked at for each one it returned.
  private static let noticedShare = 4

  /// Creates the index a query would have needed, in the background, when the database is to do so
  /// and the query has looked at many documents for the few it returned.
  func suggestIndex(after executor: borrowing Executor, returned: Int) {
    guard options.automaticIndexes,
      executor.counts.documentsExamined >= Self.noticedDocuments,
      executor.counts.documentsExamined >= Self.noticedShare * returned || !executor.isInOrder
    else { return }
    for part in executor.parts {
      guard let fields = part.plan.suggestion else { continue }
      let pattern = part.naming.pattern
      let kind = IndexKind(fields, isOfGroup: part.naming.collection == nil)
      let name = "\(pattern) \(kind.name)"
      guard indexesUnderway.withLock({ $0.insert(name).inserted }) else { continue }
      engine.startInBackground { [self] in
        do throws(DatabaseError) {
          try await createIndex(kind, of: pattern) { _ in }
          options.logger.info("made an index for slow queries: \(name)")
        } catch {
          options.logger.warning("an index for slow queries was not made: \(error)")
        }
        indexesUnderway.withLock { _ = $0.remove(name) }
      }
    }
  }
}
