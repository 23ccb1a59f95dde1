// A database as the server's faces use it: with the transactions that its clients hold between
// calls, and the moments that it has told them of.

#if Server
  package import Ondol

  /// A database that is served.
  package final class ServedDatabase: Sendable {
    package let database: Database
    let transactions: HeldTransactions
    let moments: RecentMoments

    package init(_ database: Database) {
      self.database = database
      transactions = HeldTransactions(database)
      moments = RecentMoments(database)
    }
  }

  /// Which database a name leads to.
  package protocol DatabaseDirectory: Sendable {
    /// The database of a project, by its id in it.
    ///
    /// - Throws: `.notFound` when there is none.
    func database(
      project: String, id: String
    ) async throws(DatabaseError) -> ServedDatabase
  }

  /// One database, which is the usual one of every project.
  package struct SingleDatabase: DatabaseDirectory {
    private let find: @Sendable () async throws(DatabaseError) -> ServedDatabase

    /// A database that somebody else opens and closes.
    package init(_ served: ServedDatabase) {
      find = { served }
    }

    package init(_ opened: OpenedDatabase) {
      find = { () throws(DatabaseError) in try await opened.served() }
    }

    package func database(
      project: String, id: String
    ) async throws(DatabaseError) -> ServedDatabase {
      guard id == DatabaseName.usual else {
        throw DatabaseError(
          .notFound,
          "The database \(id) does not exist for project \(project): this server has one database,"
            + " \(DatabaseName.usual). `--many` serves a folder of them")
      }
      return try await find()
    }
  }
#endif
