// How a reader alongside a writer finds the next commits: it continues to read the logs where it
// stopped, frame after frame and on to the next log, as long as each follows the one before. A
// partially written frame is read again next time. If the logs do not continue what was read (the
// writer has recovered from a crash, or is much further ahead), everything is read again.

/// The sequence of commits from some point on.
struct LogTail {
  private let directory: any Directory
  private let identity: DatabaseIdentity
  /// The current end of the sequence.
  private(set) var line: RecoveredLog
  /// The new commits, in order.
  private(set) var commits: [RecoveredCommit] = []

  /// Bytes read at first. A longer commit is read again as a whole.
  private static let windowLength = 64 << 10

  init(behind line: RecoveredLog, in directory: any Directory, _ identity: DatabaseIdentity) {
    self.line = line
    self.directory = directory
    self.identity = identity
  }

  /// Reads the available commits. Returns false if the logs do not continue at the end of the
  /// sequence.
  mutating func readOn(_ manifest: ManifestState) throws(EngineError) -> Bool {
    guard manifest.floor.number <= line.number else { return false }
    line.history = manifest.history
    line.starts.removeAll { $0.number < manifest.floor.number }
    guard line.starts.first == manifest.floor else { return false }
    let numbers = try directory.list().compactMap { FileNumber.parse($0, prefix: "LOG-") }
      .filter { $0 >= line.number }.sorted()
    guard numbers.first == line.number else {
      throw .corrupt(file: line.number.logName, offset: 0, reason: "the log is missing")
    }
    guard try readLog() else { return false }
    for number in numbers.dropFirst() {
      // A log that was created before it is needed, or whose first page is being written.
      guard let (_, header) = try open(number) else { continue }
      // More commits may have arrived in the previous log before this one was begun.
      if !follows(header) { guard try readLog() else { return false } }
      guard follows(header) else { return false }
      line.starts.append(
        LogStart(number: number, base: line.end, sequence: line.sequence, time: line.time))
      line.number = number
      line.length = 0
      guard try readLog() else { return false }
    }
    try refuseGap(manifest)
    return true
  }

  private func follows(_ header: LogHeader) -> Bool {
    header.kind == .normal && header.previous == line.number
      && header.previousLength == line.length && header.base == line.end
      && header.firstSequence == line.sequence.next
  }

  /// A log and its header; nil if it has no header yet.
  private func open(_ number: FileNumber) throws(EngineError) -> (any File, LogHeader)? {
    let file = try directory.open(number.logName, access: .readOnly)
    let page = try file.read(at: 0, count: LogHeader.length)
    guard case .header(let header) = try LogHeader.read(page.bytes, file: file.name),
      header.number == number
    else { return nil }
    guard header.identity == identity else {
      throw .corrupt(file: file.name, offset: 0, reason: "it belongs to another database")
    }
    return (file, header)
  }

  /// Continues to read the last log. Returns false if the log was replaced.
  private mutating func readLog() throws(EngineError) -> Bool {
    guard let (file, header) = try open(line.number) else { return line.length == 0 }
    if line.length == 0 {
      guard header.base == line.end, header.firstSequence == line.sequence.next else {
        return false
      }
      advance(to: UInt64(LogHeader.length))
    }
    guard header.base.rawValue + line.length == line.end.rawValue else { return false }
    let seal = directory.keyring?.seal(header)
    var wanted = Self.windowLength
    while true {
      let bytes = try file.read(at: line.length, count: wanted)
      var frames = FrameReader(
        bytes, salt: header.salt, from: 0, start: line.length, seal: seal)
      if try take(&frames, file.name) {
        wanted = Self.windowLength
      } else if bytes.count == wanted, frames.mayEndBeyondBytes {
        wanted *= 4
      } else {
        try refuseDamage(frames, file.name)
        return true
      }
    }
  }

  private mutating func advance(to offset: UInt64) {
    line.end = LogPosition(rawValue: line.end.rawValue + (offset - line.length))
    line.length = offset
  }

  /// Takes every commit whose frames are all present. Returns false if there is none.
  private mutating func take(
    _ frames: inout FrameReader, _ name: String
  ) throws(EngineError) -> Bool {
    let before = line.length
    var pieces = CommitPieces()
    while let frame = frames.next() {
      let header = frame.header
      let expected = header.kind == .seal ? line.sequence : line.sequence.next
      guard header.sequence == expected, header.kind != .edit, header.kind != .mark else {
        throw .corrupt(
          file: name, offset: frames.fileOffset(of: frame.offset),
          reason: "a commit is missing before this one")
      }
      switch header.kind {
      case .part:
        pieces.add(frame, of: frames)
        continue
      case .commit, .lastPart:
        commits.append(try pieces.join(with: frame, of: frames, in: name))
        line.sequence = header.sequence
        line.time = header.time
      case .seal, .edit, .mark: line.time = max(line.time, header.time)
      }
      advance(to: frames.fileOffset(of: frames.offset))
    }
    return line.length > before
  }

  /// Throws if a frame vouches for bytes after the end of the sequence, because they existed once.
  private func refuseDamage(_ frames: FrameReader, _ name: String) throws(EngineError) {
    try frames.refuseForgery(in: name)
    guard let claim = frames.furthestClaim(), claim > line.end else { return }
    throw .corrupt(
      file: name, offset: line.length,
      reason: "acknowledged commits from \(line.sequence.next.rawValue) on are damaged")
  }

  /// Throws if files contain commits that were not found in a log.
  private func refuseGap(_ manifest: ManifestState) throws(EngineError) {
    for (index, shard) in manifest.shards.enumerated()
    where shard.flushedThrough > line.sequence {
      throw .corrupt(
        file: line.number.logName, offset: line.length,
        reason: "commits up to \(shard.flushedThrough.rawValue) were flushed from shard \(index),"
          + " and the log ends at \(line.sequence.rawValue)")
    }
  }
}
