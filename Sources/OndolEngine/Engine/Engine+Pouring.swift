// How pours begin: whoever derives many rows at once asks here.

internal import Synchronization

extension Engine {
  /// Begins to pour rows into a keyspace; nil where that is not possible now, because its shard is
  /// being merged.
  package func beginPour(into keyspace: UInt32) async throws(EngineError) -> Pour? {
    if isClosed.load(ordering: .relaxed) { throw .closed }
    let index = DroppedKeyspaces.shard(of: keyspace, in: upkeep.shards.count)
    guard await upkeep.shards[index].beginPour() else { return nil }
    return Pour(storage, upkeep.shards[index], index)
  }

  /// Documents from which on the rows of a new index are poured.
  package var smallestPour: Int { storage.options.smallestPour }

  /// Has the shard of what was poured written from memory and merged, beside all else: rows that an
  /// index leads to are read from files in less time than from a large memtable.
  package func mergePoured(into keyspace: UInt32) {
    upkeep.flushAndCompact(shard: DroppedKeyspaces.shard(of: keyspace, in: upkeep.shards.count))
  }
}
