// The engine's sizes and limits, each with its unit. Tests make them tiny so that every path is
// walked.

/// How an engine is opened.
package struct EngineOptions: Sendable {
  /// Shards of a database being created; an existing one keeps its own.
  package var shardCount = 4
  /// Files the database has open at once; what the process may have decides when nil.
  package var fileLimit: Int?
  /// Bytes for blocks, filters and index tops.
  package var cacheSize = 64 << 20
  /// Bytes of rows a shard gathers before they are flushed, when not derived from the cache's size.
  private var chosenMemtableSize: Int?
  /// Full memtables of a shard that may wait for their flush before writers wait.
  package var sealedMemtables = 3
  /// Bytes after which the log goes on in a new file.
  package var logSize = 16 << 20
  /// Bytes of zeros in the first log that is written ahead of its use; later ones have more, up to
  /// `logSize`.
  package var firstPrewrittenSize = 1 << 20
  /// File numbers that may be given out while a change of keys is written down, before the first
  /// that belongs to the new key.
  package var keyChangeMargin: UInt64 = 1 << 16
  /// Bytes kept back on the device for what frees space when there is no other: what memtables
  /// hold, for their flushes, and no more than twice the log.
  var reserveSize: Int { min(max(4 * memtableSize, 2 * largestMemtableSize), 2 * logSize) }
  /// Whether a commit that nobody else waits with syncs on its own thread. Saves it two changes of
  /// threads, a third of its time, and keeps one thread of the pool waiting for the device.
  package var callersSync = true
  /// Bytes of logs behind which a shard's rows are flushed, however few they are: what an opening
  /// after a crash has to replay, beside the log in use.
  var logRetention: Int { 2 * max(logSize, memtableSize) }
  /// For how long logs are kept that recovery needs no more; nil when they are not.
  package var historyRetention: HistoryRetention?
  /// On a store, microseconds that calls are waited for; nil when for ever.
  package var serverTimeout: Int64?
  /// On a store, commits behind the base of reads above which the base is moved before the store
  /// forgets versions: it forgets none that are newer than a base.
  package var baseLag: UInt64 = 10_000
  /// On a store, commits that wait to be sent, and bytes of them, above which no more are taken.
  package var waitingCommits = 65_536
  package var waitingCommitBytes = 128 << 20
  /// Bytes of keys kept after their rows were flushed, so that a batch derived before the flush is
  /// not refused for want of knowing better.
  package var recentKeysSize = 4 << 20
  /// Bytes of `.memory` commits that may wait to be written.
  package var deferredBytes = 1 << 20
  /// Bytes of one commit.
  package var commitLimit = 64 << 20
  /// Flushed runs of a shard above which they are merged into its levels.
  package var runLimit = 8
  /// Raw bytes of a shard's rows below which every flush leaves it as one run.
  package var smallShardSize = 8 << 20
  /// Raw bytes of one segment file.
  package var segmentSize = 64 << 20
  /// Documents from which on the rows of a new index are poured.
  package var smallestPour = 16_384
  /// Documents of a part of a scan, at least, that is read beside other parts.
  package var smallestScanPart = 4096
  /// Parts of a scan that are read at once; the number of processors when nil.
  package var scanWidth: Int?
  /// Values of so many bytes and more are kept in value files, apart from their keys.
  package var valueThreshold = 8 << 10
  /// Bytes of one value file.
  package var valueFileSize = 64 << 20
  /// Contents of so many bytes and fewer are kept in the row that says where they are.
  package var inlineContentSize = 32 << 10
  /// Contents of more bytes get a file of their own; at most 4 MiB.
  package var packedContentSize = 512 << 10
  /// Bytes of a pack from which the next one is begun.
  package var packSize = 64 << 20
  /// Raw bytes of one block.
  package var blockSize = 8 << 10
  /// Bytes of edits after which the manifest is written anew, at least.
  package var manifestSize = 64 << 10
  /// Bytes of one frame of the manifest; longer edits are in parts.
  package var manifestFrameSize = 4 << 20
  var manifestLimits: ManifestLimits {
    ManifestLimits(frame: min(max(manifestFrameSize, 8), FrameHeader.maximumPayload))
  }
  package var compress = true
  /// Told once of each file that a flush or a merge could not read, on any thread; it must be
  /// quick.
  package var reportDamage: (@Sendable (EngineError) -> Void)?

  /// On a store, whether history goes on where the newest commit is part of one. Nothing is
  /// forgotten of it then without a retention.
  package var continuesHistory = false

  package init() {}

  /// Bytes of rows a shard under load gathers, when the size is not chosen: a quarter of the cache,
  /// within 4 and 16 MiB.
  var largestMemtableSize: Int {
    chosenMemtableSize ?? min(max(cacheSize / 4, 4 << 20), Self.mostGathered)
  }

  /// More than that is not worth its memory: a load is as fast with less, which it uses again and
  /// again, as with more that the system has to clear for it.
  private static let mostGathered = 16 << 20

  /// Bytes that all memtables may take for one to be larger than usual: five eighths of the cache.
  var memtableBudget: Int { cacheSize / 8 * 5 }

  /// Bytes of rows a shard gathers before they are flushed: a sixteenth of the cache, within 4 and
  /// 16 MiB, unless chosen. A load makes it more; see `largestMemtableSize`.
  package var memtableSize: Int {
    get { chosenMemtableSize ?? min(max(cacheSize / 16, 4 << 20), Self.mostGathered) }
    set { chosenMemtableSize = newValue }
  }
}

/// For how long commits can be read again.
package struct HistoryRetention: Sendable, Equatable {
  /// What is older goes, of logs those whose last commit is.
  package var microseconds: Int64
  /// The oldest go above so many bytes.
  package var bytes: UInt64

  package init(microseconds: Int64, bytes: UInt64) {
    self.microseconds = microseconds
    self.bytes = bytes
  }
}

/// How large the pieces of a manifest may be. Whoever writes keeps within them before anything is
/// written, since whoever reads refuses what is beyond.
struct ManifestLimits: Sendable {
  /// Bytes of one frame's payload.
  var frame = FrameHeader.maximumPayload
  /// Bytes of the first edit: the state. Some millions of segments fit.
  var state = 1 << 29
  /// Bytes of the file, which is read at once.
  var file = 1 << 30
}
