// All collections with one id, wherever they are. On the read path a group is planned and read
// pattern by pattern, and the results are merged.

/// The documents of all collections that have one id: those at the top and those below any
/// document. As in Firestore, but for the index that a query of a group needs there.
public struct CollectionGroup: Sendable, QuerySource {
  /// The database the collections are in.
  public let database: Database
  /// The id the collections have in common.
  public let collectionID: String
  let source: Result<QueryShape.Source, DatabaseError>

  init(database: Database, collectionID: String) {
    self.database = database
    self.collectionID = collectionID
    source = Result { () throws(DatabaseError) in
      if let problem = ResourceName.problem(withID: collectionID) {
        throw DatabaseError(
          .invalidArgument, "\"\(collectionID)\" is no collection's id: \(problem)",
          path: collectionID)
      }
      return .group(ExactText(collectionID))
    }
  }

  /// All documents of the group. They are called by their paths: conditions on
  /// `FieldPath.documentID()` compare with paths or references, and ties are broken by path.
  public var query: Query { Query(database: database, source: source) }
}

extension Database {
  /// All collections with this id, wherever they are.
  ///
  /// - Parameter collectionID: 1 to 1,500 bytes of UTF-8 without `/`. One that cannot be an id
  ///   makes the calls throw `.invalidArgument` that use the group.
  public func collectionGroup(_ collectionID: String) -> CollectionGroup {
    CollectionGroup(database: self, collectionID: collectionID)
  }
}
