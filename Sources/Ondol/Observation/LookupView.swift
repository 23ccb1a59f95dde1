// Live joins: the results of a query, and the documents that they refer to. A change of either
// updates the results that it concerns. Only when a result begins to refer to a document that no
// other did, the whole query runs again.

internal import OndolEngine

/// A completed result.
private struct LookupView: LiveView {
  private let steps: [LookupStep]
  /// The query's own result.
  private var found: ResultView
  /// The documents of `found`, completed.
  private(set) var completed: RankedTree
  /// The documents that results refer to.
  private var referred: ReferredDocuments
  /// Those of them that could not be upgraded. A change of one of them evaluates everything again.
  private var unreadable: Set<DocumentPath>
  /// The results that refer to each document, by their paths.
  private var referrers: [DocumentPath: [DocumentPath: RankedDocument]] = [:]
  /// The documents that each result refers to.
  private var references: [DocumentPath: Set<DocumentPath>] = [:]
  private(set) var isStale = false
  var isLoading: Bool {
    get { found.isLoading }
    set { found.isLoading = newValue }
  }
  /// The last commit known to be in it.
  private var point: CommitPoint

  /// Throws what completing a document throws.
  init(
    _ found: ResultView, _ steps: [LookupStep], _ known: CompletedDocuments, _ point: CommitPoint
  ) throws(DatabaseError) {
    self.steps = steps
    self.found = found
    referred = known.referred
    unreadable = known.unreadable
    self.point = point
    completed = RankedTree(found.plan.query.orders)
    var documents: [RankedDocument] = []
    documents.reserveCapacity(found.result.count)
    for ranked in found.result {
      // Everything that results refer to has just been read.
      if let document = try complete(ranked) { documents.append(document) }
    }
    completed = RankedTree(found.plan.query.orders, sorted: documents)
  }

  /// The completed result.
  var result: ResultView {
    var result = found.showing(completed, asOf: point)
    if !unreadable.isEmpty {
      result.unreadable = result.unreadable.adding(unreadable, in: found.plan.database)
    }
    return result
  }

  /// The documents that results refer to.
  var places: Dictionary<DocumentPath, Value?>.Keys { referred.keys }

  func isSame(as other: LookupView) -> Bool { result.isSame(as: other.result) }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    let before = (found: found.result, completed: completed)
    let plan = found.plan
    let own = changes.filter { plan.shape.contains($0.path) }
    if !own.isEmpty { _ = found.apply(own) }
    do throws(DatabaseError) {
      let concerned = takeIn(changes)
      isStale = found.isStale
      if !isStale { isStale = try !follow(before.found, and: concerned) }
    } catch {
      // The code that evaluates the view reports the error.
      isStale = true
    }
    guard !isStale else {
      completed = before.completed
      return false
    }
    for change in changes where change.stamps.point.sequence > point.sequence {
      point = change.stamps.point
    }
    return !DocumentChanges(from: before.completed, to: completed, plan).isEmpty
  }

  /// Records the changes of referenced documents; returns the results that refer to them.
  private mutating func takeIn(_ changes: some Collection<ObservedChange>) -> [RankedDocument] {
    var concerned: [DocumentPath: RankedDocument] = [:]
    for change in changes where referred.index(forKey: change.path) != nil {
      let database = found.plan.database
      let fields = change.after.flatMap { database.isOver($0, at: change.path) ? nil : $0 }
      referred.updateValue(fields.map { .map($0) }, forKey: change.path)
      concerned.merge(referrers[change.path] ?? [:]) { $1 }
    }
    return Array(concerned.values)
  }

  /// Completes what is new since an older state of `found`, and the results that refer to changed
  /// documents. Returns false when a result refers to an unknown document.
  private mutating func follow(
    _ old: RankedTree, and concerned: [RankedDocument]
  ) throws(DatabaseError) -> Bool {
    let difference = old.difference(to: found.result)
    var changed: Set<DocumentPath> = []
    for ranked in difference.new { changed.insert(try ranked.document.reference.place.get()) }
    for ranked in difference.old {
      completed.remove(ranked.keys)
      let path = try ranked.document.reference.place.get()
      if !changed.contains(path) { forget(path) }
    }
    // A removed result has no references left, and a new one has others.
    for ranked in concerned where found.result.find(ranked.keys).entry === ranked {
      guard let document = try complete(ranked) else { return false }
      completed.insert(document)
    }
    for ranked in difference.new {
      guard let document = try complete(ranked) else { return false }
      completed.insert(document)
    }
    return true
  }

  /// A result with its fields added, and recorded references; nil when a referenced document is
  /// unknown.
  private mutating func complete(_ ranked: RankedDocument) throws(DatabaseError) -> RankedDocument?
  {
    var document = ranked.document
    var wanted: Set<DocumentPath> = []
    for step in steps {
      let paths = step.paths(in: document)
      guard paths.allSatisfy({ referred.index(forKey: $0) != nil }) else { return nil }
      wanted.formUnion(paths)
      document = try step.complete(document, with: referred)
    }
    let path = try ranked.document.reference.place.get()
    if references[path] != wanted { forget(path, keeping: wanted) }
    for place in wanted { referrers[place, default: [:]][path] = ranked }
    references[path] = wanted
    return RankedDocument(keys: ranked.keys, document: document)
  }

  /// Forgets the references of a result, and documents that nothing refers to any more.
  private mutating func forget(_ path: DocumentPath, keeping kept: Set<DocumentPath> = []) {
    for place in references.removeValue(forKey: path) ?? [] where !kept.contains(place) {
      referrers[place]?[path] = nil
      guard referrers[place]?.isEmpty == true else { continue }
      referrers[place] = nil
      referred.removeValue(forKey: place)
      unreadable.remove(place)
    }
  }
}

extension LookupQuery {
  /// The completed result, and every later state of it: when a document enters, leaves or changes,
  /// and when a referenced document does. In all other respects like `QuerySource.snapshots`.
  ///
  /// A change costs as much as the results that it concerns. When a result begins to refer to a
  /// document that no other did, the whole query runs again.
  public var snapshots: Updates<QuerySnapshot> {
    let lookup = self
    let database = query.database
    return Updates { () throws(DatabaseError) in
      let (shape, steps) = (try lookup.query.shape.get(), try lookup.steps.get())
      let key = WatchKey.lookup(shape, steps)
      return WatchListener(database, key) { () throws(DatabaseError) in
        let plan = try LiveQueryPlan(shape, in: database, addsFields: true)
        let subscriptions = plan.subscriptions + Self.subscriptions(to: steps)
        return database.observers.attach(key, subscriptions) {
          Watch(
            database.observers.outages,
            isLoading: database.observers.synced.isLoading([shape.source])
          ) { (moment) throws(DatabaseError) in
            try await lookup.evaluate(plan, key, moment)
          }
        }
      } element: { (view: LookupView, before) in
        QuerySnapshot(query: lookup.query, view.result.picture, before: before?.completed)
      }
    }
  }

  /// Every document that an id can refer to.
  private static func subscriptions(to steps: [LookupStep]) -> [Subscription] {
    Set(steps.map(\.collection)).map {
      Subscription(place: .collection($0), predicates: [.every])
    }
  }

  /// Runs the query until all documents that its results refer to are listened to; as of a given
  /// moment, once.
  private func evaluate(
    _ plan: LiveQueryPlan, _ key: WatchKey, _ moment: DatedSnapshot?
  ) async throws(DatabaseError) -> Evaluation<LookupView> {
    let steps = try steps.get()
    let collections = Set(steps.map(\.collection))
    while true {
      let evaluation = try await plan.evaluateResult(moment) {
        [self] (found, rows) throws(DatabaseError) in
        let completed = try complete(found.result.documents, rows)
        return try LookupView(found, steps, completed, found.point)
      }
      if moment != nil { return evaluation }
      // References can lead anywhere, not only into the collections where ids are looked up.
      let elsewhere = Set(evaluation.view.places.filter { !collections.contains($0.collection) })
      if !plan.database.observers.listen(to: elsewhere, for: key) { return evaluation }
    }
  }
}
