// How listening to the tree begins.

internal import OndolEngine

extension TreeQuerySource {
  /// What happens to the children, as it happens.
  ///
  /// With `.childAdded` every child there is comes first, in order, as in the Realtime Database.
  /// Then come the events of commits: of each commit those that removed, added, moved and changed
  /// children, each sort in the query's order, with the key of the child before in the new state.
  /// With a limit, a child that leaves and the one that takes its place are in the same commit's
  /// events. A commit that changes nothing there is to see has none.
  ///
  ///     for try await event in cars.observe(.childAdded, .childChanged, .childRemoved) { … }
  ///
  /// A listener that is slower than the writers gets the events of several commits as if they had
  /// been one. Whoever applies events to a list one by one, putting each child behind the one that
  /// `previousSiblingKey` names, has the list as it is at the end of each commit's events; for
  /// that it needs all four kinds. Every call, and every iterator, listens for itself; the task's
  /// cancellation ends it.
  ///
  /// What it costs: a commit looks for listeners on the way to each row it changes. The listener
  /// reads the children that changed; in an order other than that of keys, without an index, it
  /// also keeps what each child is ordered by.
  ///
  /// - Parameters:
  ///   - kind: what to tell.
  ///   - more: what else to tell.
  public func observe(_ kind: ChildEventKind, _ more: ChildEventKind...) -> Updates<TreeEvent> {
    let kinds = Set(([kind] + more).map { TreeEvent.Kind($0) })
    return treeQuery.updates(kinds)
  }

  /// The node as a whole, or the children that the query selects: as it is now, and whenever a
  /// commit changes something there or below. Otherwise as `observe` for children.
  ///
  ///     for try await snapshot in cars.observe(.value) { … }
  ///
  /// - Parameter kind: `.value`, the only one there is.
  /// - Complexity: reading the node, for the first element; for each one after it, reading what
  ///   changed. The listener keeps the node as it told it last, in memory that it shares with the
  ///   snapshot it gave.
  public func observe(_ kind: ValueEventKind) -> Updates<TreeSnapshot> {
    let query = treeQuery
    return Updates { TreeListener(query.database, [(query, [.value])]) { $0.snapshot } }
  }

  /// Events about children and about the node as a whole in one sequence: `.value` comes as the
  /// last of the first events, and as the last of each commit's.
  ///
  /// - Parameter kinds: what to tell.
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
  /// - Parameter kind: what to wait for.
  /// - Returns: nil when the task is cancelled or the database closed before there is one.
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
  /// Events at several places of the tree in one sequence: of each commit those of the deepest
  /// place first, then of those above it.
  ///
  /// - Parameter queries: what is listened to, and for which events; all of this database.
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
