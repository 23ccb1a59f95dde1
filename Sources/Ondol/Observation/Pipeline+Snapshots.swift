// Listening to pipelines. An answer follows the changes of a commit when it can (LivePipelineForm).
// All others are computed again when a commit may concern one of the pipeline's sources, at most as
// often as the listener takes results.

internal import OndolEngine

/// A pipeline's answer, as a listener receives it.
///
/// An answer that follows changes shares all that did not change with the one before it, and is
/// turned into a list when the app asks for one. So the next answer with 100,000 groups costs its
/// listener as little as one with ten.
public struct PipelineSnapshot: Sendable {
  fileprivate enum Content: Sendable {
    case live(LivePipeline)
    case computed([PipelineResult])
  }

  fileprivate var content: Content

  /// The rows, in the order of the last stage that sorts.
  ///
  /// - Complexity: O(1); O(n) at each call when the pipeline follows changes.
  public var results: [PipelineResult] {
    switch content {
    case .live(let live): live.results
    case .computed(let results): results
    }
  }

  /// The number of rows.
  ///
  /// - Complexity: O(1); O(n) when the pipeline follows changes and has a condition on groups, or
  ///   one after a limit.
  public var count: Int {
    switch content {
    case .live(let live): live.count
    case .computed(let results): results.count
    }
  }

  /// Whether there are no rows.
  ///
  /// - Complexity: as `count`.
  public var isEmpty: Bool { count == 0 }
}

/// The answer of a pipeline.
private struct PipelineView: LiveView {
  private(set) var snapshot: PipelineSnapshot
  /// Documents that the answer refers to.
  let referred: Set<DocumentPath>
  private(set) var isStale = false

  init(_ results: [PipelineResult], referred: Set<DocumentPath>) {
    snapshot = PipelineSnapshot(content: .computed(results))
    self.referred = referred
  }

  init(_ live: LivePipeline) {
    snapshot = PipelineSnapshot(content: .live(live))
    referred = []
  }

  func isSame(as other: PipelineView) -> Bool { snapshot.results == other.snapshot.results }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    guard !changes.isEmpty else { return false }
    guard case .live(var live) = snapshot.content, let isAnother = try? live.apply(changes) else {
      isStale = true
      return false
    }
    snapshot.content = .live(live)
    return isAnother
  }
}

extension Pipeline {
  /// The answer now, and again whenever it changes. Each commit looks up the pipeline by the
  /// conditions of its sources, so a commit that does not concern them costs nothing.
  ///
  /// Conditions, columns, orders, the first rows of an order, and groups with `count`, `count_if`,
  /// `sum`, `average`, `minimum` and `maximum` follow the changes of a commit: O(log n) for each
  /// changed document. All other pipelines run again when a commit concerns them, and so do those
  /// of documents that expire, and groups that take more than `Options.pipelineMemory`. Groups that
  /// no stage sorts may come in another order than from `execute()`.
  ///
  /// `current_timestamp` and `rand` are computed again only with the answer.
  public var snapshots: Updates<PipelineSnapshot> {
    let database = database
    let stages = stages
    return Updates { () throws(DatabaseError) in
      let stages = try stages.get()
      let key = WatchKey.pipeline(stages)
      return WatchListener(database, key) { () throws(DatabaseError) in
        let plan = try PipelinePlan(stages)
        let form = try LivePipelineForm(plan, in: database)
        let subscriptions = try plan.subscriptions()
        let documents = Set(subscriptions.compactMap(\.document))
        return database.observers.attach(key, subscriptions) {
          Watch(database.observers.outages) { (moment) throws(DatabaseError) in
            while true {
              let (snapshot, point) = try database.datedSnapshot(moment)
              let view = try await database.read(snapshot, canBeCancelled: true) {
                (rows) throws(DatabaseError) in
                try plan.view(form, rows.atOneMoment, in: database)
              }
              let evaluation = Evaluation(view: view, point: point)
              if moment != nil { return evaluation }
              // Commits since the snapshot to documents that are new among them were missed.
              let others = view.referred.subtracting(documents)
              if !database.observers.listen(to: others, for: key) { return evaluation }
            }
          }
        }
      } element: { (view: PipelineView, _) in
        view.snapshot
      }
    }
  }
}

extension Pipeline {
  /// Whether `snapshots` follows the changes of documents, as long as they do not expire and the
  /// groups fit the memory. Otherwise each change that concerns the pipeline makes it run again.
  ///
  /// False for a pipeline that cannot be executed.
  public var followsChanges: Bool {
    guard let stages = try? stages.get(), let plan = try? PipelinePlan(stages) else { return false }
    return (try? LivePipelineForm(plan, in: database)).flatMap(\.self) != nil
  }
}

extension PipelinePlan {
  fileprivate func view(
    _ form: LivePipelineForm?, _ rows: Rows, in database: Database
  ) throws(DatabaseError) -> PipelineView {
    if let form, let live = try form.evaluate(PipelineContext(database, rows)) {
      return PipelineView(live)
    }
    let referred = Guarded<Set<DocumentPath>>([])
    let context = PipelineContext(database, rows) { read in
      if case .document(let path) = read { referred.withLock { _ = $0.insert(path) } }
    }
    let results = try results(context)
    return PipelineView(results, referred: referred.withLock { $0 })
  }

  /// Where changes may concern the answer, beside documents that rows refer to.
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
    case .database: all.append(Subscription(place: .everywhere, predicates: [.every]))
    }
    for stage in rest {
      switch stage {
      case .union(let others): all += try PipelinePlan(others).subscriptions()
      case .lookup(let lookup):
        if case .equal(let path, _, _) = lookup.match {
          all.append(Subscription(place: .collection(path), predicates: [.every]))
        }
      default: break
      }
    }
    return all
  }
}

extension Subscription {
  fileprivate var document: DocumentPath? {
    if case .document(let path) = place { path } else { nil }
  }
}
