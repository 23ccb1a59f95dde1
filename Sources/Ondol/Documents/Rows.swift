// The rows of a snapshot, read without suspension. Stage 3 of the read path, and what a write is
// derived from. What is in memory is read on the caller, which keeps its actor; when a block must
// come from disk, the whole read is begun again on the engine's thread for cold reads, so that no
// thread of the pool ever waits for a disk. Whoever must not suspend (a `DatabaseSnapshot`, a
// transaction) blocks instead.

internal import OndolEngine

/// The rows of one snapshot, with what the catalog says of them.
struct Rows: Sendable {
  let snapshot: Snapshot
  /// Where families are looked up; a transaction that has written has its own.
  let catalog: Catalog
  /// Whether a read may block the thread while a block is read from disk. Otherwise it throws
  /// `DatabaseError.cold`.
  let mayBlock: Bool

  init(_ snapshot: Snapshot, _ catalog: Catalog, mayBlock: Bool) {
    self.snapshot = snapshot
    self.catalog = catalog
    self.mayBlock = mayBlock
  }

  /// The value at `key`, or nil.
  func row(_ key: [UInt8]) throws(DatabaseError) -> [UInt8]? {
    do throws(EngineError) {
      var row: [UInt8]?
      let isFound = try snapshot.withValue(of: key.bytes, mayBlock: mayBlock) { row = $0.array }
      if isFound != nil { return row }
    } catch {
      throw DatabaseError(error)
    }
    throw .cold
  }
}

extension Database {
  /// Runs `body`, which reads rows of `snapshot`: here when they are in memory, otherwise on the
  /// thread for cold reads.
  func read<R: Sendable>(
    _ snapshot: Snapshot,
    _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    do throws(DatabaseError) {
      return try body(Rows(snapshot, catalog, mayBlock: false))
    } catch {
      guard error.isCold else { throw error }
    }
    return try await snapshot.readBlocking { [catalog] () throws(DatabaseError) in
      try body(Rows(snapshot, catalog, mayBlock: true))
    }
  }
}
