// Begins pours, for code that derives many rows at once.

internal import Synchronization

extension Engine {
  /// Begins to pour rows into a keyspace; nil when that is not possible now, because its shard is
  /// being merged.
  package func beginPour(into keyspace: UInt32) async throws(EngineError) -> Pour? {
    if isClosed.load(ordering: .relaxed) { throw .closed }
    let index = DroppedKeyspaces.shard(of: keyspace, in: upkeep.shards.count)
    guard await upkeep.shards[index].beginPour() else { return nil }
    return Pour(storage, upkeep.shards[index], index)
  }

  /// The number of documents from which the rows of a new index are poured.
  package var smallestPour: Int { storage.options.smallestPour }

  /// Flushes and merges the shard of poured rows, in the background: reading an index's rows from
  /// files is faster than from a large memtable.
  package func mergePoured(into keyspace: UInt32) {
    upkeep.flushAndCompact(shard: DroppedKeyspaces.shard(of: keyspace, in: upkeep.shards.count))
  }
}
