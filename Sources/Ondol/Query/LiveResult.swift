// A result in the order of its query, as listeners receive it: a tree that shares its unchanged
// parts with its predecessors. ResultView keeps it up to date.

internal import OndolEngine

/// The properties that all results of one query share.
struct LiveQueryPlan: Sendable {
  let database: Database
  let shape: QueryShape
  let query: NormalQuery
  /// Whether two versions of a document can look the same: when fields are left out or added.
  let comparesFields: Bool
  /// Whether its listeners want to know when only the metadata of documents changes.
  let includesMetadata: Bool

  init(
    _ shape: QueryShape, in database: Database, addsFields: Bool = false,
    includesMetadata: Bool = false
  ) throws(DatabaseError) {
    self.includesMetadata = includesMetadata
    self.database = database
    self.shape = shape
    query = try NormalQuery(shape)
    comparesFields = addsFields || shape.selection != nil
  }

  /// Documents kept beyond the limit.
  var reserve: Int { query.limit == .max ? 0 : max(16, min(query.limit, 1_000)) }

  /// The document's sort keys in the result's order; nil when it is not in the result, regardless
  /// of the limit.
  func keys(of fields: [String: Value], at path: DocumentPath) -> [Value?]? {
    let name = shape.name(of: path)
    guard query.matches(fields, name: name) else { return nil }
    let keys = query.orders.keys(of: fields, name: name)
    return isWithinPlaces(keys) ? keys : nil
  }

  private func isWithinPlaces(_ keys: [Value?]) -> Bool {
    if let start = query.start {
      let order = query.orders.compare(keys, start.keys)
      if order < 0 || order == 0 && !start.isIncluded { return false }
    }
    if let end = query.end {
      let order = query.orders.compare(keys, end.keys)
      if order > 0 || order == 0 && !end.isIncluded { return false }
    }
    return true
  }
}

/// The result of a query as of one commit.
struct LiveResult: Sendable {
  let plan: LiveQueryPlan
  /// The documents in the order of the plan, which may be the reverse of the query's.
  var ranked: RankedTree
  /// Whether the limit leaves no document out.
  var isLastPage: Bool
  /// Documents that could not be upgraded.
  var unreadable: [DocumentReference]
  /// The commit that the result is as of.
  var point: CommitPoint
  /// Whether the server could not be reached.
  var isAway = false
  /// Whether a follow has not had all its documents.
  var isLoading = false
  /// Documents that left because of commits that synchronisation made.
  var departures: Set<DocumentPath> = []

  /// The last document's sort keys, in the query's order; nil when there is no document.
  var lastKeys: [Value?]? { plan.query.isReversed ? ranked.first?.keys : ranked.last?.keys }

  /// The documents in the query's order.
  var documents: [DocumentSnapshot] {
    let documents = ranked.documents
    return plan.query.isReversed ? documents.reversed() : documents
  }
}

extension QueryShape {
  /// The name by which this query identifies a document.
  func name(of reference: DocumentReference) -> Value {
    switch (source, reference.place) {
    case (.group, .success(let path)): .reference(path)
    default: .string(reference.documentID)
    }
  }
}
