// From files to memory: the work of an open before the first read. Recovery reads the logs from the
// manifest's floor on, in order, and puts their rows into memtables. It distinguishes a torn tail
// from damage as LogFormat describes.
//
// A log that the manifest lists is read whatever the state of its header: the manifest has the
// salt, and the rest follows from the previous log. So the page with the header can be lost like
// any other, and nothing else is lost with it. A log that was written completely before it was
// listed must be complete.
//
// After an unclean shutdown, data that was read is not trusted to be on the device. Readers need
// not wait for that, but writers must; see LogReplacement.

/// An open log and its beginning.
struct OpenedLog: Sendable {
  let number: FileNumber
  let file: any File
  let beginning: [UInt8]

  /// Logs up to this size are read at once.
  private static let smallLength = 64 << 10

  init(_ number: FileNumber, in directory: any Directory) throws(EngineError) {
    self.number = number
    file = try directory.open(number.logName, access: .readOnly)
    beginning = try file.read(at: 0, count: Self.smallLength)
  }

  /// Whether the beginning is the whole log.
  var isWhole: Bool { beginning.count < Self.smallLength }

  /// Reads the whole log. The bytes in the beginning are the older ones: alongside a writer, the
  /// mark must not be newer than what is read after it.
  func readAll() throws(EngineError) -> [UInt8] {
    if isWhole { return beginning }
    guard let size = Int(exactly: try file.size()), size <= 4 << 30 else {
      throw .corrupt(file: number.logName, offset: 0, reason: "it is too long for a log")
    }
    return size <= beginning.count ? beginning : try file.read(at: 0, count: size)
  }
}

/// Reads logs back into memtables.
struct Recovery {
  private let directory: any Directory
  private let identity: DatabaseIdentity
  private let manifest: ManifestState

  private(set) var rows: RecoveredRows
  private var sequence: SequenceNumber
  private var time: Int64
  private var end: LogPosition
  private var last = FileNumber.zero
  private var length: UInt64 = 0
  private var starts: [LogStart] = []
  /// Complete commits from the floor on.
  private(set) var commits: [RecoveredCommit] = []
  private var pieces = CommitPieces()
  private var isSealed = false
  private var tear: Tear?
  /// Logs that have lost their header and were read without it.
  private(set) var headless: [FileNumber] = []
  /// Logs that are not blank but could not be read at all.
  private(set) var unread: [FileNumber] = []
  /// Whether recovery has found that the key of a group is a different one. Then the rows of the
  /// group that were read before are invalid, and so are its files, and everything must be read
  /// again.
  private(set) var hasLockedOut = false

  /// Where the first unreadable frame starts.
  private struct Tear {
    var file: String
    var offset: UInt64
    var position: LogPosition
  }

  /// - Parameter budget: the cache that the memtables' memory counts against from their creation. A
  ///   caller without one accounts for the memory itself.
  init(
    directory: any Directory, identity: DatabaseIdentity, manifest: ManifestState,
    memtableSize: Int, budget: BlockCache? = nil
  ) {
    self.directory = directory
    self.identity = identity
    self.manifest = manifest
    rows = RecoveredRows(
      flushedThrough: manifest.shards.map(\.flushedThrough), memtableSize: memtableSize,
      budget: budget)
    sequence = manifest.floor.sequence
    time = manifest.floor.time
    end = manifest.floor.base
  }

  /// Rows by shard, oldest memtable first.
  var memtables: [[Memtable]] { rows.memtables }

  /// Whether the database was closed cleanly, so that its logs can stay unchanged.
  var isClean: Bool {
    isSealed && tear == nil && last == manifest.newestLog && headless.isEmpty
      && unread.isEmpty
  }

  /// The work to do otherwise.
  var replacement: LogReplacement {
    LogReplacement(
      commits: commits, sequence: sequence, time: time, end: end,
      memtables: Array(memtables.joined()), unread: unread)
  }

  var recovered: RecoveredLog {
    RecoveredLog(
      sequence: sequence, time: time, end: end, number: last, length: length, starts: starts,
      history: manifest.history)
  }

  // MARK: - Reading

  /// Reads all logs among `names` from the floor on.
  ///
  /// - Parameter opened: one of them, if it was already read.
  mutating func replay(_ names: [String], opened: OpenedLog? = nil) throws(EngineError) {
    let numbers = names.compactMap { FileNumber.parse($0, prefix: "LOG-") }
      .filter { $0 >= manifest.floor.number }.sorted()
    for needed in [manifest.floor.number, manifest.newestLog] where !numbers.contains(needed) {
      throw .corrupt(file: needed.logName, offset: 0, reason: "the log is missing")
    }
    for number in numbers {
      if let opened, opened.number == number {
        try read(opened)
      } else {
        try read(try OpenedLog(number, in: directory))
      }
    }
    rows.link()
    if let tear { end = tear.position }
    for (index, shard) in manifest.shards.enumerated() where shard.flushedThrough > sequence {
      throw .corrupt(
        file: last.logName, offset: length,
        reason: "commits up to \(shard.flushedThrough.rawValue) were flushed from shard \(index),"
          + " and the log ends at \(sequence.rawValue)")
    }
  }

  private mutating func read(_ log: OpenedLog) throws(EngineError) {
    let (number, name) = (log.number, log.number.logName)
    let page = log.beginning.bytes.extracting(
      first: min(LogHeader.length, log.beginning.count))
    let reading = try LogHeader.read(page, file: name)
    let bytes = try log.readAll()
    guard case .header(let header) = reading, header.number == number else {
      // Created before it was needed and never used. Or these bytes belong to an older log, because
      // the new ones never arrived. Or the header is lost.
      return try readHeadless(bytes, number, name)
    }
    guard header.identity == identity else {
      throw .corrupt(file: name, offset: 0, reason: "it belongs to another database")
    }
    var frames = FrameReader(
      bytes, salt: header.salt, from: LogHeader.length, seal: directory.keyring?.seal(header))
    if try connect(header, name) { try take(&frames, header, name) }
    let mark = FrameReader(log.beginning, salt: header.salt, from: LogHeader.length).mark
    try refuseDamage(claims: [frames.furthestClaim(), mark])
  }

  /// Reads a log whose header is missing. If its first frame continues where the previous log
  /// ended, the contents of the header are known.
  private mutating func readHeadless(
    _ bytes: [UInt8], _ number: FileNumber, _ name: String
  ) throws(EngineError) {
    let isFloor = number == manifest.floor.number
    guard let log = manifest.namedLogs[number] else {
      if isFloor { beginFloor(number) }
      tearHere(name, at: 0, position: end)
      if !bytes.bytes.isZero { unread.append(number) }
      return try refuseDamage(claims: [
        UnsaltedFrames(bytes, from: LogHeader.length).furthestClaim
      ])
    }
    var frames = FrameReader(
      bytes, salt: log.salt, from: LogHeader.length,
      seal: directory.keyring?.seal(log: number, salt: log.salt))
    let header = LogHeader(lostBy: log, of: identity, behind: recovered)
    if tear == nil, begins(frames, behind: sequence), try connect(header, name) {
      headless.append(number)
      try take(&frames, header, name)
    } else {
      if isFloor { beginFloor(number) }
      tearHere(name, at: 0, position: end)
      if !bytes.bytes.isZero { unread.append(number) }
      try refuseLoss(in: number, before: 0)
    }
    try refuseDamage(claims: [frames.furthestClaim(), frames.mark])
  }

  /// Whether the first frame comes next after `sequence`.
  private func begins(_ frames: FrameReader, behind sequence: SequenceNumber) -> Bool {
    var frames = frames
    guard let first = frames.next()?.header else { return false }
    return first.sequence == (first.kind == .seal ? sequence : sequence.next)
  }

  /// Throws if a log ends at `offset` but is known to be longer.
  private func refuseLoss(
    in number: FileNumber, before offset: UInt64
  ) throws(EngineError) {
    guard let log = manifest.namedLogs[number], offset < log.length else { return }
    // A log that holds only its header has lost only that.
    if log.length == LogHeader.length { return }
    throw .corrupt(
      file: number.logName, offset: offset,
      reason: "acknowledged commits from \(sequence.next.rawValue) on are damaged")
  }

  /// Whether the log follows what was read so far. Otherwise it records a tear before the log.
  private mutating func connect(
    _ header: LogHeader, _ name: String
  ) throws(EngineError) -> Bool {
    guard tear == nil else { return false }
    if header.number == manifest.floor.number {
      beginFloor(header.number)
    } else {
      guard header.kind == .normal, header.previous == last else {
        // Only logs that the manifest lists were ever synced and certainly exist.
        if header.number > manifest.newestLog {
          tearHere(name, at: 0, position: end)
          return false
        }
        throw .corrupt(file: name, offset: 0, reason: "the log before it is missing")
      }
      guard header.previousLength == length else {
        // The previous log ends early: its tail was lost, or was never written.
        tearHere(last.logName, at: length, position: end)
        return false
      }
      starts.append(LogStart(number: header.number, base: end, sequence: sequence, time: time))
    }
    guard header.base == end, header.firstSequence == sequence.next, !isSealed || length > 0 else {
      throw .corrupt(file: name, offset: 0, reason: "it does not continue the log before it")
    }
    last = header.number
    isSealed = false
    return true
  }

  private mutating func beginFloor(_ number: FileNumber) {
    last = number
    length = 0
    starts = [manifest.floor]
  }

  private mutating func tearHere(_ file: String, at offset: UInt64, position: LogPosition) {
    if tear == nil { tear = Tear(file: file, offset: offset, position: position) }
  }

  /// Takes every valid frame.
  private mutating func take(
    _ frames: inout FrameReader, _ header: LogHeader, _ name: String
  ) throws(EngineError) {
    let base = header.base.rawValue
    while !isSealed, let frame = frames.next() {
      try take(frame, frames, name)
    }
    try frames.refuseForgery(in: name)
    let stop = pieces.start ?? frames.offset
    if pieces.start != nil || !(isSealed || frames.isBlankFromHere()) {
      tearHere(name, at: UInt64(stop), position: LogPosition(rawValue: base + UInt64(stop)))
    }
    length = UInt64(stop)
    end = LogPosition(rawValue: base + UInt64(stop))
    try refuseLoss(in: header.number, before: length)
  }

  private mutating func take(
    _ frame: FrameReader.Frame, _ frames: FrameReader, _ name: String
  ) throws(EngineError) {
    let header = frame.header
    let isCommit = header.kind != .seal
    guard header.sequence == (isCommit ? sequence.next : sequence),
      header.kind != .edit, header.kind != .mark
    else {
      throw .corrupt(
        file: name, offset: UInt64(frame.offset), reason: "a commit is missing before this one")
    }
    switch header.kind {
    case .seal, .edit, .mark:
      isSealed = true
      time = max(time, header.time)
    case .part:
      pieces.add(frame, of: frames)
    case .commit, .lastPart:
      let commit = try pieces.join(with: frame, of: frames, takesForged: true, in: name)
      try refuseLocked(commit)
      do throws(MalformedBytes) {
        try rows.insert(commit, log: last)
      } catch {
        throw .corrupt(
          file: name, offset: UInt64(frame.offset), reason: "in its rows: \(error.reason)")
      }
      commits.append(commit)
      sequence = header.sequence
      time = header.time
    }
  }

  /// Throws if rows of an existing group cannot be read because its key is missing or is a
  /// different one: a flush would treat them as absent. If the rows are also in segments, nothing
  /// is lost, and the group is locked.
  private mutating func refuseLocked(_ commit: RecoveredCommit) throws(EngineError) {
    for group in commit.unopened where manifest.groups.live.contains(group) {
      guard let keys = directory.keyring?.groups else { continue }
      if commit.forged.contains(group) {
        let number = commit.sequence.rawValue
        hasLockedOut =
          keys.lockOut(group, because: "commit \(number) was sealed with another key")
          || hasLockedOut
      }
      let isFlushed =
        manifest.shards[Int(group) % manifest.shards.count].flushedThrough >= commit.sequence
      guard keys.isLockedOut(group), isFlushed else {
        throw .locked(
          path: directory.path,
          reason: "commits that are only in logs are sealed with a key that is not here:"
            + " \(keys.absence(of: group) ?? "there is none of group \(group)")")
      }
    }
  }

  /// Throws if a later frame, or the mark, vouches for bytes at the tear.
  private func refuseDamage(claims: [LogPosition?]) throws(EngineError) {
    let position = tear?.position ?? end
    guard claims.contains(where: { $0.map { $0 > position } ?? false }) else { return }
    throw .corrupt(
      file: tear?.file ?? last.logName, offset: tear?.offset ?? length,
      reason: "acknowledged commits from \(sequence.next.rawValue) on are damaged")
  }
}
