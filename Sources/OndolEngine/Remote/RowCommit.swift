// A commit that hangs on one row, on a store: the row is read and guarded, and the commit is made
// anew when somebody else has changed the row meanwhile. So whoever waits its turn at a row, takes
// it from somebody who is gone or takes it away comes before or after everybody else, and each time
// decides by what the row says then.

extension RemoteSession {
  /// Commits what `fill` makes of the row at `key`; nil, and nothing is committed, when it makes
  /// nothing of it.
  ///
  /// - Parameter fill: fills the batch, which guards the row. It is called anew for each try.
  func commit<R>(
    about key: [UInt8], _ durability: Durability,
    _ fill: (_ row: [UInt8]?, inout Batch) async throws(EngineError) -> R?
  ) async throws(EngineError) -> R? {
    while true {
      let snapshot = window.snapshot
      let row = try await snapshot.get(key)
      var batch = Batch()
      batch.basis = snapshot.sequence
      batch.guardUnchanged(key.bytes)
      guard let result = try await fill(row, &batch) else { return nil }
      do throws(EngineError) {
        _ = try await commit(batch, durability)
        return result
      } catch {
        guard error == .stale else { throw error }
      }
      await Task.yield()
    }
  }
}
