// The result of a query as listeners see it, kept in order while documents change, in O(log n) for
// each change. A query with a limit keeps some more documents in reserve, in the same order, so
// that a document that leaves is replaced at once. Only when the reserve is used up does the query
// run again.

internal import OndolEngine

/// A query's result, and the documents in reserve.
struct ResultView: LiveView {
  let plan: LiveQueryPlan
  /// In the normal order, of which a limit keeps the first.
  private(set) var result: RankedTree
  /// The documents after the result.
  private var reserve: RankedTree
  /// Whether every matching document is in one of the two.
  private var isComplete: Bool
  private(set) var isStale = false
  var isAway = false
  var isLoading = false
  /// The last documents that left because of commits that synchronisation made.
  private var departures: Set<DocumentPath> = []
  /// The most of them that are remembered.
  private static let mostDepartures = 1_000
  var includesMetadata: Bool { plan.includesMetadata }
  /// Documents that could not be upgraded when the query ran. A change of one of them runs it
  /// again.
  var unreadable: [DocumentReference] = []
  /// The last commit known to be in it.
  fileprivate(set) var point = CommitPoint(sequence: .zero, time: 0)

  /// - Parameter documents: the first documents of the result without its limit, in the normal
  ///   order, up to the limit and the reserve.
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
    let ranked = changes.map { self.ranked($0) }
    for change in changes { takeOut(change) }
    for ranked in ranked { put(ranked) }
    settle()
    if isStale {
      result = old
    } else {
      advance(past: changes)
      noteDepartures(changes)
    }
    return !isStale && !DocumentChanges(from: old, to: result, plan).isEmpty
  }

  /// Without a limit every match is in the result, and a document's old and new state show whether
  /// the result changes.
  private mutating func applyToWhole(_ changes: some Collection<ObservedChange>) -> Bool {
    var isAnother = false
    for change in changes {
      let (before, after) = (keysBefore(change), ranked(change))
      var old: RankedDocument?
      // A document that keeps its place is replaced there.
      if let before, after.map({ plan.query.orders.compare(before, $0.keys) != 0 }) ?? true {
        old = result.remove(before)
      }
      if let after { old = result.insert(after) ?? old }
      switch (old, after) {
      case (nil, nil): break
      case (let old?, let new?):
        isAnother = isAnother || !plan.isSame(old, new, plan.includesMetadata)
      default: isAnother = true
      }
    }
    advance(past: changes)
    noteDepartures(changes)
    return isAnother
  }

  /// Records which documents synchronisation took away.
  private mutating func noteDepartures(_ changes: some Collection<ObservedChange>) {
    for change in changes where !departures.isEmpty || change.origin == .server {
      let hasLeft = change.before != nil && ranked(change) == nil
      if hasLeft, change.origin == .server {
        if departures.count >= Self.mostDepartures { departures = [] }
        departures.insert(change.path)
      } else {
        departures.remove(change.path)
      }
    }
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

  private mutating func put(_ ranked: RankedDocument?) {
    guard let ranked else { return }
    let keys = ranked.keys
    if let last = result.last, plan.query.orders.areInOrder(keys, last.keys) {
      result.insert(ranked)
    } else if let last = reserve.last, plan.query.orders.areInOrder(keys, last.keys) {
      reserve.insert(ranked)
    } else if isComplete {
      reserve.insert(ranked)
    }
    // Otherwise it comes after documents that are not known.
  }

  /// The document's old sort keys, if it was in the result.
  private func keysBefore(_ change: ObservedChange) -> [Value?]? {
    change.before.map { plan.query.orders.keys(of: $0, name: plan.shape.name(of: change.path)) }
  }

  /// The document's place in the result, regardless of the limit; nil when it has none.
  private func ranked(_ change: ObservedChange) -> RankedDocument? {
    guard let fields = change.after, let keys = plan.keys(of: fields, at: change.path),
      !plan.database.isOver(fields, at: change.path)
    else { return nil }
    var document = plan.shape.shown(change.snapshot(in: plan.database, fields))
    if change.origin == .server, let before = keysBefore(change),
      let known = result.find(before).entry ?? reserve.find(before).entry,
      known.document.version == document.version
    {
      // Only whether it waits has changed.
      document = document.marked(
        hasPendingWrites: change.isWaiting, known.document.origin)
    }
    return RankedDocument(keys: keys, document: document)
  }

  /// Moves documents between result and reserve, so that each has its share.
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

  /// The current result.
  var picture: LiveResult {
    LiveResult(
      plan: plan, ranked: result, isLastPage: isComplete && reserve.isEmpty,
      unreadable: unreadable, point: point, isAway: isAway, isLoading: isLoading,
      departures: departures)
  }
}

extension ResultView {
  /// The same with other documents in place of these.
  func showing(_ others: RankedTree, asOf point: CommitPoint) -> ResultView {
    var copy = self
    copy.result = others
    copy.point = point
    return copy
  }

  /// - Parameter documents: in the query's order, with all their fields.
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
  /// Whether the document was or is in the result, regardless of the limit.
  func isConcerned(by change: ObservedChange) -> Bool {
    [change.before, change.after].contains { fields in
      fields.flatMap { keys(of: $0, at: change.path) } != nil
    }
  }

  /// Makes a view of the result, with whole documents and a reserve, as of a moment or of now.
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
      let documents = database.observers.synced.marked(
        try executor.documents(), asOf: point.sequence)
      var result = ResultView(self, documents, isComplete: documents.count < wanted)
      result.unreadable = executor.unreadable
      result.point = point
      return try make(result, executor.rows)
    }
  }

  /// Runs the query, or a variant of it, as of a moment or of now.
  func evaluate<View: LiveView>(
    _ shape: QueryShape? = nil, _ moment: DatedSnapshot?,
    _ body: @escaping @Sendable (inout Executor, CommitPoint) throws(DatabaseError) -> View
  ) async throws(DatabaseError) -> Evaluation<View> {
    let (snapshot, point) = try database.datedSnapshot(moment)
    await database.finishMarking(through: point.sequence)
    let view = try await database.read(snapshot) {
      [database, shape = shape ?? self.shape] (rows) throws(DatabaseError) in
      var executor = try Executor(shape, in: database, rows)
      return try body(&executor, point)
    }
    return Evaluation(view: view, point: point)
  }
}

extension Database {
  /// Waits until what commits meant for synchronisation is known: a listener receives only what
  /// happens after the result that it begins with.
  func finishMarking(through sequence: SequenceNumber) async {
    guard observers.synced.isActive else { return }
    await engine.finishAnnouncing(through: sequence)
  }

  /// Whether a document with these fields has expired, now or at another moment.
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
