// For tests of what listens: whether a listener has something to tell, without waiting for what may
// never come.

public import Ondol

extension Updates.Iterator {
  /// The next element if the listener has something to tell, otherwise nil, and then it goes on
  /// listening. All writes that returned before the call count: so nil says that they are told of,
  /// or concern it not.
  ///
  /// ```swift
  /// var results = items.snapshots.makeAsyncIterator()
  /// _ = try await results.nextIfAny()
  /// try await database.document("other/a").setData([:])
  /// #expect(try await results.nextIfAny() == nil)
  /// ```
  ///
  /// Writes of another process count once they have been noticed.
  ///
  /// - Throws: as `next()`.
  public mutating func nextIfAny() async throws(DatabaseError) -> Element? { try await poll() }
}

extension ChangeFeed.Iterator {
  /// The next commit's changes if there are any, otherwise nil, and then it goes on following. All
  /// writes that returned before the call count.
  ///
  /// - Throws: as `next()`.
  public mutating func nextIfAny() async throws(DatabaseError) -> DatabaseChange? {
    try await poll()
  }
}
