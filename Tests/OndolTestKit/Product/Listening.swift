// For tests of listeners: finds out whether a listener has something to deliver, without waiting
// for something that may never come.

public import Ondol

extension Updates.Iterator {
  /// Returns the next element if the listener has one to deliver; otherwise nil, and the listener
  /// continues. It accounts for all writes that returned before the call, so nil means that they
  /// have been delivered or do not concern the listener.
  ///
  /// ```swift
  /// var results = items.snapshots.makeAsyncIterator()
  /// _ = try await results.nextIfAny()
  /// try await database.document("other/a").setData([:])
  /// #expect(try await results.nextIfAny() == nil)
  /// ```
  ///
  /// Writes of another process count once this process has noticed them.
  ///
  /// - Throws: as `next()`.
  public mutating func nextIfAny() async throws(DatabaseError) -> Element? { try await poll() }
}

extension ChangeFeed.Iterator {
  /// Returns the next commit's changes if there are any; otherwise nil, and the feed continues. It
  /// accounts for all writes that returned before the call.
  ///
  /// - Throws: as `next()`.
  public mutating func nextIfAny() async throws(DatabaseError) -> DatabaseChange? {
    try await poll()
  }
}
