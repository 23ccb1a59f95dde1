// A listener for servers: it does not wait, and it calls back when there may be something to read.
// So one task serves all the places that a client listens to, and a server can deliver what a
// commit changed before it acknowledges the commit.

/// Follows the state of a query.
package final class TreeFollower: Sendable {
  private let listener: TreeListener<TreeSnapshot>

  /// Begins to follow.
  ///
  /// - Parameter notify: called on a writer's thread when the result may have changed. It must only
  ///   store that. It is also called when the database is closed.
  package init(_ query: TreeQuery, notify: @escaping @Sendable () -> Void) {
    listener = TreeListener(query.database, [(query, [.value])], notify: notify) { $0.snapshot }
  }

  /// The next state: the current one at first, then each newer one. Nil when there is none yet, or
  /// when the database is closed.
  ///
  /// - Throws: as `TreeQuerySource.getData()`; then there are no further states.
  /// - Complexity: as `observe(.value)`.
  package func poll() async throws(DatabaseError) -> TreeSnapshot? {
    try await listener.poll()
  }

  /// Whether there are no further states, because the database is closed or reading failed.
  package var isOver: Bool { listener.isOver }
}
