// A result in the order of its query, as listeners are shown it: a tree that shares what did not
// change with those before it. How it is kept up to date is in ResultView.

internal import OndolEngine

/// What is the same for all results of one query.
struct LiveQueryPlan: Sendable {
  let database: Database
  let shape: QueryShape
  let query: NormalQuery
  /// Whether a document can be the same in two versions: where fields are left out or added.
  let comparesFields: Bool

  init(
    _ shape: QueryShape, in database: Database, addsFields: Bool = false
  ) throws(DatabaseError) {
    self.database = database
    self.shape = shape
    query = try NormalQuery(shape)
    comparesFields = addsFields || shape.selection != nil
  }

  /// Documents kept beyond the limit.
  var reserve: Int { query.limit == .max ? 0 : max(16, min(query.limit, 1_000)) }

  /// How a document stands in the result's order; nil when it is not in it, whatever the limit.
  func keys(of fields: [String: Value], at path: DocumentPath) -> [Value?]? {
    let name = shape.name(of: path)
    guard shape.matches(fields, name: name) else { return nil }
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
  /// The documents in the order of the plan, which may be the query's reversed.
  var ranked: RankedTree
  /// Whether the limit leaves nothing out.
  var isLastPage: Bool
  /// Documents that could not be upgraded.
  var unreadable: [DocumentReference]
  /// The commit that it is as of.
  var point: CommitPoint
  /// Whether the server was away.
  var isAway = false

  /// What the last document is sorted by, in the query's order; nil when there is none.
  var lastKeys: [Value?]? { plan.query.isReversed ? ranked.first?.keys : ranked.last?.keys }

  /// The documents as the query orders them.
  var documents: [DocumentSnapshot] {
    let documents = ranked.documents
    return plan.query.isReversed ? documents.reversed() : documents
  }
}

extension QueryShape {
  /// What this query calls a document.
  func name(of reference: DocumentReference) -> Value {
    switch (source, reference.place) {
    case (.group, .success(let path)): .reference(path)
    default: .string(reference.documentID)
    }
  }
}
