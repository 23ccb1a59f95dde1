// The results of placing a batch, which the sequencer returns to the committer. They are moved, not
// copied, because a copy would retain every reference in them.

/// A commit that has its place and must still be written.
struct PlacedCommit: ~Copyable, Sendable {
  var sequence: SequenceNumber
  var time: Int64
  /// What to write and where; nil when the frames were deferred.
  var write: PendingWrite?
  /// Shards whose memtable this commit filled.
  var sealedShards: [Int]
  /// The log needs a successor.
  var spareRequest: SpareRequest?
  /// Microseconds after which everything placed must be synced, when that is not scheduled yet.
  var syncDelay: Int64?
}

/// A log to make ahead of its use.
struct SpareRequest: Sendable {
  /// Bytes of zeros to write and sync; none for a log that grows.
  var prewritten: UInt64
}

/// Room that a log must get before a commit is placed in it.
struct MissingSpace: Sendable {
  let log: FileNumber
  let file: any File
  /// From the end of the log's room to the end of the commit.
  let range: Range<UInt64>
}

/// Bytes to write into a log.
struct PendingWrite: ~Copyable, Sendable {
  var log: LogFile
  /// The offset of `prefix`, or of `frame` when there is none.
  var offset: UInt64
  /// A new log's header, or frames deferred by earlier commits.
  var prefix: [UInt8]
  /// The batch's bytes with room for the frame's header.
  var frame: [UInt8]
  var operations: Int
  /// Whether some operations are on keyed groups.
  var isKeyed = false
  var context: FrameContext
  /// Whether the commit must wait until its frames are on the device.
  var waitsForSync: Bool
  /// Whether the write syncs its own bytes, which are all that a sync would have to cover.
  var isSynced = false

  /// Makes the bytes to write. Checksums are computed here, outside any lock.
  consuming func build() -> [UInt8] {
    let frames = FrameBuilder.build(
      frame, operations: operations, isKeyed: isKeyed, context, salt: log.salt,
      offset: offset + UInt64(prefix.count), seal: log.seal)
    return prefix.isEmpty ? frames : prefix + frames
  }
}

/// The result of placing a batch.
enum Placement: ~Copyable, Sendable {
  case placed(PlacedCommit)
  /// There is no log to write to: make one and try again.
  case needsLog
  /// The log has no room on the disk for the frames: reserve it and try again.
  case needsSpace(MissingSpace)
  /// The disk is full, and the batch frees nothing: check for space and try again.
  case needsReserve
  /// A write stall: a shard's sealed memtables wait for their flush. Wait for one, and try again.
  case needsRoom(shard: Int)
}
