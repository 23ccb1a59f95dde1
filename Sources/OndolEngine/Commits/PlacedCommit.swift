// What placing a batch comes to: the values that the sequencer hands back to whoever commits. They
// are passed on, not copied, for a copy would count every reference in them.

/// A commit that has its place and still needs writing.
struct PlacedCommit: ~Copyable, Sendable {
  var sequence: SequenceNumber
  var time: Int64
  /// What to write and where; nil when the frames were put off.
  var write: PendingWrite?
  /// Shards whose memtable this commit filled.
  var sealedShards: [Int]
  /// The log wants a successor.
  var spareRequest: SpareRequest?
  /// Microseconds after which everything placed must be synced, when nobody sees to that yet.
  var syncDelay: Int64?
}

/// A log to be made ahead of its use.
struct SpareRequest: Sendable {
  /// Bytes of zeros to write and sync; none for a log that grows.
  var prewritten: UInt64
}

/// Room that a log must get before a commit is placed in it.
struct MissingSpace: Sendable {
  let log: FileNumber
  let file: any File
  /// From where the room ends that the log has to where the commit would.
  let range: Range<UInt64>
}

/// Bytes on their way into a log.
struct PendingWrite: ~Copyable, Sendable {
  var log: LogFile
  /// The offset of `prefix`, or of `frame` where there is none.
  var offset: UInt64
  /// A new log's header, or frames put off by earlier commits.
  var prefix: [UInt8]
  /// The batch's bytes with room for the frame's header.
  var frame: [UInt8]
  var operations: Int
  /// Whether some are on keyed groups.
  var isKeyed = false
  var context: FrameContext
  /// Whether the commit is not done before its frames are on the device.
  var waitsForSync: Bool
  /// Whether the write syncs its own bytes, which are all that a sync would have to cover.
  var isSynced = false

  /// Makes the bytes to write: checksums are computed here, outside any lock.
  consuming func build() -> [UInt8] {
    let frames = FrameBuilder.build(
      frame, operations: operations, isKeyed: isKeyed, context, salt: log.salt,
      offset: offset + UInt64(prefix.count), seal: log.seal)
    return prefix.isEmpty ? frames : prefix + frames
  }
}

/// What placing a batch came to.
enum Placement: ~Copyable, Sendable {
  case placed(PlacedCommit)
  /// There is no log to write to: make one and try again.
  case needsLog
  /// The log has no room on the disk for the frames: see to it and try again.
  case needsSpace(MissingSpace)
  /// The disk is full, and the batch frees nothing: see whether there is space again.
  case needsReserve
  /// A shard's sealed memtables wait for their flush: wait for one, and try again.
  case needsRoom(shard: Int)
}
