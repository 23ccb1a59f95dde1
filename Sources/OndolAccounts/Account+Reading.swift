// Accounts as a tool reads them in a database that an app has open. Opening the accounts would
// write indexes and settings, so the tool reads their documents.

internal import Foundation
package import Ondol

extension Account {
  /// Some of a database's accounts, in the order of their uids, as of this call.
  ///
  /// - Parameters:
  ///   - last: the last uid of the previous page; nil for the first page.
  ///   - limit: the largest number of accounts.
  /// - Throws: the errors of reading, and `.dataLoss` for a document that is no account.
  /// - Complexity: O(limit).
  package static func page(
    of database: Database, after last: String?, limit: Int
  ) async throws -> [Account] {
    var query = AccountPlaces(database: database).accounts.order(by: FieldPath.documentID())
      .limit(to: limit)
    if let last { query = query.whereField(FieldPath.documentID(), isGreaterThan: last) }
    return try await query.getDocuments().documents.map { document in
      Account(document.documentID, try document.data(as: AccountRecord.self))
    }
  }
}
