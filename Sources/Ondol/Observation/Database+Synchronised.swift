// What the rows of synchronisation say when it begins, for snapshots and listeners.

extension Database {
  /// Takes what the rows of synchronisation say before commits change them.
  ///
  /// - Parameter waiting: the documents that wait for the server.
  /// - Throws: as reads do.
  package func noteSynchronised(waiting: [DocumentPath]) async throws(DatabaseError) {
    var follows: [String: FollowFact] = [:]
    for row in try await syncFollows.getDocuments().documents {
      follows[row.documentID] = FollowFact(row.data())
    }
    observers.synced.load(waiting: waiting, follows)
  }
}
