// A commit that depends on one row on a store. The row is read and guarded, and the commit is
// retried if another process has changed the row meanwhile. So a process that waits for its turn at
// a row, takes it over from a process that is gone, or removes it, comes before or after every
// other process, and decides each time by the current row.

extension RemoteSession {
  /// Commits what `fill` makes of the row at `key`. If it makes nothing of it, nothing is committed
  /// and the result is nil.
  ///
  /// - Parameter fill: fills the batch, which guards the row. It is called again for each attempt.
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
