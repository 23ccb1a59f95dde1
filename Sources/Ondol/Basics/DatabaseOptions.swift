// How a database is opened: the app's options, with units and defaults.

internal import OndolEngine
public import Logging

/// What a commit survives once the write that made it has returned.
///
/// With any durability, a commit is afterwards whole or absent, and no commit survives without all
/// earlier ones: a commit with `.power` brings the earlier ones to the device with it.
public enum Durability: Sendable, Hashable {
  /// Nothing beyond the process's own life: the commit reaches the system with the next stronger
  /// one.
  case memory
  /// Killing the process, but not a power cut.
  case process
  /// Killing the process at once, and a power cut that comes at least this much later. A power cut
  /// takes at most the commits of that time, and never a commit without all later ones. As fast as
  /// `.process`; a pause of zero or less syncs as soon as possible.
  case periodic(Duration)
  /// A power cut: the write returns when the device has the commit.
  case power
}

extension Database {
  /// What an open database allows.
  public enum Access: Sendable, Hashable {
    /// Reads and writes. Only one open database at a time has this access, and the directory is
    /// made when it is missing.
    case readWrite
    /// Reads only, beside the writer in another process or in another open database of this one.
    /// Nothing is made, written or locked, so read-only files suffice. The data shown stays
    /// unchanged until `refresh()`, or follows the writer while the database has listeners. Writes
    /// throw `.failedPrecondition`.
    case readOnly
  }

  /// How long the changes of commits can be read again. Both limits apply: older changes are
  /// removed, and the oldest are removed when there are too many. Whole files are removed, at the
  /// next flush, so slightly more may be kept.
  public struct ChangeRetention: Sendable, Hashable {
    /// Changes older than this are removed; nil for no limit.
    public var duration: Duration?
    /// Bytes of the kept files; nil for no limit.
    public var bytes: Int?

    /// Seven days and 64 MiB by default.
    ///
    /// - Parameters:
    ///   - duration: changes older than this are removed; nil for no limit.
    ///   - bytes: bytes of the kept files; nil for no limit.
    public init(duration: Duration? = .seconds(7 * 86_400), bytes: Int? = 64 << 20) {
      self.duration = duration
      self.bytes = bytes
    }
  }

  /// How a database is opened.
  public struct Options: Sendable {
    /// Whether the database may be written.
    public var access = Access.readWrite
    /// The durability of commits that do not set their own.
    public var durability = Durability.power
    /// Bytes of memory for blocks, filters, index tops and rows that are not yet in files: 0 or
    /// more. Each shard's memtable has a sixteenth of it, within 4 and 64 MiB, and under load up to
    /// a quarter of it. While flushes have fallen behind, a shard may use three times that. Blocks
    /// make room for them, except for an eighth of the budget.
    public var cacheSize = 64 << 20
    /// The most files that the database has open at once, 64 or more. With nil, the default, it
    /// shares half of the process's limit with all other such databases, within 64 and 4,096. Its
    /// lock, its directory and its log are open in addition. That is enough for a database of any
    /// size: Ondol closes the least recently read file, and opens it again when needed. About
    /// thirty of the files are for writing; an upload under way has one more.
    public var fileLimit: Int?
    /// Parts of the storage that are maintained in parallel, 1 to 1,024. It applies when the
    /// database is created, and never changes afterwards.
    public var shardCount = 4
    /// The superblock's range.
    static let shardCounts = 1...1_024
    /// Where the database logs what it does in the background.
    public var logger: Logger
    /// Microseconds since 1970, for commit times. Nil means the system's clock.
    ///
    /// A commit's time is always later than that of the previous commit, whatever the clock shows.
    public var clock: (@Sendable () -> Int64)?
    /// Makes the ids of documents that are added without one. Nil means random ids of 20 letters
    /// and digits. Set it for tests that must repeat exactly.
    public var automaticID: (@Sendable () -> String)?

    /// Whether the database creates indexes, in the background, for queries that look at many
    /// documents for the few they return. They are ordinary indexes: `listIndexes()` shows them,
    /// `dropIndex(named:)` removes them.
    public var automaticIndexes = false

    /// How far back `changes(since:)` and `snapshots(since:)` can go. With nil, the default,
    /// nothing is kept, and they are not available.
    ///
    /// Each commit writes its documents again, before and after, in the same write and sync, and
    /// the files are kept. Opening the database without this option ends the history with the first
    /// commit.
    ///
    /// On a server, every process that writes the database must have this option. A commit of a
    /// process without it ends the history, which begins again after it. If processes have
    /// different times or sizes, the least counts.
    public var changeRetention: ChangeRetention?

    /// On a server, whether changes are kept if they were kept when the database was opened: for
    /// programs other than the app, whose writes must not end the app's history.
    package var continuesChanges = false

    /// How long uploaded bytes stay without a holder: while no document refers to them, and no
    /// storage path leads to them.
    public var blobLease = Duration.seconds(86_400)

    /// How long bytes stay after the last document or path released them. A reader that opened them
    /// before can always read them.
    public var blobGracePeriod = Duration.seconds(300)

    /// The key of an encrypted database; a new database is encrypted with it. Nil, the default, is
    /// for unencrypted databases. The key is not kept once the database is open.
    ///
    /// Opening with another key, or without one, throws `.permissionDenied` before anything else is
    /// read. Opening an unencrypted database with a key throws `.invalidArgument`.
    public var encryption: Encryption?

    /// How long a call waits for a server, for a database on one: above zero; ten seconds by
    /// default, for ever when nil. After that it throws `.deadlineExceeded`. A write has not
    /// happened, unless ``DatabaseError/pendingWrite`` says that its outcome is unknown. Only time
    /// during which the process runs counts, in steps of an eighth.
    public var serverTimeout: Duration? = .seconds(10)

    /// Bytes that the stages of a pipeline keep in memory in one execution: rows that are sorted,
    /// groups, and joined documents; 128 MiB by default. Beyond it they go to a temporary file
    /// beside the database, which is encrypted when the database is. A database in memory, on a
    /// server or open for reading only has no place for one, and the call throws
    /// `.resourceExhausted`.
    public var pipelineMemory = 128 << 20

    /// The app's own tokenizers for word indexes, see `SearchTokenizer`. The tokenizers of existing
    /// indexes must be present whenever such an index is searched or its fields are written:
    /// otherwise these calls throw `.failedPrecondition`. Everything else works without them.
    public var tokenizers: [any SearchTokenizer] = []

    /// Options with these properties and the defaults of all others.
    ///
    /// - Parameters:
    ///   - durability: the durability of commits that do not set their own.
    ///   - cacheSize: bytes of memory for blocks, filters and index tops.
    ///   - shardCount: parts of the storage that are maintained in parallel; applies when the
    ///     database is created.
    ///   - logger: where the database logs what it does in the background.
    ///   - clock: microseconds since 1970; the system's clock when nil.
    ///   - automaticID: makes the ids of documents that are added without one; random ones when
    ///     nil.
    ///   - automaticIndexes: whether indexes are created for queries that look at many documents.
    ///   - access: whether the database may be written.
    ///   - changeRetention: how long changes can be read again; not at all when nil.
    ///   - fileLimit: files that are open at once; when nil, it shares half of the process's limit
    ///     with all others.
    ///   - encryption: the key of an encrypted database; none when nil.
    ///   - tokenizers: the app's own tokenizers for word indexes.
    ///   - serverTimeout: how long a call waits for a server; for ever when nil.
    public init(
      durability: Durability = .power, cacheSize: Int = 64 << 20, shardCount: Int = 4,
      logger: Logger = Logger(label: "ondol"), clock: (@Sendable () -> Int64)? = nil,
      automaticID: (@Sendable () -> String)? = nil, automaticIndexes: Bool = false,
      access: Access = .readWrite, changeRetention: ChangeRetention? = nil, fileLimit: Int? = nil,
      encryption: Encryption? = nil, tokenizers: [any SearchTokenizer] = [],
      serverTimeout: Duration? = .seconds(10)
    ) {
      self.serverTimeout = serverTimeout
      self.tokenizers = tokenizers
      self.encryption = encryption
      self.fileLimit = fileLimit
      self.access = access
      self.changeRetention = changeRetention
      self.durability = durability
      self.cacheSize = cacheSize
      self.shardCount = shardCount
      self.logger = logger
      self.clock = clock
      self.automaticID = automaticID
      self.automaticIndexes = automaticIndexes
    }

    /// Throws `.invalidArgument` for options with which no database can be opened.
    func check(for path: String) throws(DatabaseError) {
      guard Self.shardCounts.contains(shardCount) else {
        throw DatabaseError(
          .invalidArgument,
          "a database must have \(Self.shardCounts) shards, and shardCount is \(shardCount)",
          path: path)
      }
      if let serverTimeout, serverTimeout <= .zero {
        throw DatabaseError(
          .invalidArgument, "serverTimeout must be above zero, and is \(serverTimeout)", path: path)
      }
      guard pipelineMemory >= 0 else {
        throw DatabaseError(
          .invalidArgument, "pipelines cannot keep \(pipelineMemory) bytes", path: path)
      }
      guard cacheSize >= 0 else {
        throw DatabaseError(
          .invalidArgument, "a cache cannot have \(cacheSize) bytes", path: path)
      }
      if let fileLimit, fileLimit < FileLimit.minimum {
        throw DatabaseError(
          .invalidArgument,
          "a database has \(FileLimit.minimum) files open or more, and fileLimit is \(fileLimit)",
          path: path)
      }
      try encryption?.check(for: path)
      try checkTokenizers(path)
    }

    /// Throws `.unimplemented` for options that a database on a store does not support.
    func checkForStore(_ path: String) throws(DatabaseError) {
      if access == .readOnly {
        throw DatabaseError(
          .unimplemented, "a database on a server must be open for reading and writing", path: path)
      }
      if encryption != nil {
        throw DatabaseError(
          .unimplemented,
          "a database on a server is not encrypted here: the server's disks are the server's"
            + " business, and what goes over the wire is TLS's", path: path)
      }
    }
  }
}
