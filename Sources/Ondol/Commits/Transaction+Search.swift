// Searches within a transaction: as of its snapshot, with its own writes, and guarded, so that a
// commit that changes the results makes the body run again.

internal import OndolEngine

extension Transaction {
  /// The documents that a search finds, including those the transaction has written. Any other
  /// write to the collection before the commit makes the transaction run again.
  ///
  /// - Throws: as `SearchQuery.getMatches()`; `.failedPrecondition` when the transaction is over.
  /// - Complexity: as `SearchQuery.getMatches()`; after a write, also O(n log n) in the writes so
  ///   far.
  public func getMatches(_ search: SearchQuery) throws(DatabaseError) -> [SearchMatch] {
    do throws(DatabaseError) {
      // A search depends on the query's own documents.
      let rows = try noteRead(of: search.query)
      return try search.matches(in: rows)
    } catch {
      throw noting(error) { (rows) throws(DatabaseError) in _ = try search.matches(in: rows) }
    }
  }
}
