// Listening to queries and documents.

internal import OndolEngine

extension QuerySource {
  /// The query's result, and every later state of it.
  ///
  /// As in Firestore, the first snapshot has every document as added, and a later one comes only
  /// when something changed; see `QuerySnapshot.documentChanges`. Where a limit lets a document in
  /// because another left, both are in the same snapshot. Equal queries are kept up to date once
  /// for all who listen.
  ///
  ///     for try await snapshot in diary.order(by: "workDate").snapshots { … }
  ///
  /// What a listener pays: a commit looks up who may be concerned by a condition of each query, an
  /// equality or a range best; so what does not match costs nothing. A query with an `offset` is
  /// asked again for each change that concerns it.
  public var snapshots: Updates<QuerySnapshot> {
    let query = query
    return Updates { () throws(DatabaseError) in query.listener(to: try query.shape.get()) }
  }

  /// The query's result, and every later state of it, for someone who has seen it before: the first
  /// snapshot comes at once, and its `documentChanges` are what is different from the result as of
  /// the commit that `token` names, where the app was closed or a crash came in between included. A
  /// later one comes as in `snapshots`, whose first snapshot has every document as added instead.
  ///
  ///     for try await snapshot in diary.order(by: "workDate").snapshots(since: token) {
  ///       apply(snapshot.documentChanges)
  ///       token = snapshot.changeToken
  ///     }
  ///
  /// A document whose time was over at that commit was in no result any more.
  ///
  /// Its iterators throw `.outOfRange` when what happened since the token cannot be known: see
  /// `Database.changes(since:)`; also when the collection was dropped meanwhile, because that does
  /// not say which documents there were. `snapshots` is the way then.
  ///
  /// - Parameter token: the commit as of which the result was last seen, from
  ///   `QuerySnapshot.changeToken` or `Database.changeToken()`.
  /// - Complexity: once O(bytes of the history since the token), and the query with a limit that is
  ///   greater by the number of documents that changed since; then as `snapshots`.
  public func snapshots(since token: ChangeToken) -> Updates<QuerySnapshot> {
    let query = query
    return Updates { ResumedListener(query, since: token) }
  }
}

extension Query {
  /// - Parameters:
  ///   - shape: what it asks.
  ///   - seen: the result that whoever listens has seen before.
  func listener(
    to shape: QueryShape, behind seen: ResultView? = nil
  ) -> WatchListener<ResultView, QuerySnapshot> {
    let query = self
    return listener(to: shape, behind: seen) { view, before in
      QuerySnapshot(query: query, view.picture, before: before?.result)
    }
  }

  /// As above, with something else made of each state of the result and the one before it.
  func listener<Element: Sendable>(
    to shape: QueryShape, behind seen: ResultView?,
    _ element: @escaping @Sendable (ResultView, ResultView?) -> Element
  ) -> WatchListener<ResultView, Element> {
    let key = WatchKey.query(shape)
    return WatchListener(database, key) { [database] () throws(DatabaseError) in
      let plan = try LiveQueryPlan(shape, in: database)
      return database.observers.attach(key, plan.subscriptions) {
        Watch(database.observers.outages) { (moment) throws(DatabaseError) in
          try await plan.evaluateResult(moment) { (view, _) throws(DatabaseError) in view }
        }
      }
    } element: { (view: ResultView, before) in
      element(view, before ?? seen)
    }
  }
}

extension LiveQueryPlan {
  /// By what the query is found.
  var subscriptions: [Subscription] {
    [
      Subscription(
        place: ListeningPlace(shape.source), predicates: AccessPredicate.all(of: query.conjuncts))
    ]
  }
}

extension DocumentReference {
  /// The document, and every later state of it; a snapshot that does not `exist` while there is
  /// none. Each says what happened to the document: see `DocumentSnapshot.change`.
  public var snapshots: Updates<DocumentSnapshot> {
    let reference = self
    let database = database
    return Updates { () throws(DatabaseError) in
      let path = try reference.place.get()
      let key = WatchKey.document(path)
      return WatchListener(database, key) {
        let subscription = Subscription(place: .document(path), predicates: [.every])
        return database.observers.attach(key, [subscription]) {
          Watch(database.observers.outages) { (moment) throws(DatabaseError) in
            try await DocumentState.evaluate(reference, moment)
          }
        }
      } element: { (state: DocumentState, before) in
        state.document.changed(from: before?.document, isStale: state.isAway)
      }
    }
  }
}

/// A document, or its absence.
private struct DocumentState: LiveView {
  private(set) var document: DocumentSnapshot
  let isStale = false
  var isAway = false

  func isSame(as other: DocumentState) -> Bool { document.showsSame(as: other.document) }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    guard let change = changes.first else { return false }
    let database = document.reference.database
    let fields = change.after.flatMap { database.isOver($0, at: change.path) ? nil : $0 }
    // Made and gone again: nothing to tell.
    if !document.exists, fields == nil { return false }
    document = change.snapshot(in: database, fields)
    return true
  }

  static func evaluate(
    _ reference: DocumentReference, _ moment: DatedSnapshot?
  ) async throws(DatabaseError) -> Evaluation<DocumentState> {
    let path = try reference.place.get()
    let (snapshot, point) = try reference.database.datedSnapshot(moment)
    let contents = try await reference.database.read(snapshot) { (rows) throws(DatabaseError) in
      try DocumentReader(rows: rows).contents(of: path)
    }
    return Evaluation(
      view: DocumentState(
        document: DocumentSnapshot(reference: reference, contents: contents)), point: point)
  }
}
