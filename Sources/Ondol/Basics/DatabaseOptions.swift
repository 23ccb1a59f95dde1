// How a database is opened: what the app may choose, with its units and defaults.

internal import OndolEngine
public import Logging

/// What a commit survives once the write that made it has returned.
///
/// Whatever it says, a commit is whole or absent afterwards, and no commit survives without all
/// those before it: one with `.power` brings the earlier ones to the device with it.
public enum Durability: Sendable, Hashable {
  /// The process's own life only: the commit reaches the system with the next stronger one.
  case memory
  /// The process being killed, but not a power cut.
  case process
  /// The process being killed at once, and a power cut that comes so much later: what a cut takes
  /// is at most the commits of that long, and never one without those after it. As fast as
  /// `.process`; a pause of nothing or less syncs as soon as it can.
  case periodic(Duration)
  /// A power cut: the write returns when the device has the commit.
  case power
}

extension Database {
  /// What an open database lets its users do.
  public enum Access: Sendable, Hashable {
    /// Reads and writes. One open at a time has it, and the directory is made when it is missing.
    case readWrite
    /// Reads only, beside whoever writes: another process, or another open in this one. Nothing is
    /// made, written or locked, so files that cannot be written are enough. What is shown stays as
    /// it is until `refresh()`, or follows the writer while somebody listens; writes throw
    /// `.failedPrecondition`.
    case readOnly
  }

  /// For how long the changes that commits made can be read again. Both limits count: what is older
  /// goes, and the oldest goes where there is too much. It goes by files, at the next flush, so
  /// somewhat more may be there.
  public struct ChangeRetention: Sendable, Hashable {
    /// Changes older than this go; nil for no limit.
    public var duration: Duration?
    /// Bytes of the files that are kept; nil for no limit.
    public var bytes: Int?

    /// Seven days and 64 MiB, unless said otherwise.
    ///
    /// - Parameters:
    ///   - duration: changes older than this go; nil for no limit.
    ///   - bytes: bytes of the files that are kept; nil for no limit.
    public init(duration: Duration? = .seconds(7 * 86_400), bytes: Int? = 64 << 20) {
      self.duration = duration
      self.bytes = bytes
    }
  }

  /// How a database is opened.
  public struct Options: Sendable {
    /// Whether the database may be written.
    public var access = Access.readWrite
    /// What commits survive that do not say so themselves.
    public var durability = Durability.power
    /// Bytes of memory for blocks, filters, index tops and rows that are not yet in files: 0 or
    /// more. Each shard gathers rows of a sixteenth of it, within 4 and 64 MiB, under a load up to
    /// a quarter of it, and has three times that while its files are behind; blocks make room for
    /// them, but for an eighth of the budget.
    public var cacheSize = 64 << 20
    /// Files that the database has open at once, 64 or more. With nil, the default, it shares with
    /// all other such databases half of what the process may have open, within 64 and 4,096; each
    /// has its lock, its directory and its log open beside them. That is enough for a database of
    /// any size: Ondol closes the file that was read longest ago, and opens it again when needed.
    /// Some thirty of them are for writing; an upload under way has one more.
    public var fileLimit: Int?
    /// Parts of the storage that are maintained side by side, 1 to 1,024; counts when the database
    /// is created, and stays what it was then.
    public var shardCount = 4
    /// What the superblock has room for.
    static let shardCounts = 1...1_024
    /// Where the database says what it does in the background.
    public var logger: Logger
    /// Microseconds since 1970, for commit times. Nil stands for the system's clock.
    ///
    /// A commit's time is always later than that of the commit before, whatever the clock says.
    public var clock: (@Sendable () -> Int64)?
    /// Makes the ids of documents that are added without one. Nil stands for random ids of 20
    /// letters and digits; give another for tests that must repeat exactly.
    public var automaticID: (@Sendable () -> String)?

    /// Whether indexes are made, in the background, for queries that look at many documents for the
    /// few they return. They are ordinary indexes: `listIndexes()` shows them, `dropIndex(named:)`
    /// takes them away.
    public var automaticIndexes = false

    /// For how long `changes(since:)` and `snapshots(since:)` can go back. Nil, the default, keeps
    /// nothing, and they are not to be had then.
    ///
    /// What it costs: each commit writes its documents as they were and as they are once more, in
    /// the same write and sync, and the files are kept. Opening the database without it ends the
    /// history with the first commit.
    ///
    /// On a server every process that writes the database must have it: a commit of one without it
    /// ends the history, which begins anew behind it. Where processes say different times or sizes,
    /// the least counts.
    public var changeRetention: ChangeRetention?

    /// On a server, whether changes are kept where they were when the database was opened: for
    /// programs that are not the app, whose writes must not end what the app keeps.
    package var continuesChanges = false

    /// For how long bytes that were put stay though nobody holds them yet: no document refers to
    /// them, and no storage path leads to them.
    public var blobLease = Duration.seconds(86_400)

    /// For how long bytes stay after the last document or path let go of them. A reader that opened
    /// them before is served in any case.
    public var blobGracePeriod = Duration.seconds(300)

    /// The key of an encrypted database; a database that is made is encrypted with it. Nil, the
    /// default, is for databases in the clear. It is not kept once the database is open.
    ///
    /// Opening with another key, or without one, throws `.permissionDenied` before anything else is
    /// read; opening a database in the clear with a key throws `.invalidArgument`.
    public var encryption: Encryption?

    /// How long a call waits for a server, from a database on one: above zero; ten seconds by
    /// default, for ever when nil. Then it throws `.deadlineExceeded`. A write has not happened,
    /// unless ``DatabaseError/pendingWrite`` says that whether it has is not known yet. It counts
    /// time that the process lives through, in steps of an eighth.
    public var serverTimeout: Duration? = .seconds(10)

    /// What makes words of texts for indexes of the app's own kind, see `SearchTokenizer`. Those
    /// that indexes were made with must be there whenever such an index is searched or its fields
    /// are written: without them that throws `.failedPrecondition`. Everything else goes on.
    public var tokenizers: [any SearchTokenizer] = []

    /// Options with these properties and the defaults of all others.
    ///
    /// - Parameters:
    ///   - durability: what commits survive that do not say so themselves.
    ///   - cacheSize: bytes of memory for blocks, filters and index tops.
    ///   - shardCount: parts of the storage that are maintained side by side; counts when the
    ///     database is created.
    ///   - logger: where the database says what it does in the background.
    ///   - clock: microseconds since 1970; the system's clock when nil.
    ///   - automaticID: makes the ids of documents that are added without one; random ones when
    ///     nil.
    ///   - automaticIndexes: whether indexes are made for queries that look at many documents.
    ///   - access: whether the database may be written.
    ///   - changeRetention: for how long changes can be read again; not at all when nil.
    ///   - fileLimit: files that are open at once; when nil, it shares half of what the
    ///     process may have with all others.
    ///   - encryption: the key of an encrypted database; none when nil.
    ///   - tokenizers: what makes words of texts for indexes of the app's own kind.
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

    /// Throws `.invalidArgument` for numbers that no database can be opened with.
    func check(for path: String) throws(DatabaseError) {
      guard Self.shardCounts.contains(shardCount) else {
        throw DatabaseError(
          .invalidArgument,
          "a database has \(Self.shardCounts) shards, and shardCount is \(shardCount)",
          path: path)
      }
      if let serverTimeout, serverTimeout <= .zero {
        throw DatabaseError(
          .invalidArgument, "serverTimeout is \(serverTimeout) and must be above zero", path: path)
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

    /// Throws `.unimplemented` for what a database on a store cannot have.
    func checkForStore(_ path: String) throws(DatabaseError) {
      if access == .readOnly {
        throw DatabaseError(
          .unimplemented, "a database on a server is opened for reading and writing", path: path)
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
