// What queries learn while they run: how many rows a value of an index has, which helps the planner
// choose, which index they would have needed, which indexes look useful and are not, and which
// fields no document has.

internal import Logging
internal import OndolEngine

/// What the queries of a database have learned so far.
final class QueryFeedback: Sendable {
  /// How many queries used each index.
  let uses = Guarded<[Keyspace: Int]>([:])
  /// What they learned about the indexes they used.
  let statistics = Guarded(IndexStatistics())
  /// Indexes under construction that slow queries have asked for.
  fileprivate let indexesUnderway = Guarded<Set<ExactText>>([])
  /// Warnings that the log has already received.
  fileprivate let warnings = Guarded<Set<ExactText>>([])
}

extension Database {
  /// Records how many rows an index had for the query. The walk must be complete.
  func note(_ walk: CandidateWalk) {
    guard let scan = walk.wholeScan else { return }
    feedback.statistics.withLock {
      $0.note(walk.visited, of: scan.ranges.count, in: scan.index.keyspace, fixed: scan.fixed)
    }
  }

  /// Records that a query used the indexes that were walked.
  func noteUse(of walk: CandidateWalk) {
    let keyspaces = walk.indexKeyspaces
    guard !keyspaces.isEmpty else { return }
    feedback.uses.withLock { uses in
      for keyspace in keyspaces { uses[keyspace, default: 0] += 1 }
    }
  }

  /// Documents that a query must have looked at before an index is made for it.
  private static let noticedDocuments = 100
  /// How many it must have looked at for each one it returned.
  private static let noticedShare = 4

  /// Creates the index that a query would have needed, in the background, if the database is
  /// configured to do so and the query has looked at many documents for the few it returned.
  func suggestIndex(after executor: borrowing Executor, returned: Int) {
    guard options.automaticIndexes,
      executor.counts.documentsExamined >= Self.noticedDocuments,
      executor.counts.documentsExamined >= Self.noticedShare * returned || !executor.isInOrder
    else { return }
    for part in executor.parts {
      guard let fields = part.plan.suggestion else { continue }
      let pattern = part.naming.pattern
      let kind = IndexKind(fields.withTies, isOfGroup: part.naming.collection == nil)
      let name = "\(pattern) \(kind.name)"
      guard feedback.indexesUnderway.withLock({ $0.insert(ExactText(name)).inserted }) else {
        continue
      }
      engine.startInBackground { [self] in
        do throws(DatabaseError) {
          try await createIndex(kind, of: pattern) { _ in }
          options.logger.info("made an index for slow queries: \(name)")
        } catch {
          options.logger.warning("an index for slow queries was not made: \(error)")
        }
        feedback.indexesUnderway.withLock { _ = $0.remove(ExactText(name)) }
      }
    }
  }
}

// MARK: - Indexes that do not serve

extension Executor {
  /// Names of indexes that hold a field's whole arrays while the query asks for its elements. Only
  /// for a query that no index serves.
  var wholeArrayIndexes: [String] {
    var names: [String] = []
    for part in parts where part.plan.suggestion != nil {
      for index in part.indexes where !names.contains(exactly: index.name) {
        guard let first = index.fields.first, !first.isOfElements, first.comparison == nil,
          query.conjuncts.contains(where: { $0.asksForElements(of: first.names) })
        else { continue }
        names.append(index.name)
      }
    }
    return names
  }
}

extension FilterTree {
  fileprivate func asksForElements(of names: FieldNames) -> Bool {
    guard case .field(let filter) = self, filter.field == .field(names) else { return false }
    return switch filter.condition {
    case .arrayContains, .arrayContainsAny: true
    default: false
    }
  }
}

extension Database {
  /// Logs, once for each, that an index holds whole arrays while a query asks for elements.
  func warnOnce(ofWholeArraysIn index: String, of source: QueryShape.Source) {
    warnOnce(
      "a query of '\(source)' asks for elements of an array, and the index '\(index)' holds whole"
        + " ones; one with [] behind the field serves")
  }
}

// MARK: - Fields that no document has

extension [QueryPart] {
  /// Whether no document has had a field with the name so far and no index has it. False while
  /// there are no documents at all.
  func isUnknown(_ name: String) -> Bool { !isEmpty && allSatisfy { $0.lacks(name) } }
}

extension QueryPart {
  /// Whether no document of the pattern and no index has a field with the name.
  fileprivate func lacks(_ name: String) -> Bool {
    let symbols = matcher.symbols
    // Once the table is full, it no longer records new names.
    guard symbols.count > 0, symbols.count < SymbolTable.maximumCount, symbols.symbol(name) == nil
    else { return false }
    return !indexes.contains { index in
      index.fields.contains { $0.names.first.map { isSame($0, name) } ?? false }
    }
  }
}

extension [String] {
  /// Whether one of the texts has exactly these bytes.
  func contains(exactly text: String) -> Bool { contains { isSame($0, text) } }
}

extension Database {
  /// Logs, once for each, that a query names a field that no document has.
  func warnOnce(ofUnknownField name: String, in source: QueryShape.Source) {
    warnOnce(
      "a query of '\(source)' names the field '\(name)', which no document and no index there has")
  }

  private func warnOnce(_ warning: String) {
    guard feedback.warnings.withLock({ $0.insert(ExactText(warning)).inserted }) else { return }
    options.logger.warning("\(warning)")
  }
}
