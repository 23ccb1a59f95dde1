// How a query finds its documents, for people. A plan printed, and with `analyze` also carried out.

/// How a query is answered, and at what cost.
public struct QueryExplanation: Sendable, CustomStringConvertible {
  /// The way documents are found.
  public enum Access: Sendable, Hashable {
    /// No document can match.
    case nothing
    /// Documents are looked up by their ids.
    case lookups(count: Int)
    /// Documents are read in the order of their ids.
    case scan
    /// Rows of an index are read in a number of ranges, then their documents.
    case index(name: String, ranges: Int)
  }

  /// The way documents are found.
  public let access: Access
  /// Whether the documents found are sorted afterwards.
  public let sorts: Bool
  /// Fields for `createIndex(on:)` that would serve the query, when no index does.
  public let suggestedIndex: [String]?
  /// Index rows read or ids looked up, or documents read in a scan; nil without `analyze`.
  public let entriesVisited: Int?
  /// Documents whose fields were looked at; nil without `analyze`.
  public let documentsExamined: Int?
  /// Documents in the result; nil without `analyze`.
  public let documentsReturned: Int?
  /// How long it took; nil without `analyze`.
  public let duration: Duration?
  /// The query as one would say it.
  public let query: String

  /// The name of the index used, or nil.
  public var indexName: String? {
    if case .index(let name, _) = access { name } else { nil }
  }

  /// All of it, a line for each point.
  public var description: String {
    var lines = [query, "  \(accessText)\(sorts ? ", then sorted" : "")"]
    if let entriesVisited, let documentsExamined, let documentsReturned {
      lines.append(
        "  \(entriesVisited) entries visited, \(documentsExamined) documents examined,"
          + " \(documentsReturned) returned")
    }
    if let duration { lines.append("  took \(duration)") }
    if let suggestedIndex {
      lines.append("  an index would serve it: createIndex(on: \(suggestedIndex))")
    }
    return lines.joined(separator: "\n")
  }

  private var accessText: String {
    switch access {
    case .nothing: "nothing can match"
    case .lookups(let count): "\(count) lookup\(count == 1 ? "" : "s") by id"
    case .scan: "scan of the collection"
    case .index(let name, let ranges): "index '\(name)', \(ranges) range\(ranges == 1 ? "" : "s")"
    }
  }

  init(
    _ executor: borrowing Executor, documentsReturned: Int?, duration: Duration?
  ) {
    switch executor.plan.access {
    case .nothing: access = .nothing
    case .lookups(let ids): access = .lookups(count: ids.count)
    case .scan: access = .scan
    case .index(let index, let ranges, _): access = .index(name: index.name, ranges: ranges.count)
    }
    sorts = !executor.plan.isInOrder
    suggestedIndex = executor.plan.suggestion?.map(\.description)
    let isAnalyzed = documentsReturned != nil
    entriesVisited = isAnalyzed ? executor.counts.entriesVisited : nil
    documentsExamined = isAnalyzed ? executor.counts.documentsExamined : nil
    self.documentsReturned = documentsReturned
    self.duration = duration
    query = "\(executor.shape)"
  }
}

extension QuerySource {
  /// The documents of the result, all as they are now.
  ///
  /// A query begun after a write returned sees it.
  ///
  /// - Throws: `.invalidArgument` when a path, an operand or a limit of the query is wrong,
  ///   `.failedPrecondition` when the database is closed, `.dataLoss` when stored bytes are
  ///   damaged.
  /// - Complexity: see `explain(analyze:)`; with a fitting index O(log n) and the size of the
  ///   result.
  public func getDocuments() async throws(DatabaseError) -> QuerySnapshot {
    let query = query
    let documents = try await query.execute()
    return QuerySnapshot(query: query, documents: documents)
  }

  /// How the query is answered: which index, how many ranges, whether the result is sorted
  /// afterwards, and which index would serve it better. With `analyze` the query is carried out,
  /// and its cost counted.
  ///
  /// - Throws: as `getDocuments()`.
  public func explain(analyze: Bool = false) async throws(DatabaseError) -> QueryExplanation {
    try await query.explanation(analyze: analyze)
  }
}

extension Query {
  @concurrent
  fileprivate func execute() async throws(DatabaseError) -> [DocumentSnapshot] {
    let shape = try shape.get()
    return try await database.read(try database.engineSnapshot()) {
      [database] (rows) throws(DatabaseError) in
      var executor = try Executor(shape, in: database, rows)
      return try executor.documents()
    }
  }

  @concurrent
  fileprivate func explanation(analyze: Bool) async throws(DatabaseError) -> QueryExplanation {
    let shape = try shape.get()
    return try await database.read(try database.engineSnapshot()) {
      [database] (rows) throws(DatabaseError) in
      var executor = try Executor(shape, in: database, rows)
      guard analyze else {
        return QueryExplanation(executor, documentsReturned: nil, duration: nil)
      }
      let start = database.now()
      let documents = try executor.documents()
      let duration = Duration.microseconds(database.now() - start)
      return QueryExplanation(executor, documentsReturned: documents.count, duration: duration)
    }
  }
}
