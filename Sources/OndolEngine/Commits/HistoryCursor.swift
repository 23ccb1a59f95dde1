// Reads commits again, in order, from the kept logs and those in use. It is beside the write path:
// nothing waits for it. It holds one window of one log, and the result of each call is also
// bounded, however long the history is. It checks every frame's checksums, like recovery; of
// skipped frames it checks the headers.

/// A commit in its log.
package struct LoggedCommit: Sendable, Equatable {
  package var point: CommitPoint
  /// The annotations of its batch beside its rows, except for groups whose keys are missing.
  package var annotations: [[UInt8]]
}

/// A position in the history of commits.
struct HistoryCursor: Sendable {
  /// The last commit that was returned, or the one after which reading begins.
  private(set) var position: CommitPoint
  /// Whether `position` was found unchanged in a log.
  private var isVerified = false
  private var log: OpenLog?
  /// Parts of a commit whose last frame has not come.
  private var pieces: [UInt8] = []

  /// The log that is being read.
  fileprivate struct OpenLog: Sendable {
    var number: FileNumber
    var file: any File
    var salt: UInt64
    var seal: FileSeal?
    /// The last commit that was read in it, or before it.
    var sequence: SequenceNumber
    /// The position of the next frame.
    var offset = UInt64(LogHeader.length)
    /// Bytes of the file, and where they begin.
    var window: [UInt8] = []
    var windowStart: UInt64 = 0
  }

  /// The most bytes read from a file at once, and the most bytes returned at once.
  private static let pieceLength: UInt64 = 1 << 20
  /// The most commits returned at once.
  static let commitsAtOnce = 512

  init(after position: CommitPoint) {
    self.position = position
  }

  /// Some of the following commits, none at the end of what is written. Blocks.
  ///
  /// Throws `.notInHistory` when the position is not in this history, `.corrupt` for unreadable
  /// bytes.
  mutating func read(
    _ extent: HistoryExtent, in directory: any Directory, _ identity: DatabaseIdentity
  ) throws(EngineError) -> [LoggedCommit] {
    try refuseOutside(extent)
    if log == nil { log = try begin(extent, in: directory, identity) }
    guard var log else { return [] }
    var commits: [LoggedCommit] = []
    var bytes = 0
    while log.sequence < extent.published, bytes < Self.pieceLength,
      commits.count < Self.commitsAtOnce
    {
      guard let place = extent.logs.firstIndex(where: { $0.number == log.number }) else {
        // Another process has recovered the database, and the same commits are in another log.
        self = HistoryCursor(after: position)
        return commits.isEmpty ? try read(extent, in: directory, identity) : commits
      }
      let length = extent.logs[place].length
      if log.offset < length {
        guard let commit = try takeFrame(&log, before: length) else { continue }
        position = commit.point
        bytes += commit.annotations.reduce(0) { $0 + $1.count }
        commits.append(commit)
      } else if place + 1 < extent.logs.count {
        let next = extent.logs[place + 1]
        // Nothing of the next log is written, so perhaps not all of this one: commits without
        // durability are visible before they are in a log.
        guard next.length > 0 else { break }
        guard next.before.sequence == log.sequence, pieces.isEmpty else {
          throw .corrupt(
            file: next.number.logName, offset: 0, reason: "commits are missing before it")
        }
        log = try Self.open(next, in: directory, identity)
      } else {
        break
      }
    }
    self.log = log
    return commits
  }

  // MARK: - Start position

  static func isGone(_ position: CommitPoint) -> EngineError {
    .notInHistory(
      reason: "the commits after \(position.sequence.rawValue) are no longer kept")
  }

  static func isLost(_ position: CommitPoint) -> EngineError {
    .notInHistory(
      reason: "commit \(position.sequence.rawValue) is not in the database: a crash took it, or"
        + " these are other files")
  }

  private func refuseOutside(_ extent: HistoryExtent) throws(EngineError) {
    guard position.sequence >= extent.start.sequence else { throw Self.isGone(position) }
    guard position.sequence <= extent.published else { throw Self.isLost(position) }
    if position.sequence == extent.start.sequence, position.time != extent.start.time {
      throw Self.isLost(position)
    }
  }

  /// Opens the log that the next commit is in, or at whose end it will be.
  private mutating func begin(
    _ extent: HistoryExtent, in directory: any Directory, _ identity: DatabaseIdentity
  ) throws(EngineError) -> OpenLog? {
    guard let found = extent.logs.last(where: { $0.before.sequence <= position.sequence }) else {
      throw .corrupt(
        file: extent.logs.first?.number.logName ?? "", offset: 0,
        reason: "commits from \(position.sequence.next.rawValue) on are missing before it")
    }
    if found.before.sequence == position.sequence {
      guard found.before.time == position.time else { throw Self.isLost(position) }
      isVerified = true
    }
    return found.length == 0 ? nil : try Self.open(found, in: directory, identity)
  }

  private static func open(
    _ log: HistoryExtent.Log, in directory: any Directory, _ identity: DatabaseIdentity
  ) throws(EngineError) -> OpenLog {
    let name = log.number.logName
    let file = try directory.open(name, access: .readOnly)
    let page = try file.read(at: 0, count: LogHeader.length)
    guard case .header(let header) = try LogHeader.read(page.bytes, file: name),
      header.number == log.number, header.identity == identity,
      header.firstSequence == log.before.sequence.next
    else {
      throw .corrupt(file: name, offset: 0, reason: "it does not begin as the manifest says")
    }
    return OpenLog(
      number: log.number, file: file, salt: header.salt, seal: directory.keyring?.seal(header),
      sequence: log.before.sequence)
  }

  // MARK: - Frames

  /// Moves over the next frame; returns the commit that it completes, unless that is not after the
  /// position where reading began.
  private mutating func takeFrame(
    _ log: inout OpenLog, before length: UInt64
  ) throws(EngineError) -> LoggedCommit? {
    let header = try log.header(before: length)
    let isWanted = header.sequence > position.sequence
    guard header.kind != .seal else {
      log.offset += UInt64(header.frameLength)
      return nil
    }
    guard header.kind != .edit, header.kind != .mark, header.sequence == log.sequence.next else {
      throw log.damage("a commit is missing before this one")
    }
    let annotations = isWanted ? try takePayload(header, &log) : []
    log.offset += UInt64(header.frameLength)
    guard header.kind != .part else { return nil }
    log.sequence = header.sequence
    let point = CommitPoint(sequence: header.sequence, time: header.time)
    if point.sequence == position.sequence {
      guard isVerified || point.time == position.time else { throw Self.isLost(position) }
      isVerified = true
    }
    return isWanted ? LoggedCommit(point: point, annotations: annotations) : nil
  }

  /// The annotations of the commit that ends with this frame; of a part nothing, which is kept.
  private mutating func takePayload(
    _ header: FrameHeader, _ log: inout OpenLog
  ) throws(EngineError) -> [[UInt8]] {
    let range = try log.payload(header)
    let window = log.window
    let stored = window.bytes.extracting(range)
    guard crc32c(stored) == header.payloadChecksum else {
      throw log.damage("the payload's checksum is wrong")
    }
    if let seal = log.seal {
      let start = window.bytes.extracting(droppingFirst: range.lowerBound - FrameHeader.length)
      guard let opened = header.open(stored, header: start, by: seal, offset: log.offset) else {
        throw log.damage(FileSeal.forged.reason)
      }
      return try take(opened.bytes, header, log)
    }
    return try take(stored, header, log)
  }

  private mutating func take(
    _ payload: RawSpan, _ header: FrameHeader, _ log: OpenLog
  ) throws(EngineError) -> [[UInt8]] {
    do throws(MalformedBytes) {
      if header.kind == .commit {
        return try Self.annotations(of: payload, header.sequence, log.seal?.groups)
      }
      pieces.append(payload)
      if header.kind == .part { return [] }
      let whole = pieces
      pieces = []
      return try Self.annotations(of: whole.bytes, header.sequence, log.seal?.groups)
    } catch {
      throw log.damage("in its rows: \(error.reason)")
    }
  }

  private static func annotations(
    of payload: RawSpan, _ sequence: SequenceNumber, _ groups: GroupSeals?
  ) throws(MalformedBytes) -> [[UInt8]] {
    if let groups, groups.mayBeUsed,
      let opened = try GroupRecords.open(payload, sequence, by: groups)
    {
      guard opened.forged.isEmpty else { throw FileSeal.forged }
      return try annotations(of: opened.payload.bytes)
    }
    return try annotations(of: payload)
  }

  private static func annotations(of payload: RawSpan) throws(MalformedBytes) -> [[UInt8]] {
    var operations = OperationReader(payload)
    while let _ = try operations.next() {}
    return operations.annotations.map { payload.extracting($0).array }
  }
}

extension HistoryCursor.OpenLog {
  fileprivate func damage(_ reason: String) -> EngineError {
    .corrupt(file: number.logName, offset: offset, reason: reason)
  }

  /// The header of the next frame, which ends within the first `length` bytes.
  fileprivate mutating func header(before length: UInt64) throws(EngineError) -> FrameHeader {
    let rest = length - offset
    try load(FrameHeader.length, atMost: rest)
    let bytes = window
    let place = Int(offset - windowStart)
    guard place <= bytes.count,
      let header = FrameHeader.read(
        bytes.bytes.extracting(droppingFirst: place), salt: salt, offset: offset,
        isSealed: seal != nil),
      UInt64(header.frameLength) <= rest
    else { throw damage("an acknowledged commit cannot be read") }
    return header
  }

  /// The position in the window of this frame's payload.
  fileprivate mutating func payload(_ header: FrameHeader) throws(EngineError) -> Range<Int> {
    let length = FrameHeader.length + header.payloadLength
    try load(length, atMost: UInt64(length))
    let start = Int(offset - windowStart)
    guard start + length <= window.count else { throw damage("the file ends within a commit") }
    return (start + FrameHeader.length)..<(start + length)
  }

  /// Makes the window contain `count` bytes from `offset` on, if the file does, and more of the
  /// `rest`.
  private mutating func load(_ count: Int, atMost rest: UInt64) throws(EngineError) {
    if offset >= windowStart, offset - windowStart + UInt64(count) <= UInt64(window.count) {
      return
    }
    let wanted = max(count, Int(min(rest, 1 << 20)))
    window = try file.read(at: offset, count: wanted)
    windowStart = offset
  }
}
