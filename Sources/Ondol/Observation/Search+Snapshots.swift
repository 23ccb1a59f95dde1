// Listens to searches. A search is indexed under terms such that each matching document has at
// least one of them. A commit without any of them does not wake it; a commit that concerns it runs
// the search again.

internal import OndolEngine

/// Two searches with the same key share a watch.
struct SearchWatchKey: Hashable, Sendable {
  var shape: QueryShape
  var text: String
  var fields: [QueryField]
  var matchesAll: Bool
  var startScore: Double?
  var startTail: [UInt8]
}

/// The result of a search.
private struct SearchView: LiveView {
  let plan: LiveQueryPlan
  let matches: [SearchMatch]
  private(set) var isStale = false

  init(_ plan: LiveQueryPlan, _ matches: [SearchMatch]) {
    self.plan = plan
    self.matches = matches
  }

  func isSame(as other: SearchView) -> Bool {
    matches.count == other.matches.count
      && zip(matches, other.matches).allSatisfy { mine, others in
        mine.document.reference == others.document.reference
          && mine.document.showsSame(as: others.document, comparesFields: plan.comparesFields)
      }
  }

  mutating func apply(_ changes: some Collection<ObservedChange>) -> Bool {
    if changes.contains(where: isConcerned) { isStale = true }
    return false
  }

  private func isConcerned(_ change: ObservedChange) -> Bool {
    let name = plan.shape.name(of: change.path)
    return [change.before, change.after].contains { fields in
      fields.map { plan.query.matches($0, name: name) } ?? false
    }
  }
}

extension SearchQuery {
  /// The matches now, and again whenever the search finds another document or a matching one
  /// changes.
  ///
  /// The first element comes at once. Later ones come only after commits that write or delete a
  /// document with a word of the search. Other commits do not wake the listener, so it does not see
  /// the small changes of scores that come with more documents.
  ///
  ///     for try await matches in notes.query.search("온돌", in: "body").snapshots { … }
  ///
  /// - Complexity: a commit costs O(words of the texts it changes), however many listeners there
  ///   are. A commit that concerns the search runs it again, as `getMatches()`.
  public var snapshots: Updates<[SearchMatch]> {
    let search = self
    let database = query.database
    return Updates { () throws(DatabaseError) in
      let shape = try search.shape()
      let key = WatchKey.search(
        SearchWatchKey(
          shape: shape, text: search.text, fields: search.fields.map { .field($0) },
          matchesAll: search.matching == .all, startScore: search.start?.score,
          startTail: search.start?.tail ?? []))
      return WatchListener(database, key) { () throws(DatabaseError) in
        let plan = try LiveQueryPlan(shape, in: database)
        let place = ListeningPlace(shape.source)
        return database.observers.attach(key, search.subscriptions(at: place, Tokenizer())) {
          Watch(database.observers.outages) { (moment) throws(DatabaseError) in
            while true {
              let (snapshot, point) = try database.datedSnapshot(moment)
              let found = try await database.read(snapshot, canBeCancelled: true) {
                (rows) throws(DatabaseError) in
                try search.matchesAndTokenizer(in: rows)
              }
              let subscriptions = search.subscriptions(at: place, found.tokenizer)
              // When the index has other terms, commits since the snapshot were missed.
              if !database.observers.listen(by: subscriptions, for: key) {
                return Evaluation(view: SearchView(plan, found.matches), point: point)
              }
            }
          }
        }
      } element: { (view: SearchView, _) in
        view.matches
      }
    }
  }

  /// The subscriptions by which the search is found, in an index of the tokenizer's terms.
  private func subscriptions(at place: ListeningPlace, _ tokenizer: Tokenizer) -> [Subscription] {
    let parsed = ParsedSearch(text, matchesAll: matching == .all, tokenizer)
    var predicates: Set<AccessPredicate> = []
    for term in parsed.cover {
      for field in fields {
        predicates.insert(.term(ListenedText(field: .field(field), tokenizer: tokenizer), term))
      }
    }
    return [Subscription(place: place, predicates: Array(predicates))]
  }
}
