// Live aggregates. Counts and sums follow from the changes of a commit. When they do not (the
// greatest value was removed, or the query has a limit), the query runs again.

internal import OndolEngine

/// Aggregates of a query's result.
private struct AggregateView: LiveView {
  let plan: LiveQueryPlan
  let fields: [QueryField?]
  private(set) var aggregators: [Aggregator]
  /// Documents that could not be upgraded when the query ran.
  let unreadable: [DocumentReference]
  private(set) var isStale = false

  init(
    _ plan: LiveQueryPlan, _ fields: [QueryField?], _ aggregators: [Aggregator],
    unreadable: [DocumentReference]
  ) {
    self.plan = plan
    self.fields = fields
    self.aggregators = aggregators
    self.unreadable = unreadable
  }

  func isSame(as other: AggregateView) -> Bool {
    values == other.values && unreadable == other.unreadable
  }

  private var values: [Value?] { aggregators.map(\.result) }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    let before = values
    for change in changes where !isStale { apply(change) }
    return !isStale && values != before
  }

  private mutating func apply(_ change: ObservedChange) {
    let old = change.before.flatMap { plan.keys(of: $0, at: change.path) == nil ? nil : $0 }
    let new = change.after.flatMap { plan.keys(of: $0, at: change.path) == nil ? nil : $0 }
    if old == nil, new == nil { return }
    // An expired document may or may not have been counted.
    guard plan.query.isWhole, !plan.database.hasTimeToLive(at: change.path) else {
      isStale = true
      return
    }
    let name = plan.shape.name(of: change.path)
    for index in aggregators.indices {
      if let old, !aggregators[index].remove(fields[index]?.value(in: old, name: name)) {
        isStale = true
      }
      guard let new else { continue }
      aggregators[index].add(fields[index]?.value(in: new, name: name))
    }
  }
}

extension Database {
  /// Whether documents of the collection expire.
  func hasTimeToLive(at path: DocumentPath) -> Bool {
    let pattern = CollectionPattern(path.collection)
    return catalog.picture(of: pattern.root)?.collections[pattern]?.timeToLive != nil
  }
}

extension AggregateQuery {
  /// The numbers now, and again whenever one of them changes.
  ///
  /// Counts, sums and averages follow the commits without running the query again.
  public var snapshots: Updates<AggregateQuerySnapshot> {
    let aggregate = self
    let database = query.database
    return Updates { () throws(DatabaseError) in
      let shape = try aggregate.query.shape.get()
      let key = WatchKey.aggregate(shape, aggregate.fields)
      return WatchListener(database, key) { () throws(DatabaseError) in
        let plan = try LiveQueryPlan(shape, in: database)
        var fields: [QueryField?] = []
        for field in aggregate.fields { fields.append(try field.queryField()) }
        return database.observers.attach(key, plan.subscriptions) { [fields] in
          Watch(database.observers.outages) { (moment) throws(DatabaseError) in
            try await plan.evaluate(nil, moment) { (executor, _) throws(DatabaseError) in
              let aggregators = try aggregate.aggregators(&executor)
              return AggregateView(plan, fields, aggregators, unreadable: executor.unreadable)
            }
          }
        }
      } element: { (view: AggregateView, _) in
        AggregateQuerySnapshot(query: aggregate, view.aggregators, unreadable: view.unreadable)
      }
    }
  }
}

/// A result that is computed again whenever something may have changed it.
private struct AskedAnew<Result: Sendable & Hashable>: LiveView {
  let plan: LiveQueryPlan
  let result: Result
  private(set) var isStale = false

  init(_ plan: LiveQueryPlan, _ result: Result) {
    self.plan = plan
    self.result = result
  }

  func isSame(as other: AskedAnew) -> Bool { result == other.result }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    if changes.contains(where: plan.isConcerned) { isStale = true }
    return false
  }
}

extension GroupedAggregateQuery {
  /// The groups now, and again whenever one of them changes. The query runs again for each change
  /// that concerns it.
  public var snapshots: Updates<[AggregateGroup]> {
    let groups = self
    let database = aggregate.query.database
    return Updates { () throws(DatabaseError) in
      let shape = try groups.aggregate.query.shape.get()
      let key = WatchKey.groups(
        shape, groups.aggregate.fields, groups.groupFields, groups.comparison)
      return WatchListener(database, key) { () throws(DatabaseError) in
        let plan = try LiveQueryPlan(shape, in: database)
        return database.observers.attach(key, plan.subscriptions) {
          Watch(database.observers.outages) { (moment) throws(DatabaseError) in
            try await plan.evaluate(nil, moment) { (executor, _) throws(DatabaseError) in
              AskedAnew(plan, try groups.groups(&executor))
            }
          }
        }
      } element: { (view: AskedAnew<[AggregateGroup]>, _) in
        view.result
      }
    }
  }
}
