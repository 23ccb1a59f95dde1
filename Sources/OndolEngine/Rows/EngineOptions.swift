// The engine's sizes and limits, each with its unit. Tests make them tiny so that they exercise
// every path.

/// The options for opening an engine.
package struct EngineOptions: Sendable {
  /// The number of shards of a new database. An existing one keeps its own number.
  package var shardCount = 4
  /// The most files that the database has open at once. If nil, it depends on the limit of the
  /// process.
  package var fileLimit: Int?
  /// Bytes for blocks, filters and index tops.
  package var cacheSize = 64 << 20
  /// The bytes of rows that a shard collects before a flush, unless derived from the cache's size.
  private var chosenMemtableSize: Int?
  /// The number of a shard's full memtables that may wait for their flush before writers wait.
  package var sealedMemtables = 3
  /// The size at which the log continues in a new file.
  package var logSize = 16 << 20
  /// The bytes of zeros that are written in advance in the first log. Later logs have more, up to
  /// `logSize`.
  package var firstPrewrittenSize = 1 << 20
  /// The file numbers that may be handed out while a key change is being recorded, before the first
  /// number that belongs to the new key.
  package var keyChangeMargin: UInt64 = 1 << 16
  /// The bytes reserved on the device for work that frees space when no other space is left: the
  /// memtables' contents, for their flushes, but at most twice the log.
  var reserveSize: Int { min(max(4 * memtableSize, 2 * largestMemtableSize), 2 * logSize) }
  /// Whether a commit that no other commit waits with is synced on its caller's own thread. This
  /// saves two thread switches, a third of its time, and blocks one thread of the pool on the
  /// device.
  package var callersSync = true
  /// A shard's rows are flushed, however few they are, once the logs after them exceed this many
  /// bytes. An open after a crash must replay this much, plus the log in use.
  var logRetention: Int { 2 * max(logSize, memtableSize) }
  /// How long logs are kept that recovery no longer needs; nil if they are not kept.
  package var historyRetention: HistoryRetention?
  /// On a store, the longest wait for a call in microseconds; nil for no limit.
  package var serverTimeout: Int64?
  /// On a store, the base of reads is moved if it is more than this many commits old, before the
  /// store forgets versions. The store forgets none that are newer than a base.
  package var baseLag: UInt64 = 10_000
  /// On a store, no more commits are accepted above this many waiting ones, or their bytes.
  package var waitingCommits = 65_536
  package var waitingCommitBytes = 128 << 20
  /// Bytes of keys kept after their rows were flushed. So a batch derived before the flush is not
  /// rejected merely because the state is unknown.
  package var recentKeysSize = 4 << 20
  /// Bytes of `.memory` commits that may wait to be written.
  package var deferredBytes = 1 << 20
  /// The largest size of one commit.
  package var commitLimit = 64 << 20
  /// The number of a shard's flushed runs above which they are merged into its levels.
  package var runLimit = 8
  /// The raw size of a shard's rows below which every flush leaves it as one run.
  package var smallShardSize = 8 << 20
  /// The raw size of one segment file.
  package var segmentSize = 64 << 20
  /// The number of documents from which the rows of a new index are bulk-loaded.
  package var smallestPour = 16_384
  /// The smallest number of documents in a part of a scan that is read in parallel.
  package var smallestScanPart = 4096
  /// The number of parts of a scan that are read in parallel; nil for the number of processors.
  package var scanWidth: Int?
  /// Values of at least this size are kept in value files, separate from their keys.
  package var valueThreshold = 8 << 10
  /// The size of one value file.
  package var valueFileSize = 64 << 20
  /// Contents up to this size are kept in the row with their location.
  package var inlineContentSize = 32 << 10
  /// Contents above this size get a file of their own; at most 4 MiB.
  package var packedContentSize = 512 << 10
  /// The size of a pack at which the next one is begun.
  package var packSize = 64 << 20
  /// The raw size of one block.
  package var blockSize = 8 << 10
  /// The smallest size of edits after which the manifest is rewritten.
  package var manifestSize = 64 << 10
  /// The size of one frame of the manifest. Longer edits are divided into parts.
  package var manifestFrameSize = 4 << 20
  var manifestLimits: ManifestLimits {
    ManifestLimits(frame: min(max(manifestFrameSize, 8), FrameHeader.maximumPayload))
  }
  package var compress = true
  /// Called once for each file that a flush or a merge could not read, on any thread. It must
  /// return quickly.
  package var reportDamage: (@Sendable (EngineError) -> Void)?

  /// On a store, whether history continues if the newest commit is part of one. Without a
  /// retention, none of it is then forgotten.
  package var continuesHistory = false

  package init() {}

  /// The bytes of rows that a shard collects under load if the size is not chosen: a quarter of the
  /// cache, between 4 and 16 MiB.
  var largestMemtableSize: Int {
    chosenMemtableSize ?? min(max(cacheSize / 4, 4 << 20), Self.mostGathered)
  }

  /// More is not worth its memory. A load is as fast with less memory, which it reuses, as with
  /// more, which the system has to clear for it.
  private static let mostGathered = 16 << 20

  /// The bytes that all memtables together may take if one is to be larger than usual: five eighths
  /// of the cache.
  var memtableBudget: Int { cacheSize / 8 * 5 }

  /// The bytes of rows that a shard collects before a flush: a sixteenth of the cache, between 4
  /// and 16 MiB, unless chosen. It grows under load; see `largestMemtableSize`.
  package var memtableSize: Int {
    get { chosenMemtableSize ?? min(max(cacheSize / 16, 4 << 20), Self.mostGathered) }
    set { chosenMemtableSize = newValue }
  }
}

/// How long commits can be read again.
package struct HistoryRetention: Sendable, Equatable {
  /// Older history is removed. A log is removed when its last commit is older.
  package var microseconds: Int64
  /// Above this many bytes, the oldest history is removed.
  package var bytes: UInt64

  package init(microseconds: Int64, bytes: UInt64) {
    self.microseconds = microseconds
    self.bytes = bytes
  }
}

/// The size limits for the pieces of a manifest. Writers check them before anything is written,
/// because readers reject anything beyond them.
struct ManifestLimits: Sendable {
  /// The payload of one frame.
  var frame = FrameHeader.maximumPayload
  /// The first edit, which is the whole state. It has room for some millions of segments.
  var state = 1 << 29
  /// The whole file, which is read at once.
  var file = 1 << 30
}
