// Listening to queries and documents.

internal import OndolEngine

extension QuerySource {
  /// The query's result, and every later state of it.
  ///
  /// As in Firestore, the first snapshot has every document as added, and later ones come only when
  /// something changed; see `QuerySnapshot.documentChanges`. When one document leaves and the limit
  /// admits another, both changes are in the same snapshot. The database maintains one result for
  /// all listeners of equal queries.
  ///
  ///     for try await snapshot in diary.order(by: "workDate").snapshots { … }
  ///
  /// Each commit looks up the listeners it may concern by one condition of each query, preferably
  /// an equality or a range. So a commit that does not match costs nothing. A query with an
  /// `offset` runs again for each change that concerns it.
  public var snapshots: Updates<QuerySnapshot> {
    let query = query
    return Updates { () throws(DatabaseError) in query.listener(to: try query.shape.get()) }
  }

  /// The query's result, and every later state of it; see `snapshots`.
  ///
  /// - Parameter includeMetadataChanges: whether a snapshot also comes when only the metadata
  ///   changes, as in Firestore: when the server has confirmed a document's writes, or a follow is
  ///   complete. `QuerySnapshot.documentChanges(includeMetadataChanges:)` then names the documents.
  public func snapshots(includeMetadataChanges: Bool) -> Updates<QuerySnapshot> {
    let query = query
    return Updates { () throws(DatabaseError) in
      query.listener(to: try query.shape.get(), includesMetadata: includeMetadataChanges)
    }
  }

  /// The query's result, and every later state of it, for an app that has seen it before. The first
  /// snapshot comes at once. Its `documentChanges` are the differences from the result as of the
  /// commit that `token` names, even across a restart or a crash of the app. Later snapshots come
  /// as in `snapshots`, whose first snapshot has every document as added instead.
  ///
  ///     for try await snapshot in diary.order(by: "workDate").snapshots(since: token) {
  ///       apply(snapshot.documentChanges)
  ///       token = snapshot.changeToken
  ///     }
  ///
  /// A document that had expired at that commit is in no earlier result.
  ///
  /// Its iterators throw `.outOfRange` when the changes since the token are unknown: see
  /// `Database.changes(since:)`. They also throw it when the collection was dropped meanwhile,
  /// because a drop does not record which documents there were. In that case use `snapshots`.
  ///
  /// - Parameter token: the commit as of which the app last saw the result, from
  ///   `QuerySnapshot.changeToken` or `Database.changeToken()`.
  /// - Complexity: once O(bytes of the history since the token), and the query with its limit
  ///   increased by the number of documents that changed since; then as `snapshots`.
  public func snapshots(since token: ChangeToken) -> Updates<QuerySnapshot> {
    let query = query
    return Updates { ResumedListener(query, since: token) }
  }
}

extension Query {
  /// - Parameters:
  ///   - shape: the query.
  ///   - seen: the result that the listener has seen before.
  func listener(
    to shape: QueryShape, behind seen: ResultView? = nil, includesMetadata: Bool = false
  ) -> WatchListener<ResultView, QuerySnapshot> {
    let query = self
    return listener(to: shape, behind: seen, includesMetadata) { view, before in
      QuerySnapshot(query: query, view.picture, before: before?.result)
    }
  }

  /// Like the above, with another element made of each state of the result and the one before it.
  func listener<Element: Sendable>(
    to shape: QueryShape, behind seen: ResultView?, _ includesMetadata: Bool = false,
    _ element: @escaping @Sendable (ResultView, ResultView?) -> Element
  ) -> WatchListener<ResultView, Element> {
    let key = includesMetadata ? WatchKey.queryMetadata(shape) : .query(shape)
    return WatchListener(database, key) { [database] () throws(DatabaseError) in
      let plan = try LiveQueryPlan(shape, in: database, includesMetadata: includesMetadata)
      return database.observers.attach(key, plan.subscriptions) {
        Watch(
          database.observers.outages,
          isLoading: database.observers.synced.isLoading([shape.source])
        ) { (moment) throws(DatabaseError) in
          try await plan.evaluateResult(moment) { (view, _) throws(DatabaseError) in view }
        }
      }
    } element: { (view: ResultView, before) in
      element(view, before ?? seen)
    }
  }
}

extension LiveQueryPlan {
  /// The subscriptions by which the query is found.
  var subscriptions: [Subscription] {
    [
      Subscription(
        place: ListeningPlace(shape.source), predicates: AccessPredicate.all(of: query.conjuncts))
    ]
  }
}

extension DocumentReference {
  /// The document, and every later state of it; a snapshot that does not `exist` while there is
  /// none. Each snapshot says what happened to the document: see `DocumentSnapshot.change`.
  public var snapshots: Updates<DocumentSnapshot> { snapshots(includeMetadataChanges: false) }

  /// The document, and every later state of it; see `snapshots`.
  ///
  /// - Parameter includeMetadataChanges: whether a snapshot also comes when only the metadata
  ///   changes, as in Firestore. Its `change` is nil.
  public func snapshots(includeMetadataChanges: Bool) -> Updates<DocumentSnapshot> {
    let reference = self
    let database = database
    return Updates { () throws(DatabaseError) in
      let path = try reference.place.get()
      let key = includeMetadataChanges ? WatchKey.documentMetadata(path) : .document(path)
      return WatchListener(database, key) {
        let subscription = Subscription(place: .document(path), predicates: [.every])
        return database.observers.attach(key, [subscription]) {
          Watch(
            database.observers.outages,
            isLoading: database.observers.synced.isLoading([.collection(path.collection)])
          ) { (moment) throws(DatabaseError) in
            try await DocumentState.evaluate(reference, moment, includeMetadataChanges)
          }
        }
      } element: { (state: DocumentState, before) in
        state.document.changed(
          from: before?.shown, isStale: state.isAway, isComplete: !state.isLoading)
      }
    }
  }
}

/// A document, or its absence.
private struct DocumentState: LiveView {
  private(set) var document: DocumentSnapshot
  let isStale = false
  var isAway = false
  var isLoading = false
  let includesMetadata: Bool

  /// The document with what its listeners were told of it.
  var shown: DocumentSnapshot {
    document.changed(from: nil, isStale: isAway, isComplete: !isLoading)
  }

  func isSame(as other: DocumentState) -> Bool {
    document.showsSame(as: other.document)
      && (!includesMetadata || document.metadata == other.document.metadata)
  }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    guard let change = changes.first else { return false }
    let isWaiting = document.metadata.hasPendingWrites
    if includesMetadata, change.isWaiting != isWaiting {
      document = document.marked(hasPendingWrites: change.isWaiting, change.origin)
      _ = applyFields(change)
      return true
    }
    document = document.marked(hasPendingWrites: change.isWaiting, document.origin)
    return applyFields(change)
  }

  /// Returns whether the document has changed.
  private mutating func applyFields(_ change: ObservedChange) -> Bool {
    let database = document.reference.database
    let fields = change.after.flatMap { database.isOver($0, at: change.path) ? nil : $0 }
    // Created and deleted again: nothing to report.
    if !document.exists, fields == nil { return false }
    let before = document
    document = change.snapshot(in: database, fields)
    // Only the metadata may have changed.
    return before.version != document.version || !before.showsSame(as: document)
  }

  static func evaluate(
    _ reference: DocumentReference, _ moment: DatedSnapshot?, _ includesMetadata: Bool
  ) async throws(DatabaseError) -> Evaluation<DocumentState> {
    let path = try reference.place.get()
    let database = reference.database
    let (snapshot, point) = try database.datedSnapshot(moment)
    await database.finishMarking(through: point.sequence)
    let contents = try await reference.database.read(snapshot) { (rows) throws(DatabaseError) in
      try DocumentReader(rows: rows).contents(of: path)
    }
    let document = DocumentSnapshot(reference: reference, contents: contents)
    let marked = database.observers.synced.marked([document], asOf: point.sequence)
    return Evaluation(
      view: DocumentState(document: marked[0], includesMetadata: includesMetadata), point: point)
  }
}
