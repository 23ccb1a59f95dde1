// How commits come together for one sync, as a plain value: no lock, no file, no clock. Those with
// `.power` that are placed while a sync is under way leave their frames to the next one, which
// writes them all at once. And before that begins, the log's thread gives those whom the last one
// satisfied a moment to commit again: else writers fall into two camps that wait for each other's
// syncs, and each sync covers half of what it could.

/// Frames put off, and whose turn it is to sync.
struct GroupSync: Sendable {
  /// Bytes of a commit from which its committer writes it: longer ones had better not be copied
  /// where others wait.
  private static let longFrame = 64 << 10
  /// Microseconds of a pause; systems make about twice as many of it.
  static let pause: Int64 = 50
  /// Pauses are made only where a sync takes so many times as long.
  private static let leastSyncs: Int64 = 10
  /// And take no more than this part of one, all together.
  private static let largestShare: Int64 = 4

  /// Bytes that may be put off.
  private let limit: UInt64
  /// Whether a commit that is alone may sync on its own thread.
  private let callersSync: Bool

  /// Frames put off, not yet written, and where they begin: those of `.memory` commits, and of
  /// `.power` commits that came while a sync was under way.
  private var deferred: [UInt8] = []
  private var deferredOffset: UInt64 = 0
  /// `.power` commits among them; the end of the sync sees to those.
  private(set) var gathered = 0
  /// As many as there will be once all whom the last sync satisfied commit again.
  private var awaited = 0
  /// Microseconds that the last sync took.
  private var duration: Int64 = 0
  private var isUnderWay = false
  /// Whether commits have lately waited for each other's syncs. One that is alone syncs on its own
  /// thread; among several that would only keep a thread of the pool from the others.
  private var hasCompany = false
  /// When the sync is due that `.periodic` commits wait for.
  private var deadline: Int64?

  init(_ options: EngineOptions) {
    limit = UInt64(max(0, options.deferredBytes))
    callersSync = options.callersSync
  }

  // MARK: - Frames

  var isPuttingOff: Bool { !deferred.isEmpty }

  /// Takes what the commit that was placed last would write, up to `end`: answers with the bytes to
  /// write, joined with the frames put off before it, or puts it off too. It may wait for others
  /// where nobody waits for it, as for `.memory`, and where it goes with them into one write with
  /// one sync.
  ///
  /// Where it is alone, and everything in front of it is on the device, the write may sync its own
  /// bytes; if anything were not, a power cut could leave a hole in front of a commit that was
  /// acknowledged.
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

  /// Frames put off, about to be written.
  struct DeferredWrite: Sendable {
    let log: LogFile
    let offset: UInt64
    let bytes: [UInt8]

    var start: LogPosition { log.position(of: offset) }
    var end: LogPosition { log.position(of: offset + UInt64(bytes.count)) }
  }

  /// Gives away what is put off, which is all for `log`.
  mutating func takeDeferred(for log: LogFile?) -> DeferredWrite? {
    guard let log, !deferred.isEmpty else { return nil }
    defer {
      deferred = []
      gathered = 0
    }
    return DeferredWrite(log: log, offset: deferredOffset, bytes: deferred)
  }

  // MARK: - Syncs

  /// Begins a sync if one begun now would satisfy anybody; it is the caller's to make.
  ///
  /// - Parameter waiting: the least position that somebody waits for, beside commits.
  mutating func begin(
    _ commits: borrowing CommitState, waiting: LogPosition?, isSecured: Bool
  ) -> Bool {
    guard !isUnderWay, isSecured,
      gathered > 0 || commits.wantsSync || waiting.map({ $0 <= commits.writtenThrough }) == true
    else { return false }
    isUnderWay = true
    return true
  }

  /// Whether a sync that a write has made due is its committer's to make.
  var isCallers: Bool { callersSync && !hasCompany }

  /// Notes that the sync has ended.
  mutating func end() {
    isUnderWay = false
  }

  /// Notes how many the sync has satisfied, and whether the next one has begun already.
  mutating func noteSatisfied(_ count: Int, goesOn: Bool) {
    hasCompany = goesOn || count > 1
    awaited = gathered + count
  }

  // MARK: - Patience

  /// Notes how many microseconds a sync took, by which the next one's patience is measured.
  mutating func noteDuration(_ microseconds: Int64) {
    duration = max(0, microseconds)
  }

  /// Microseconds that may be waited, all in all, before a sync begins.
  var patience: Int64 {
    duration < Self.leastSyncs * Self.pause ? 0 : duration / Self.largestShare
  }

  /// How many commits have come for the sync that is about to begin, when that is more than
  /// `before` and others are still awaited.
  func gathered(beyond before: Int) -> Int? {
    gathered > before && gathered < awaited ? gathered : nil
  }

  // MARK: - Periodic syncs

  /// Has a sync made for a `.periodic` commit unless one is due as early; answers with how many
  /// microseconds that must wait.
  mutating func arm(_ durability: Durability, now: Int64) -> Int64? {
    guard case .periodic(let delay) = durability else { return nil }
    let (due, overflow) = now.addingReportingOverflow(delay)
    if overflow { return nil }
    if let deadline, deadline <= due { return nil }
    deadline = due
    return delay
  }

  /// Notes that the sync which was due is being made.
  mutating func disarm() {
    deadline = nil
  }
}
