// The commits in damaged logs. Every complete frame is used, including those after damage. The
// sequence numbers, which have no gaps, reveal what is missing in between.

/// The commits in the logs.
struct SalvageLogs {
  /// A source for each log, newest first.
  private(set) var sources: [any SalvageSource] = []
  /// The last commit found, and its time.
  private(set) var sequence: SequenceNumber
  private(set) var time: Int64
  private let directory: any Directory
  private let losses: SalvageLosses
  /// The manifest's entries for logs, whose header may be lost.
  private let named: [FileNumber: NamedLog]
  /// Commits up to here are in segments.
  private let flushed: SequenceNumber

  /// - Parameters:
  ///   - start: the commit before the first log, if known.
  ///   - flushed: the commit up to which all shards are flushed.
  ///   - named: the manifest's entries for logs.
  init(
    _ names: [String], after start: SequenceNumber?, flushed: SequenceNumber,
    named: [FileNumber: NamedLog], in directory: any Directory, _ losses: SalvageLosses
  ) {
    self.named = named
    self.directory = directory
    self.losses = losses
    self.flushed = flushed
    sequence = start ?? .zero
    time = 0
    var isFirst = start == nil
    for number in names.compactMap({ FileNumber.parse($0, prefix: "LOG-") }).sorted() {
      do throws(EngineError) {
        try read(number, &isFirst)
      } catch {
        losses.note(SalvageLoss(error, in: number.logName, reach: .everything))
      }
    }
  }

  private mutating func read(_ number: FileNumber, _ isFirst: inout Bool) throws(EngineError) {
    let file = try directory.open(number.logName, access: .readOnly)
    let bytes = try file.read(at: 0, count: Int(clamping: min(try file.size(), 4 << 30)))
    let page = bytes.bytes.extracting(first: min(LogHeader.length, bytes.count))
    guard let salt = try salt(of: number, page) else { return }
    if bytes.count < LogHeader.length {
      losses.note(
        SalvageLoss(
          file: number.logName, offset: UInt64(bytes.count), "the log ends within its header",
          reach: .everything))
    }
    var commits: [RecoveredCommit] = []
    var pieces = SalvagePieces()
    var place = LogHeader.length
    let seal = directory.keyring?.seal(log: number, salt: salt)
    while let frame = Self.nextFrame(bytes, salt: salt, seal, from: place) {
      place = frame.offset + frame.header.frameLength
      if frame.header.kind == .seal {
        noteGap(before: frame.header.sequence.next, number, frame.offset)
      }
      guard var commit = pieces.join(frame, bytes) else { continue }
      do throws(MalformedBytes) {
        try commit.openGroups(by: seal)
      } catch {
        losses.note(
          SalvageLoss(
            file: number.logName, offset: UInt64(frame.offset), "in its rows: \(error.reason)",
            reach: .everything))
        continue
      }
      // The loss of a part before the others would be detected here.
      if frame.header.kind == .lastPart, (try? commit.operationSizes()) == nil { continue }
      // A replacement log contains the commits of older logs.
      if commit.sequence <= sequence, !isFirst { continue }
      if isFirst { sequence = SequenceNumber(rawValue: commit.sequence.rawValue - 1) }
      isFirst = false
      noteGap(before: commit.sequence, number, frame.offset)
      sequence = commit.sequence
      time = max(time, commit.time)
      commits.append(commit)
    }
    noteRest(bytes, salt, place, number)
    sources.insert(try SalvageMemtable(commits, number), at: 0)
  }

  /// The salt of a log that begins with `page`, from its header or else from the manifest. It is
  /// nil if nothing can be read.
  private func salt(of number: FileNumber, _ page: RawSpan) throws(EngineError) -> UInt64? {
    let known = named[number]?.salt
    switch try LogHeader.read(page, file: number.logName) {
    // Before a log is used, the file may have been another log.
    case .header(let header): return header.number == number ? header.salt : known
    case .blank: return known
    case .unreadable:
      losses.note(
        SalvageLoss(
          file: number.logName, offset: 0, "the log's header is damaged",
          reach: known == nil ? .everything : .nothing))
      return known
    }
  }

  /// The first complete frame at or after `place`.
  private static func nextFrame(
    _ bytes: [UInt8], salt: UInt64, _ seal: FileSeal?, from place: Int
  ) -> FrameReader.Frame? {
    var frames = FrameReader(bytes, salt: salt, from: place, seal: seal)
    if let frame = frames.next() { return frame }
    var next = (place + 7) & ~7
    let all = bytes.bytes
    while next + FrameHeader.length <= bytes.count {
      if all.byte(at: next + 4) != 0, all.byte(at: next + 6) == UInt8(FrameHeader.version) {
        frames = FrameReader(bytes, salt: salt, from: next, seal: seal)
        if let frame = frames.next() { return frame }
      }
      next += 8
    }
    return nil
  }

  private func noteGap(before next: SequenceNumber, _ number: FileNumber, _ offset: Int) {
    let missing = max(sequence, flushed).next
    guard missing < next else { return }
    losses.note(
      SalvageLoss(
        file: number.logName, offset: UInt64(offset),
        "commits \(missing.rawValue) to \(next.rawValue - 1) are missing before this one",
        reach: .everything))
  }

  /// Records what follows the last complete frame.
  private func noteRest(
    _ bytes: [UInt8], _ salt: UInt64, _ end: Int, _ number: FileNumber
  ) {
    let frames = FrameReader(bytes, salt: salt, from: end)
    guard !frames.isBlankFromHere() else { return }
    losses.note(
      SalvageLoss(
        file: number.logName, offset: UInt64(end),
        "bytes that hold no whole commit: what was never acknowledged, or damage",
        reach: .nothing))
  }
}

/// Joins the frames of commits with several frames.
private struct SalvagePieces {
  private var bytes: [UInt8] = []
  private var sequence: SequenceNumber?
  private var end = 0

  mutating func join(_ frame: FrameReader.Frame, _ log: [UInt8]) -> RecoveredCommit? {
    let header = frame.header
    defer { end = frame.offset + header.frameLength }
    let continues = sequence == header.sequence && frame.offset == end
    var commit = RecoveredCommit(frame, in: log)
    let payload = (frame.opened ?? log)[frame.payload]
    switch header.kind {
    case .commit:
      sequence = nil
      return header.sequence > .zero ? commit : nil
    case .part:
      // Only a first part follows another commit. A later part has lost its beginning.
      bytes = continues ? bytes + payload : Array(payload)
      sequence = header.sequence
      return nil
    case .lastPart:
      defer { sequence = nil }
      guard continues else { return nil }
      commit.bytes = bytes + payload
      commit.payload = 0..<commit.bytes.count
      return commit
    case .seal, .edit, .mark:
      return nil
    }
  }
}

extension RecoveredCommit {
  /// The number of its operations, and the total length of their keys and values. Throws if the
  /// frames state a different number of operations.
  fileprivate func operationSizes() throws(MalformedBytes) -> (count: Int, bytes: Int) {
    var reader = OperationReader(bytes.bytes.extracting(payload))
    var (count, size) = (0, 0)
    while let operation = try reader.next() {
      count += 1
      size += operation.key.byteCount + operation.value.byteCount
    }
    guard count == operations || !unopened.isEmpty else {
      throw MalformedBytes(at: 0, "operations are missing")
    }
    return (count, size)
  }
}

/// The rows of one log in key order, the newest of each key.
private final class SalvageMemtable: SalvageSource {
  private let memtable: Memtable
  private let cursor: MemtableCursor

  init(_ commits: [RecoveredCommit], _ log: FileNumber) throws(EngineError) {
    var size = 4096
    do throws(MalformedBytes) {
      for commit in commits {
        let (count, bytes) = try commit.operationSizes()
        size += bytes + count * Memtable.nodeOverhead
      }
      memtable = Memtable(capacity: size)
      for commit in commits {
        memtable.begin(commit.sequence, log: log)
        var reader = OperationReader(commit.bytes.bytes.extracting(commit.payload))
        while let operation = try reader.next() {
          memtable.add(operation.key, commit.sequence, operation.kind, operation.value)
        }
      }
    } catch {
      throw .corrupt(file: log.logName, offset: 0, reason: "in its rows: \(error.reason)")
    }
    memtable.link()
    cursor = MemtableCursor(memtable, upTo: SequenceNumber(rawValue: .max))
    cursor.seekToFirst()
  }

  var key: [UInt8]? {
    let cursor = cursor
    return cursor.isValid ? cursor.key.array : nil
  }

  var candidate: SalvageCandidate {
    let cursor = cursor
    return SalvageCandidate(kind: cursor.kind, bytes: cursor.value.array, earliest: cursor.commit)
  }

  func next() { cursor.next() }
}
