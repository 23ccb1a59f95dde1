// A readable explanation of how a query finds its documents: its plan, printed. With `analyze` the
// query is also carried out.

/// How a query is answered, and at what cost.
public struct QueryExplanation: Sendable, CustomStringConvertible {
  /// How documents are found.
  public indirect enum Access: Sendable, Hashable {
    /// No document can match.
    case nothing
    /// Documents are looked up by their ids.
    case lookups(count: Int)
    /// Documents are read in the order of their ids.
    case scan
    /// Documents are read in the order of their ids, from one id to another.
    case idRange
    /// Rows of an index are read in one or more ranges, then their documents.
    case index(name: String, ranges: Int)
    /// Rows of several indexes are read, then the documents that have a row in each.
    case intersection([String])
    /// Only the first or the last row of a way is read.
    case end(of: Access)
    /// Several ways are taken: one for each part of an "or", for each pattern of a collection
    /// group, or for each of several numbers.
    case union([Access])
  }

  /// How documents are found.
  public let access: Access
  /// Whether the documents found are sorted afterwards.
  public let sorts: Bool
  /// Whether the index alone answers the query, when only ids or a count are requested.
  public let needsNoDocuments: Bool
  /// The fields to pass to `createIndex(on:)` to serve the query, when no index does.
  public let suggestedIndex: [String]?
  /// Names of unfinished indexes that the query will use once they are ready. `listIndexes()` shows
  /// their progress.
  public let buildingIndexes: [String]
  /// Names of indexes that hold a field's whole arrays while the query asks for its elements. To
  /// serve the query, call `createIndex(on:)` with `[]` after the field's name.
  public let wholeArrayIndexes: [String]
  /// Whether the conditions combine in more ways than the planner looked at, so that it may have
  /// missed a better plan. The planner's budget is proportional to the size of the query. Fewer
  /// "or" alternatives beside each other, or `in` instead of them, need less of it.
  public let isPlanCutShort: Bool
  /// Fields named in the query that no document of the collection and no index has. Usually they
  /// are misspelled. Only names at the top of documents are checked, not those inside maps.
  public let unknownFields: [String]
  /// Index rows read, ids looked up, or documents read in a scan; nil without `analyze`.
  public let entriesVisited: Int?
  /// Documents whose fields were checked; nil without `analyze`.
  public let documentsExamined: Int?
  /// Documents in the result; nil without `analyze`.
  public let documentsReturned: Int?
  /// How long the query took; nil without `analyze`.
  public let duration: Duration?
  /// The query in readable form.
  public let query: String

  /// The name of the index used; nil when there is none or several.
  public var indexName: String? {
    if case .index(let name, _) = access { name } else { nil }
  }

  /// The whole explanation, one line for each point.
  public var description: String { lines.joined(separator: "\n") }

  /// The lines of the description; names in them may contain line breaks.
  package var lines: [String] {
    var lines = [query, "  \(Self.text(access))\(sorts ? ", then sorted" : "")"]
    if let entriesVisited, let documentsExamined, let documentsReturned {
      lines.append(
        "  \(entriesVisited) entries visited, \(documentsExamined) documents examined,"
          + " \(documentsReturned) returned")
    }
    if let duration { lines.append("  took \(duration)") }
    if isPlanCutShort {
      lines.append("  the conditions combine in more ways than were looked at")
    }
    for name in unknownFields { lines.append("  no document and no index has the field '\(name)'") }
    for name in buildingIndexes { lines.append("  index '\(name)' is being built for it") }
    for name in wholeArrayIndexes {
      lines.append("  index '\(name)' holds whole arrays and cannot find their elements")
    }
    if let suggestedIndex {
      lines.append("  an index would serve it: createIndex(on: \(suggestedIndex))")
    }
    return lines
  }

  private static func text(_ access: Access) -> String {
    switch access {
    case .nothing: "nothing can match"
    case .lookups(let count): "\(count) lookup\(count == 1 ? "" : "s") by id"
    case .scan: "scan of the collection"
    case .idRange: "range of ids"
    case .index(let name, let ranges): "index '\(name)', \(ranges) range\(ranges == 1 ? "" : "s")"
    case .intersection(let names): names.map { "index '\($0)'" }.joined(separator: " and ")
    case .end(let way): "one end of \(text(way))"
    case .union(let ways): ways.map(text).joined(separator: "; ")
    }
  }

  /// Explains a least or greatest value that is read from the ends of indexes, for the query of
  /// `executor`.
  init(endsOf ends: [Executor], _ executor: borrowing Executor) {
    access = Access(ends.flatMap { $0.accesses.map { .end(of: $0) } })
    sorts = false
    needsNoDocuments = false
    suggestedIndex = nil
    buildingIndexes = []
    wholeArrayIndexes = []
    isPlanCutShort = ends.contains { $0.parts.contains(where: \.plan.isCutShort) }
    unknownFields = executor.unknownFields
    (entriesVisited, documentsExamined, documentsReturned, duration) = (nil, nil, nil, nil)
    query = "\(executor.shape)"
  }

  init(
    _ executor: borrowing Executor, documentsReturned: Int?, duration: Duration?
  ) {
    let ways = executor.accesses
    access = Access(ways)
    sorts = !executor.isInOrder && executor.query.limit > 0
    needsNoDocuments =
      executor.shape.selection?.isEmpty == true && ways.count == 1 && !sorts
      && executor.parts.allSatisfy(\.plan.isExact)
    suggestedIndex = executor.parts.compactMap(\.plan.suggestion).first?.map(\.description)
    var awaited: [String] = []
    for name in executor.parts.flatMap(\.awaited) where !awaited.contains(name) {
      awaited.append(name)
    }
    buildingIndexes = awaited
    wholeArrayIndexes = executor.wholeArrayIndexes
    isPlanCutShort = executor.parts.contains(where: \.plan.isCutShort)
    unknownFields = executor.unknownFields
    let isAnalyzed = documentsReturned != nil
    entriesVisited = isAnalyzed ? executor.counts.entriesVisited : nil
    documentsExamined = isAnalyzed ? executor.counts.documentsExamined : nil
    self.documentsReturned = documentsReturned
    self.duration = duration
    query = "\(executor.shape)"
  }
}

extension Executor {
  /// How documents are found, in readable form.
  fileprivate var accesses: [QueryExplanation.Access] {
    parts.flatMap { part in part.plan.ways.map { QueryExplanation.Access($0, part.naming) } }
  }
}

extension QueryExplanation.Access {
  fileprivate init(_ ways: [Self]) {
    self = ways.count > 1 ? .union(ways) : ways.first ?? .nothing
  }

  fileprivate init(_ access: Plan.Access, _ naming: DocumentNaming) {
    switch access {
    case .lookups(let keys): self = .lookups(count: keys.count)
    case .scan(let range, _): self = range == KeyRange(prefix: naming.prefix) ? .scan : .idRange
    case .index(let scan): self = .index(name: scan.index.name, ranges: scan.ranges.count)
    case .intersection(let scans): self = .intersection(scans.map(\.index.name))
    }
  }
}

extension QuerySource {
  /// The documents of the result, all as of now.
  ///
  /// A query that begins after a write has returned sees that write. A short query runs on the
  /// caller's actor, a long one elsewhere.
  ///
  /// - Throws: `.invalidArgument` when a path, an operand or a limit of the query is wrong,
  ///   `.failedPrecondition` when the database is closed, `.dataLoss` when stored bytes are
  ///   damaged.
  /// - Complexity: see `explain(analyze:)`; with a fitting index O(log n) and the size of the
  ///   result.
  public func getDocuments() async throws(DatabaseError) -> QuerySnapshot {
    let query = query
    try query.database.refuseReadInTransaction()
    return try await query.execute()
  }

  /// How the query is answered: which index it uses, how many ranges it reads, whether the result
  /// is sorted afterwards, and which index would serve it better. With `analyze`, the query is
  /// carried out and its cost counted.
  ///
  /// - Throws: as `getDocuments()`.
  public func explain(analyze: Bool = false) async throws(DatabaseError) -> QueryExplanation {
    try await query.explanation(analyze: analyze)
  }
}

extension Query {
  fileprivate func execute() async throws(DatabaseError) -> QuerySnapshot {
    let shape = try shape.get()
    let answer = try await database.query(mayBeShort: shape.mayBeShort) {
      [self] (rows) throws(DatabaseError) in
      try database.pointReads.snapshot(of: self, shape, rows)
    }
    return switch answer {
    case .found(let result): result
    case .inParts(let scan): try await scan.snapshot(of: self)
    }
  }

  @concurrent
  fileprivate func explanation(analyze: Bool) async throws(DatabaseError) -> QueryExplanation {
    let shape = try shape.get()
    return try await database.read(try database.engineSnapshot(), canBeCancelled: true) {
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
