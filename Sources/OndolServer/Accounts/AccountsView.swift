// Accounts for those who answer for a server, as Firebase's clients for administrators see them.

#if Server
  package import Ondol
  import OndolAccounts

  extension ServerView {
    /// Some of a database's accounts, in the order of their uids, and the number of all.
    ///
    /// - Parameter uid: the last uid of the previous page; nil for the first page.
    package static func accounts(
      of database: Database, after uid: String?, limit: Int
    ) async throws -> (users: [Value], count: Int) {
      let page = try await Account.page(of: database, after: uid, limit: limit)
      let count = try await database.collection(AccountCollection.accounts).count.getAggregation()
      return (page.map(\.user), count.count)
    }
  }
#endif
