// Listening to pipelines. The answer is computed again when a commit may concern one of the
// pipeline's sources, at most as often as the listener takes results.

internal import OndolEngine

/// The answer of a pipeline.
private struct PipelineView: LiveView {
  let results: [PipelineResult]
  private(set) var isStale = false

  init(_ results: [PipelineResult]) {
    self.results = results
  }

  func isSame(as other: PipelineView) -> Bool { results == other.results }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    if !changes.isEmpty { isStale = true }
    return false
  }
}

extension Pipeline {
  /// The answer now, and again whenever it changes. Each commit looks up the pipeline by the
  /// conditions of its sources, so a commit that does not concern them costs nothing. All others
  /// make the pipeline run again.
  ///
  /// Its iterators throw `.unimplemented` for pipelines whose sources cannot be told before they
  /// run: of all documents, and with lookups by reference. `current_timestamp` and `rand` are
  /// computed again only with the answer.
  public var snapshots: Updates<[PipelineResult]> {
    let database = database
    let stages = stages
    return Updates { () throws(DatabaseError) in
      let stages = try stages.get()
      let key = WatchKey.pipeline(stages)
      return WatchListener(database, key) { () throws(DatabaseError) in
        let plan = try PipelinePlan(stages)
        let subscriptions = try plan.subscriptions()
        return database.observers.attach(key, subscriptions) {
          Watch(database.observers.outages) { (moment) throws(DatabaseError) in
            let (snapshot, point) = try database.datedSnapshot(moment)
            let results = try await database.read(snapshot, canBeCancelled: true) {
              (rows) throws(DatabaseError) in
              try plan.results(PipelineContext(database, rows.atOneMoment))
            }
            return Evaluation(view: PipelineView(results), point: point)
          }
        }
      } element: { (view: PipelineView, _) in
        view.results
      }
    }
  }
}

extension PipelinePlan {
  /// Where changes may concern the answer.
  fileprivate func subscriptions() throws(DatabaseError) -> [Subscription] {
    var all: [Subscription] = []
    switch source {
    case .query(let shape):
      all.append(
        Subscription(
          place: ListeningPlace(shape.source),
          predicates: AccessPredicate.all(of: try NormalQuery(shape).conjuncts)))
    case .search(let shape, _):
      all.append(Subscription(place: ListeningPlace(shape.source), predicates: [.every]))
    case .documents(let paths):
      for path in paths { all.append(Subscription(place: .document(path), predicates: [.every])) }
    case .literals: break
    case .database: throw Self.unknown("all documents")
    }
    for stage in rest {
      switch stage {
      case .union(let others): all += try PipelinePlan(others).subscriptions()
      case .lookup(let lookup):
        guard case .equal(let path, _, _) = lookup.match else {
          throw Self.unknown("documents that rows refer to")
        }
        all.append(Subscription(place: .collection(path), predicates: [.every]))
      default: break
      }
    }
    return all
  }

  private static func unknown(_ source: String) -> DatabaseError {
    DatabaseError(.unimplemented, "a pipeline of \(source) cannot be listened to; ask it again")
  }
}
