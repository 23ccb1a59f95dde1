// The result of a query as listeners see it: kept in order while documents change, in O(log n) for
// each. A query with a limit keeps some more documents in reserve, in the same order, so that one
// that leaves is replaced at once; only when the reserve is used up is the query asked again.

internal import OndolEngine

/// A query's result, and documents in reserve.
struct ResultView: LiveView {
  let plan: LiveQueryPlan
  /// In the normal order, of which a limit keeps the first.
  private(set) var result: RankedTree
  /// What follows the result.
  private var reserve: RankedTree
  /// Whether every document that matches is in one of the two.
  private var isComplete: Bool
  private(set) var isStale = false
  var isAway = false
  /// What could not be upgraded when the query was asked. A change of one of them has it asked
  /// anew.
  var unreadable: [DocumentReference] = []
  /// The last commit that is known to be in it.
  fileprivate(set) var point = CommitPoint(sequence: .zero, time: 0)

  /// - Parameter documents: the first of the result without its limit, in the normal order, up to
  ///   the limit and the reserve.
  private init(_ plan: LiveQueryPlan, ranked documents: [RankedDocument], isComplete: Bool) {
    self.plan = plan
    self.isComplete = isComplete
    let orders = plan.query.orders
    let count = min(plan.query.limit, documents.count)
    result = RankedTree(orders, sorted: Array(documents[..<count]))
    reserve = RankedTree(orders, sorted: Array(documents[count...]))
  }

  func isSame(as other: ResultView) -> Bool {
    unreadable == other.unreadable && DocumentChanges(from: other.result, to: result, plan).isEmpty
  }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    guard plan.query.offset == 0 else {
      isStale = true
      return false
    }
    if plan.query.isWhole { return applyToWhole(changes) }
    let old = result
    for change in changes { takeOut(change) }
    for change in changes { put(change) }
    settle()
    if isStale { result = old } else { advance(past: changes) }
    return !isStale && !DocumentChanges(from: old, to: result, plan).isEmpty
  }

  /// Without a limit whatever matches is in the result, and what each document was and is says
  /// whether that is another one.
  private mutating func applyToWhole(_ changes: some Collection<ObservedChange>) -> Bool {
    var isAnother = false
    for change in changes {
      let (before, after) = (keysBefore(change), ranked(change))
      var old: RankedDocument?
      // One that stays where it was is exchanged in its place.
      if let before, after.map({ plan.query.orders.compare(before, $0.keys) != 0 }) ?? true {
        old = result.remove(before)
      }
      if let after { old = result.insert(after) ?? old }
      switch (old, after) {
      case (nil, nil): break
      case (let old?, let new?): isAnother = isAnother || !plan.isSame(old, new)
      default: isAnother = true
      }
    }
    advance(past: changes)
    return isAnother
  }

  private mutating func advance(past changes: some Collection<ObservedChange>) {
    for change in changes where change.stamps.version.rawValue > point.sequence.rawValue {
      point = change.stamps.point
    }
  }

  private mutating func takeOut(_ change: ObservedChange) {
    guard let keys = keysBefore(change) else { return }
    if result.remove(keys) == nil { reserve.remove(keys) }
  }

  private mutating func put(_ change: ObservedChange) {
    guard let ranked = ranked(change) else { return }
    let keys = ranked.keys
    if let last = result.last, plan.query.orders.areInOrder(keys, last.keys) {
      result.insert(ranked)
    } else if let last = reserve.last, plan.query.orders.areInOrder(keys, last.keys) {
      reserve.insert(ranked)
    } else if isComplete {
      reserve.insert(ranked)
    }
    // Otherwise it comes behind documents that are not known.
  }

  /// Where the document stood, if it was in the result.
  private func keysBefore(_ change: ObservedChange) -> [Value?]? {
    change.before.map { plan.query.orders.keys(of: $0, name: plan.shape.name(of: change.path)) }
  }

  /// The document as it stands in the result, whatever the limit; nil when it does not.
  private func ranked(_ change: ObservedChange) -> RankedDocument? {
    guard let fields = change.after, let keys = plan.keys(of: fields, at: change.path),
      !plan.database.isOver(fields, at: change.path)
    else { return nil }
    let document = plan.shape.shown(change.snapshot(in: plan.database, fields))
    return RankedDocument(keys: keys, document: document)
  }

  /// Moves documents between result and reserve, so that each has what is its part.
  private mutating func settle() {
    let limit = plan.query.limit
    while result.count > limit, let last = result.last {
      result.remove(last.keys)
      reserve.insert(last)
    }
    while result.count < limit, let first = reserve.first {
      reserve.remove(first.keys)
      result.insert(first)
    }
    while reserve.count > 2 * plan.reserve, let last = reserve.last {
      reserve.remove(last.keys)
      isComplete = false
    }
    isStale = result.count < limit && !isComplete
  }

  /// The result as it is now.
  var picture: LiveResult {
    LiveResult(
      plan: plan, ranked: result, isLastPage: isComplete && reserve.isEmpty,
      unreadable: unreadable, point: point, isAway: isAway)
  }
}

extension ResultView {
  /// The same with other documents in their places.
  func showing(_ others: RankedTree, asOf point: CommitPoint) -> ResultView {
    var copy = self
    copy.result = others
    copy.point = point
    return copy
  }

  /// - Parameter documents: as the query orders them, all their fields there.
  init(_ plan: LiveQueryPlan, _ documents: [DocumentSnapshot], isComplete: Bool) {
    let ranked = documents.map { document in
      RankedDocument(
        keys: plan.query.orders.keys(
          of: document.contents, name: plan.shape.name(of: document.reference)),
        document: plan.shape.shown(document))
    }
    self.init(
      plan, ranked: plan.query.isReversed ? ranked.reversed() : ranked, isComplete: isComplete)
  }
}

extension LiveQueryPlan {
  /// Whether the document was in the result or is now, whatever the limit.
  func isConcerned(by change: ObservedChange) -> Bool {
    [change.before, change.after].contains { fields in
      fields.flatMap { keys(of: $0, at: change.path) } != nil
    }
  }

  /// Makes a view of the result, its documents whole and some in reserve, as of a moment or of now.
  func evaluateResult<View: LiveView>(
    _ moment: DatedSnapshot?,
    _ make: @escaping @Sendable (ResultView, Rows) throws(DatabaseError) -> View
  ) async throws(DatabaseError) -> Evaluation<View> {
    var wide = shape
    wide.selection = nil
    var wanted = query.limit
    if query.offset == 0 {
      let (sum, overflow) = query.limit.addingReportingOverflow(reserve)
      wanted = overflow ? .max : sum
      wide.limit = wanted == .max ? nil : wanted
    }
    return try await evaluate(wide, moment) { [wanted] (executor, point) throws(DatabaseError) in
      let documents = try executor.documents()
      var result = ResultView(self, documents, isComplete: documents.count < wanted)
      result.unreadable = executor.unreadable
      result.point = point
      return try make(result, executor.rows)
    }
  }

  /// Asks the query, or one much like it, as of a moment or of now.
  func evaluate<View: LiveView>(
    _ shape: QueryShape? = nil, _ moment: DatedSnapshot?,
    _ body: @escaping @Sendable (inout Executor, CommitPoint) throws(DatabaseError) -> View
  ) async throws(DatabaseError) -> Evaluation<View> {
    let (snapshot, point) = try database.datedSnapshot(moment)
    let view = try await database.read(snapshot) {
      [database, shape = shape ?? self.shape] (rows) throws(DatabaseError) in
      var executor = try Executor(shape, in: database, rows)
      return try body(&executor, point)
    }
    return Evaluation(view: view, point: point)
  }
}

extension Database {
  /// Whether the time of a document with these fields is over, now or at another moment.
  func isOver(
    _ fields: [String: Value], at path: DocumentPath, asOf time: Int64? = nil
  ) -> Bool {
    let pattern = CollectionPattern(path.collection)
    guard let entry = catalog.picture(of: pattern.root)?.collections[pattern],
      let field = entry.timeToLive,
      case .timestamp(let end) = lookUp(field[...], in: fields)
    else { return false }
    return end.microsecondsSince1970 <= time ?? now()
  }
}
