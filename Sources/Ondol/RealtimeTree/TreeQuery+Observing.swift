// The calls that listen to the tree.

internal import OndolEngine

extension TreeQuerySource {
  /// What happens to the children, as it happens.
  ///
  /// With `.childAdded`, every existing child comes first, in order, as in the Realtime Database.
  /// Then come the events of commits: for each commit those that removed, added, moved and changed
  /// children, each kind in the query's order, with the key of the previous child in the new state.
  /// With a limit, a child that leaves and the one that replaces it are in the same commit's
  /// events. A commit without visible changes has no events.
  ///
  ///     for try await event in cars.observe(.childAdded, .childChanged, .childRemoved) { … }
  ///
  /// A listener that is slower than the writers gets the events of several commits as if they had
  /// been one. An app can maintain a list by applying all four kinds of events one by one,
  /// inserting each child after the one that `previousSiblingKey` names. At the end of each
  /// commit's events, its list is correct. Every call, and every iterator, listens independently.
  /// Cancelling the task ends it.
  ///
  /// A commit looks for listeners on the way to each row it changes. The listener reads the
  /// children that changed. In an order other than that of keys, without an index, it also stores
  /// the value that orders each child.
  ///
  /// - Parameters:
  ///   - kind: an event to report.
  ///   - more: other events to report.
  public func observe(_ kind: ChildEventKind, _ more: ChildEventKind...) -> Updates<TreeEvent> {
    let kinds = Set(([kind] + more).map { TreeEvent.Kind($0) })
    return treeQuery.updates(kinds)
  }

  /// The node as a whole, or the children that the query selects: as it is now, and whenever a
  /// commit changes something there or below. In all other respects like `observe` for children.
  ///
  ///     for try await snapshot in cars.observe(.value) { … }
  ///
  /// - Parameter kind: `.value`, the only one there is.
  /// - Complexity: reading the node, for the first element; for each later one, reading what
  ///   changed. The listener keeps the last node it delivered, in memory that it shares with that
  ///   snapshot.
  public func observe(_ kind: ValueEventKind) -> Updates<TreeSnapshot> {
    let query = treeQuery
    return Updates { TreeListener(query.database, [(query, [.value])]) { $0.snapshot } }
  }

  /// Events about children and about the node as a whole in one sequence: `.value` is the last of
  /// the first events, and the last of each commit's.
  ///
  /// - Parameter kinds: the events to report.
  public func observe(_ kinds: Set<TreeEvent.Kind>) -> Updates<TreeEvent> {
    treeQuery.updates(kinds)
  }

  /// The node as a whole, or the children that the query selects, once: as `getData()`.
  ///
  /// - Parameter kind: `.value`, the only one there is.
  /// - Throws: as `getData()`.
  /// - Complexity: as `getData()`.
  public func observeSingle(_ kind: ValueEventKind) async throws(DatabaseError) -> TreeSnapshot {
    try await getData()
  }

  /// The next event of a kind; for `.childAdded` that is the first child, if there is one.
  ///
  /// - Parameter kind: the event to wait for.
  /// - Returns: nil when the task is cancelled or the database is closed before there is one.
  /// - Throws: as `getData()`.
  /// - Complexity: as `observe`.
  public func observeSingle(
    _ kind: ChildEventKind
  ) async throws(DatabaseError) -> TreeEvent? {
    var events = observe(kind).makeAsyncIterator()
    return try await events.next()
  }
}

extension TreeQuery {
  fileprivate func updates(_ kinds: Set<TreeEvent.Kind>) -> Updates<TreeEvent> {
    Updates { TreeListener(database, [(self, kinds)]) { $0 } }
  }
}

extension Database {
  /// Events at several places of the tree in one sequence: for each commit those of the deepest
  /// place first, then those of the places above it.
  ///
  /// - Parameter queries: the queries to listen to, and the events of each; all of this database.
  public func observeTree(
    _ queries: [(query: any TreeQuerySource, kinds: Set<TreeEvent.Kind>)]
  ) -> Updates<TreeEvent> {
    let queries = queries.map { ($0.query.treeQuery, $0.kinds) }
    return Updates { () throws(DatabaseError) in
      for (query, _) in queries where query.database !== self {
        throw DatabaseError(
          .invalidArgument, "what is listened to is in another database",
          path: query.reference.path)
      }
      return TreeListener(self, queries) { $0 }
    }
  }
}
