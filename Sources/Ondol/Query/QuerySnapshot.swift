// The result of a query. A result that is kept up to date for listeners is a tree that shares its
// unchanged parts with its predecessors. It is turned into a list when the app asks for one.

/// The documents that a query found, all as of one moment.
public struct QuerySnapshot: Sendable {
  private enum Storage: Sendable {
    case list([DocumentSnapshot], ResultEnd, unreadable: [DocumentReference])
    /// A live result, and the previous one that the listener has seen.
    case live(LiveResult, before: RankedTree?)
  }

  /// The query.
  public let query: Query
  private let storage: Storage
  /// Whether a list is of a collection whose follow has not had all its documents.
  private let isPartial: Bool

  init(
    query: Query, documents: [DocumentSnapshot], _ end: ResultEnd,
    unreadable: [DocumentReference]
  ) {
    self.query = query
    let synced = query.database.observers.synced
    storage = .list(synced.marked(documents), end, unreadable: unreadable)
    isPartial =
      synced.isActive
      && ((try? query.shape.get()).map { synced.isLoading([$0.source]) } ?? false)
  }

  init(query: Query, _ result: LiveResult, before: RankedTree?) {
    self.query = query
    storage = .live(result, before: before)
    isPartial = false
  }

  /// The documents, in the query's order.
  ///
  /// - Complexity: O(1); O(n) at each call when a listener has the snapshot.
  public var documents: [DocumentSnapshot] {
    switch storage {
    case .list(let documents, _, _): documents
    case .live(let result, _): result.documents
    }
  }

  /// The position of the last document, for `start(after:)` of a query with the same order; nil
  /// only when nothing was found. It is available whatever fields `select` asked for.
  public var cursor: QueryCursor? {
    guard let orders = try? query.shape.get().completeOrders else { return nil }
    let keys: [Value?]? =
      switch storage {
      case .list(let documents, let end, _):
        end.keys ?? documents.last.flatMap { try? query.keys(at: $0) }
      case .live(let result, _): result.lastKeys
      }
    return keys.map { QueryCursor(orders: orders, keys: Array($0.prefix(orders.count))) }
  }

  /// Whether the limit leaves nothing out: the query has no document after these, or with
  /// `limit(toLast:)` none before them. So this is the last of its pages.
  public var isLastPage: Bool {
    switch storage {
    case .list(_, let end, _): end.isLast
    case .live(let result, _): result.isLastPage
    }
  }

  /// Documents that could not be upgraded to their collection's schema, in the order of their
  /// paths. The result omits them, whether they would match or not. See
  /// `CollectionReference.setSchema`.
  public var unreadable: [DocumentReference] {
    switch storage {
    case .list(_, _, let unreadable): unreadable
    case .live(let result, _): result.unreadable
    }
  }

  /// What changed since a listener's previous snapshot: removed documents, then added ones, then
  /// modified ones, each in the query's order. In a listener's first snapshot, and in a snapshot
  /// without a listener, every document was added.
  ///
  /// Removing each document at its `oldIndex` and inserting it at its `newIndex`, change after
  /// change, turns the old list into `documents`.
  ///
  /// - Complexity: O(c log n) for c changes, at each call.
  public var documentChanges: [DocumentChange] { documentChanges(includeMetadataChanges: false) }

  /// What changed since a listener's previous snapshot; see `documentChanges`.
  ///
  /// - Parameter includeMetadataChanges: whether documents of which only the metadata changed are
  ///   among the modified ones. They are known to listeners of
  ///   `snapshots(includeMetadataChanges:)` alone.
  /// - Complexity: O(c log n) for c changes, at each call.
  public func documentChanges(includeMetadataChanges: Bool) -> [DocumentChange] {
    switch storage {
    case .list(let documents, _, _):
      documents.enumerated().map { index, document in
        DocumentChange(type: .added, document: document, oldIndex: nil, newIndex: index)
      }
    case .live(let result, let before):
      DocumentChanges(
        from: before ?? RankedTree(result.plan.query.orders), to: result.ranked, result.plan,
        includingMetadata: includeMetadataChanges
      ).list(result.departures)
    }
  }

  /// The commit that a listener's snapshot is as of. Use it to continue with `snapshots(since:)` or
  /// `Database.changes(since:)`. Nil without a listener, and without `Options.changeRetention`.
  public var changeToken: ChangeToken? {
    guard case .live(let result, _) = storage else { return nil }
    return result.plan.database.token(of: result.point)
  }

  /// Information about the snapshot itself.
  ///
  /// - Complexity: O(1); in a synchronised database O(n) at each call.
  public var metadata: SnapshotMetadata {
    let isSynced = query.database.observers.synced.isActive
    let hasPendingWrites = isSynced && documents.contains { $0.metadata.hasPendingWrites }
    switch storage {
    case .list:
      return SnapshotMetadata(
        isStale: false, hasPendingWrites: hasPendingWrites, isComplete: !isPartial)
    case .live(let result, _):
      return SnapshotMetadata(
        isStale: result.isAway, hasPendingWrites: hasPendingWrites, isComplete: !result.isLoading)
    }
  }

  /// Whether nothing was found.
  public var isEmpty: Bool { count == 0 }

  /// The number of documents found.
  public var count: Int {
    switch storage {
    case .list(let documents, _, _): documents.count
    case .live(let result, _): result.ranked.count
    }
  }
}

/// The end of a result.
struct ResultEnd: Sendable {
  /// The last document's sort keys, when the document does not show them itself.
  var keys: [Value?]?
  /// Whether no limit has left out a document.
  var isLast: Bool
}

extension [DocumentReference] {
  /// These documents and others, each once, in the order of their paths.
  func adding(_ others: some Sequence<DocumentPath>, in database: Database) -> [DocumentReference] {
    let paths = Set(compactMap { try? $0.place.get() }).union(others)
    return paths.sorted().map { DocumentReference(database: database, place: .success($0)) }
  }
}

extension QuerySnapshot: Hashable {
  /// Whether both have the same documents, in the same states, of the same query.
  public static func == (left: QuerySnapshot, right: QuerySnapshot) -> Bool {
    left.query == right.query && left.documents == right.documents
      && left.unreadable == right.unreadable
  }

  /// Hashes the query and the number of documents.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(query)
    hasher.combine(count)
  }
}
