// A database as the server's services use it, with the transactions that clients hold between
// calls, the moments that it has reported to them, and the rules for them.

#if Server
  package import Ondol
  import OndolMapping

  /// A served database.
  package final class ServedDatabase: Sendable {
    package let database: Database
    let transactions: HeldTransactions
    let moments: RecentMoments
    let rules: ServerRules
    let heartbeat: Heartbeat
    /// Its accounts, and the tokens that name them.
    let identity: Identity

    package init(_ database: Database) {
      self.database = database
      transactions = HeldTransactions(database)
      moments = RecentMoments(database)
      rules = ServerRules(database)
      heartbeat = Heartbeat(database)
      identity = Identity(database)
    }
  }

  /// Finds the database of a name.
  package protocol DatabaseDirectory: Sendable {
    /// The database of a project, by its id in it.
    ///
    /// - Throws: `.notFound` if there is none.
    func database(
      project: String, id: String
    ) async throws(DatabaseError) -> ServedDatabase

    /// Whether rules are deployed, as far as that is known before the first call.
    var hasRules: Bool { get async throws(DatabaseError) }
  }

  /// One database, which is the default database of every project.
  package struct SingleDatabase: DatabaseDirectory {
    private let find: @Sendable () async throws(DatabaseError) -> ServedDatabase

    /// A database that the caller opens and closes.
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

    package var hasRules: Bool {
      get async throws(DatabaseError) { try await find().rules.current() != nil }
    }
  }
#endif
