// The logs that commits go into, as a plain value: the one in use and how far it is filled, the
// next one made ahead, earlier ones that a sync must still cover, and all that recovery would need.
// No file is opened, written or synced here; the sequencer keeps the value under its lock and acts
// on its results.
//
// Space comes before place: a commit is placed only once the disk has reserved room for its frames.
// So a full disk refuses a commit of which nothing has happened yet, and a frame that has its place
// is never cut short. Room is reserved ahead, a piece at a time, on the thread of the committer
// that needs its first byte; a prewritten log has it from the beginning.

/// Where commits' frames go.
struct LogSpace: Sendable {
  private let identity: DatabaseIdentity
  /// The size in bytes at which a log that was not prewritten is full.
  private let size: UInt64
  /// The number of log bytes after which rows are flushed, however few they are.
  private let retention: UInt64

  /// The log in use; none until the first commit.
  private(set) var current: LogFile?
  /// Offset of the next frame in it.
  private var offset: UInt64 = 0
  /// Bytes of it for which the disk has reserved room.
  private var reserved: UInt64 = 0
  /// Syncs of it so far.
  private var syncs: UInt64 = 0
  /// Where the last log ended, for the next one's header.
  private var previous: FileNumber
  private var previousLength: UInt64
  /// Made ahead of its use.
  private(set) var spare: SpareLog?
  private var isSparePromised = false
  /// Why the last attempt to make a log failed.
  private var spareFailure: EngineError?
  /// Bytes of zeros of the next prewritten log.
  private var nextPrewritten: UInt64
  /// Logs up to this one are found after a power cut.
  private var secured: FileNumber
  /// Earlier logs that a sync must still cover, oldest first.
  private var unsynced: [LogFile] = []
  /// Where each log since the floor begins.
  private var starts: [LogStart]
  /// The kept part of the logs before those.
  private var history: History?

  init(_ recovered: RecoveredLog, identity: DatabaseIdentity, _ options: EngineOptions) {
    self.identity = identity
    size = UInt64(options.logSize)
    retention = UInt64(options.logRetention)
    previous = recovered.number
    previousLength = recovered.length
    nextPrewritten = UInt64(min(options.firstPrewrittenSize, options.logSize))
    secured = recovered.number
    starts = recovered.starts
    history = recovered.history
  }

  /// Continues after `log`, to which recovery has moved all commits. Nothing was placed before.
  mutating func goOn(after log: RecoveredLog) {
    previous = log.number
    previousLength = log.length
    secured = log.number
    starts = log.starts
  }

  // MARK: - Placing

  /// Where the frames of a commit go.
  struct Place: Sendable {
    let log: LogFile
    /// The log's header, to be written before its first commit.
    let header: [UInt8]
    /// The offset of the header, or of the frames when there is none.
    let offset: UInt64
    let end: UInt64
    /// Set by the first commit of a log: rows of this log or earlier ones are too old and must be
    /// flushed, so that logs do not accumulate for a shard that is seldom written.
    let overdue: FileNumber?
    /// The log needs a successor.
    let spareRequest: SpareRequest?
  }

  enum Answer {
    case place(Place)
    /// There is no log to write to, or the prewritten room is used up and the disk had no room for
    /// another log.
    case needsLog
    case needsSpace(MissingSpace)
  }

  /// Gives a commit after all of `commits`, with frames of this many bytes, its place. Switches to
  /// the spare log when this one is full or there is none, or when only the spare is prewritten;
  /// not while frames for this one are deferred.
  mutating func place(
    _ frames: FrameLength, after commits: borrowing CommitState, isPuttingOff: Bool
  ) -> Answer {
    var overdue: FileNumber?
    if !isPuttingOff, let spare, mustLeave(for: spare, frames) {
      let length = frames.bytes(sealedBy: spare.seal)
      if let missing = missing(spare.number, spare.file, at: 0, length, reserved: spare.reserved) {
        return .needsSpace(missing)
      }
      overdue = goOn(in: spare, after: commits)
    }
    guard let log = current else { return .needsLog }
    let length = frames.bytes(sealedBy: log.seal)
    if spareFailure != nil, spare == nil, !isPuttingOff, isFull(log, length) { return .needsLog }
    if let missing = missing(log.number, log.file, at: offset, length, reserved: reserved) {
      return .needsSpace(missing)
    }
    let header = offset == 0 ? header(of: log, after: commits) : []
    let start = offset
    offset = start + UInt64(header.count) + length
    return .place(
      Place(
        log: log, header: header, offset: start, end: offset, overdue: overdue,
        spareRequest: promiseSpare(behind: log)))
  }

  private func isFull(_ log: LogFile, _ length: UInt64) -> Bool {
    if log.prewritten == 0 { return offset >= size }
    return offset > LogHeader.length && offset + length > log.prewritten
  }

  private func mustLeave(for spare: SpareLog, _ frames: FrameLength) -> Bool {
    guard let current else { return true }
    // It was switched to before there was a commit for it.
    if offset == 0 { return false }
    return isFull(current, frames.bytes(sealedBy: current.seal))
      || current.prewritten == 0 && spare.prewritten > 0
  }

  /// Switches to the spare log, whatever room is left in the one in use. No frame may be deferred.
  /// Returns false when there is no spare log, or the one in use has no commit, because recovery
  /// takes a log without commits for the end of the line.
  mutating func leave(after commits: borrowing CommitState) -> Bool {
    guard let spare, current == nil || offset > 0 else { return false }
    _ = goOn(in: spare, after: commits)
    return true
  }

  /// Withdraws the spare log when its number is before `border`.
  mutating func withdrawSpare(before border: FileNumber) -> SpareLog? {
    guard let spare, spare.number < border else { return nil }
    self.spare = nil
    return spare
  }

  /// The log that commits go into, or the last one that they went into.
  var last: FileNumber { current?.number ?? previous }

  /// Returns the log up to which rows are overdue, if any are.
  private mutating func goOn(in spare: SpareLog, after commits: CommitState) -> FileNumber? {
    if let current {
      previous = current.number
      previousLength = offset
      unsynced.append(current)
    }
    let end = commits.placedEnd
    current = LogFile(spare, base: end)
    starts.append(
      LogStart(
        number: spare.number, base: end, sequence: commits.lastPlaced, time: commits.lastTime))
    offset = 0
    syncs = 0
    reserved = spare.reserved
    self.spare = nil
    isSparePromised = false
    return starts.last { end.rawValue - $0.base.rawValue >= retention }?.number
  }

  private func header(of log: LogFile, after commits: CommitState) -> [UInt8] {
    LogHeader(
      number: log.number, identity: identity, salt: log.salt, kind: .normal, base: log.base,
      previous: previous, previousLength: previousLength, firstSequence: commits.lastPlaced.next
    ).encode()
  }

  // MARK: - Room

  /// The room that a log lacks for that many bytes of frames at `offset`.
  private func missing(
    _ log: FileNumber, _ file: any File, at offset: UInt64, _ length: UInt64, reserved: UInt64
  ) -> MissingSpace? {
    let end = max(offset, UInt64(LogHeader.length)) + length
    return end > reserved ? MissingSpace(log: log, file: file, range: reserved..<end) : nil
  }

  /// Records that a log has room up to `end`.
  mutating func noteReserved(_ log: FileNumber, through end: UInt64) {
    if current?.number == log {
      reserved = max(reserved, end)
    } else if let spare, spare.number == log {
      self.spare?.reserved = max(spare.reserved, end)
    }
  }

  // MARK: - The next log

  /// A prewritten byte costs about a nanosecond of the device's time, and a sync in a growing file
  /// about forty microseconds of the file system's journal.
  private static let bytesPerSync: UInt64 = 32 << 10
  private static let fewestSyncs: UInt64 = 4

  /// Whether a prewritten log would have been better so far.
  private var favorsPrewriting: Bool {
    syncs >= Self.fewestSyncs && syncs * Self.bytesPerSync >= offset
  }

  /// Requests the next log, once for every log, when it is half full or turns out to be of the
  /// wrong kind.
  private mutating func promiseSpare(behind log: LogFile) -> SpareRequest? {
    if isSparePromised || spare != nil { return nil }
    let prewrites = favorsPrewriting
    let size = log.prewritten > 0 ? log.prewritten : size
    guard offset >= size / 2 || prewrites && log.prewritten == 0 else { return nil }
    isSparePromised = true
    guard prewrites else { return SpareRequest(prewritten: 0) }
    defer { nextPrewritten = min(nextPrewritten * 4, self.size) }
    return SpareRequest(prewritten: nextPrewritten)
  }

  /// Takes a log made ahead of its use.
  mutating func offer(_ spare: SpareLog) {
    self.spare = spare
    spareFailure = nil
  }

  /// Records that no log could be made. Commits continue while there is room in this one.
  mutating func noteNoSpare(_ error: EngineError) {
    spareFailure = error
    isSparePromised = false
  }

  /// Whether commits can continue only in a log that must be made first.
  var needsLog: Bool { spare == nil && (current == nil || spareFailure != nil) }

  /// The last log that was handed over.
  var newest: NamedLog? { spare.map { NamedLog($0) } ?? current.map { NamedLog($0) } }

  // MARK: - Syncs

  /// Whether the log in use is found after a power cut: if not, syncing it is useless.
  var isSecured: Bool { current?.number ?? .zero <= secured }

  /// Records that logs up to `number` are found after a power cut.
  mutating func noteSecured(_ number: FileNumber) {
    secured = max(secured, number)
  }

  /// The logs that syncs must still cover, oldest first, the one in use last.
  var uncovered: [LogFile] { unsynced + [current].compactMap { $0 } }

  /// Records that everything before `position` is on the device.
  mutating func noteSynced(through position: LogPosition) {
    syncs += 1
    // A log whose successor begins at or before the position is synced to its end.
    while !unsynced.isEmpty, let next = unsynced.dropFirst().first ?? current,
      next.base <= position
    {
      unsynced.removeFirst()
    }
  }

  // MARK: - Retention

  /// The end of the order of commits.
  func end(of commits: CommitState) -> RecoveredLog {
    RecoveredLog(
      sequence: commits.lastPlaced, time: commits.lastTime, end: commits.placedEnd,
      number: current?.number ?? previous, length: current == nil ? previousLength : offset,
      starts: starts)
  }

  /// The oldest log that recovery would need if the oldest row in memory had come with `log`, or if
  /// there were none.
  func floor(holding log: FileNumber?) -> LogStart {
    let floor = log ?? current?.number ?? previous
    guard let start = starts.first(where: { $0.number >= floor }) else {
      preconditionFailure("the floor is a log")
    }
    return start
  }

  /// The history once recovery needs no log before `floor`, without the part that must not be kept.
  func history(
    before floor: LogStart, _ retention: HistoryRetention?, now: Int64
  ) -> History? {
    guard var history else { return nil }
    history.keep(starts.filter { $0.number < floor.number } + [floor])
    if let retention { history.trim(to: retention, before: floor, now: now) }
    return history
  }

  mutating func setHistory(_ history: History?) {
    self.history = history
  }

  /// Forgets the logs before the floor, except the kept part.
  mutating func forget(before floor: FileNumber, keeping history: History?) {
    starts.removeAll { $0.number < floor }
    self.history = history
  }

  /// The readable history; nil when no history is kept.
  func extent(of commits: CommitState) -> HistoryExtent? {
    history.map { history in
      HistoryExtent(
        history, since: starts, writtenThrough: commits.writtenThrough,
        published: commits.published)
    }
  }
}
