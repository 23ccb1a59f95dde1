// A snapshot with an uncommitted batch on top: what a transaction reads after its own first write.
// The rows are in separate memtables above the snapshot's. Nothing else sees them, and they are
// released with the snapshot.

extension Snapshot {
  /// The same rows with those of `batch` on top. Stamps get the given time, and the number of the
  /// commit after the snapshot's.
  ///
  /// - Complexity: O(n log n) in the rows of the batch.
  package func overlaid(by batch: consuming Batch, time: Int64) -> Snapshot {
    var batch = batch
    let capacity = batch.payloadLength + batch.operationCount * Memtable.nodeOverhead
    var shards = view.shards
    var memtables = [Memtable?](repeating: nil, count: shards.count)
    batch.groups.forEachShard(of: shards.count) { index in
      let memtable = Memtable(capacity: capacity)
      memtables[index] = memtable
      shards[index] = shards[index].sealing(into: memtable)
    }
    let frame = batch.takeFrame(stampedWith: sequence.next, time: time)
    let payload = frame.bytes.extracting(droppingFirst: FrameHeader.length)
    var reader = OperationReader(payload)
    do throws(MalformedBytes) {
      while let operation = try reader.next() {
        let shard = View.shardIndex(of: operation.key, count: shards.count)
        memtables[shard]?.add(operation.key, sequence, operation.kind, operation.value)
      }
    } catch {
      preconditionFailure("a batch of our own making cannot be malformed: \(error)")
    }
    for memtable in memtables { memtable?.link() }
    return Snapshot(View(shards: shards, reads: view.reads), sequence)
  }
}
