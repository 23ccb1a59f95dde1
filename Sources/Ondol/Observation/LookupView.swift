// Live joins: a query whose results are completed with other documents is asked again when
// something that concerns the query changes, or one of the documents its results refer to.

internal import OndolEngine

/// A completed result.
private struct LookupView: LiveView {
  let result: ResultView
  let referred: Set<DocumentPath>
  private(set) var isStale = false

  init(_ result: ResultView, _ referred: Set<DocumentPath>) {
    self.result = result
    self.referred = referred
  }

  func isSame(as other: LookupView) -> Bool { result.isSame(as: other.result) }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    isStale =
      isStale
      || changes.contains { change in
        referred.contains(change.path)
          || result.plan.shape.contains(change.path) && result.plan.isConcerned(by: change)
      }
    return false
  }
}

extension LookupQuery {
  /// The completed result, and every later state of it: when a document enters, leaves or changes,
  /// and when one that is referred to does. As `QuerySource.snapshots` otherwise.
  public var snapshots: Updates<QuerySnapshot> {
    let lookup = self
    let database = query.database
    return Updates { () throws(DatabaseError) in
      let (shape, steps) = (try lookup.query.shape.get(), try lookup.steps.get())
      let key = WatchKey.lookup(shape, steps)
      return WatchListener(database.observers, key) { () throws(DatabaseError) in
        let plan = try LiveQueryPlan(shape, in: database, addsFields: true)
        let subscriptions = plan.subscriptions + Self.subscriptions(to: steps)
        return database.observers.attach(key, subscriptions) {
          Watch { () throws(DatabaseError) in try await lookup.evaluate(plan, key) }
        }
      } element: { (view: LookupView, before) in
        QuerySnapshot(query: lookup.query, view.result, before: before?.result)
      }
    }
  }

  /// Every document that can be referred to by an id.
  private static func subscriptions(to steps: [LookupStep]) -> [Subscription] {
    Set(steps.map(\.collection)).map {
      Subscription(place: .collection($0), predicates: [.every])
    }
  }

  /// Asks the query until all that its results refer to is listened to.
  private func evaluate(
    _ plan: LiveQueryPlan, _ key: WatchKey
  ) async throws(DatabaseError) -> Evaluation<LookupView> {
    let collections = try Set(steps.get().map(\.collection))
    while true {
      let evaluation = try await plan.evaluate { [self] (executor) throws(DatabaseError) in
        let found = try complete(&executor)
        var result = ResultView(plan, found.documents, isComplete: false)
        result.unreadable = found.unreadable
        return LookupView(result, found.referred)
      }
      // References lead anywhere, not only into the collections where ids are looked up.
      let elsewhere = evaluation.view.referred.filter { !collections.contains($0.collection) }
      if !plan.database.observers.listen(to: elsewhere, for: key) { return evaluation }
    }
  }
}
