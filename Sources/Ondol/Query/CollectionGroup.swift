// All collections with one id, wherever they are. The read path plans and reads a group pattern by
// pattern, and merges the results.

/// The documents of all collections that have one id: the collection at the top and those below any
/// document. This is as in Firestore, except that a query of a group needs no index here.
public struct CollectionGroup: Sendable, QuerySource {
  /// The database the collections are in.
  public let database: Database
  /// The id that the collections have in common.
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

  /// All documents of the group. Queries of a group identify documents by their paths: conditions
  /// on `FieldPath.documentID()` compare with paths or references, and the path breaks ties.
  public var query: Query { Query(database: database, source: source) }
}

extension Database {
  /// All collections with this id, wherever they are.
  ///
  /// - Parameter collectionID: 1 to 1,500 bytes of UTF-8 without `/`. With an invalid id, the calls
  ///   that use the group throw `.invalidArgument`.
  public func collectionGroup(_ collectionID: String) -> CollectionGroup {
    CollectionGroup(database: self, collectionID: collectionID)
  }
}
