// How commits share one sync, as a plain value: no lock, no file, no clock. Commits with `.power`
// that are placed during a sync leave their frames to the next one, which writes them all at once.
// Before that begins, the log's thread gives the commits that the last sync satisfied a moment to
// commit again. Otherwise writers would split into two groups that wait for each other's syncs, and
// each sync would cover half of what it could.

/// Deferred frames, and who syncs next.
struct GroupSync: Sendable {
  /// Commits of at least this many bytes are written by their committer, because copying them would
  /// make others wait.
  private static let longFrame = 64 << 10
  /// Microseconds of a pause; systems make it about twice as long.
  static let pause: Int64 = 50
  /// Pauses are made only when a sync takes at least this many times as long.
  private static let leastSyncs: Int64 = 10
  /// All pauses together take no more than this part of a sync.
  private static let largestShare: Int64 = 4

  /// The most bytes that may be deferred.
  private let limit: UInt64
  /// Whether a lone commit may sync on its own thread.
  private let callersSync: Bool

  /// Deferred frames, not yet written, and where they begin: those of `.memory` commits, and of
  /// `.power` commits that came during a sync.
  private var deferred: [UInt8] = []
  private var deferredOffset: UInt64 = 0
  /// The number of `.power` commits among them; the end of the sync handles those.
  private(set) var gathered = 0
  /// Their number once all commits that the last sync satisfied have been followed by another.
  private var awaited = 0
  /// Microseconds that the last sync took.
  private var duration: Int64 = 0
  private var isUnderWay = false
  /// Whether commits have recently waited for each other's syncs. A lone commit syncs on its own
  /// thread; with several, that would only keep a thread of the pool from the others.
  private var hasCompany = false
  /// When the sync is due that `.periodic` commits wait for.
  private var deadline: Int64?

  init(_ options: EngineOptions) {
    limit = UInt64(max(0, options.deferredBytes))
    callersSync = options.callersSync
  }

  // MARK: - Frames

  var isPuttingOff: Bool { !deferred.isEmpty }

  /// Takes the frames of the commit that was placed last, up to `end`: returns the bytes to write,
  /// joined with earlier deferred frames, or defers them as well. Frames may wait when no caller
  /// waits for them, as for `.memory`, and when they share one write and one sync with others.
  ///
  /// For a lone commit, when everything before it is on the device, the write may sync its own
  /// bytes. If anything were not, a power cut could leave a hole before an acknowledged commit.
  ///
  /// - Parameter isSecured: whether its log is found after a power cut.
  mutating func take(
    _ write: consuming PendingWrite, _ durability: Durability, through end: UInt64,
    isSecured: Bool
  ) -> PendingWrite? {
    if deferred.isEmpty { deferredOffset = write.offset }
    let mayWait =
      durability == .memory
      || durability == .power && isUnderWay && write.frame.count < Self.longFrame
    if mayWait, end - deferredOffset < limit {
      deferred += write.build()
      if durability == .power { gathered += 1 }
      return nil
    }
    if !deferred.isEmpty {
      write.offset = deferredOffset
      write.prefix = deferred + write.prefix
      deferred = []
      gathered = 0
    }
    if durability == .power, callersSync, !hasCompany, !isUnderWay, isSecured,
      write.context.syncedThrough == write.log.position(of: write.offset)
    {
      isUnderWay = true
      write.isSynced = true
    }
    return write
  }

  /// Deferred frames that are about to be written.
  struct DeferredWrite: Sendable {
    let log: LogFile
    let offset: UInt64
    let bytes: [UInt8]

    var start: LogPosition { log.position(of: offset) }
    var end: LogPosition { log.position(of: offset + UInt64(bytes.count)) }
  }

  /// Removes and returns the deferred frames, which are all for `log`.
  mutating func takeDeferred(for log: LogFile?) -> DeferredWrite? {
    guard let log, !deferred.isEmpty else { return nil }
    defer {
      deferred = []
      gathered = 0
    }
    return DeferredWrite(log: log, offset: deferredOffset, bytes: deferred)
  }

  // MARK: - Syncs

  /// Begins a sync if one begun now would satisfy any waiter; the caller must make it.
  ///
  /// - Parameter waiting: the least position that anything but commits waits for.
  mutating func begin(
    _ commits: borrowing CommitState, waiting: LogPosition?, isSecured: Bool
  ) -> Bool {
    guard !isUnderWay, isSecured,
      gathered > 0 || commits.wantsSync || waiting.map({ $0 <= commits.writtenThrough }) == true
    else { return false }
    isUnderWay = true
    return true
  }

  /// Whether the committer must make a sync that its write has made due.
  var isCallers: Bool { callersSync && !hasCompany }

  /// Records that the sync has ended.
  mutating func end() {
    isUnderWay = false
  }

  /// Records how many commits the sync has satisfied, and whether the next one has begun already.
  mutating func noteSatisfied(_ count: Int, goesOn: Bool) {
    hasCompany = goesOn || count > 1
    awaited = gathered + count
  }

  // MARK: - Wait time

  /// Records how many microseconds a sync took, from which the next one's patience is derived.
  mutating func noteDuration(_ microseconds: Int64) {
    duration = max(0, microseconds)
  }

  /// Microseconds to wait at most, in total, before a sync begins.
  var patience: Int64 {
    duration < Self.leastSyncs * Self.pause ? 0 : duration / Self.largestShare
  }

  /// How many commits have come for the next sync, when that is more than `before` and others are
  /// still awaited.
  func gathered(beyond before: Int) -> Int? {
    gathered > before && gathered < awaited ? gathered : nil
  }

  // MARK: - Periodic syncs

  /// Schedules a sync for a `.periodic` commit unless one is due as early; returns how many
  /// microseconds it must wait.
  mutating func arm(_ durability: Durability, now: Int64) -> Int64? {
    guard case .periodic(let delay) = durability else { return nil }
    let (due, overflow) = now.addingReportingOverflow(delay)
    if overflow { return nil }
    if let deadline, deadline <= due { return nil }
    deadline = due
    return delay
  }

  /// Records that the due sync is being made.
  mutating func disarm() {
    deadline = nil
  }
}
