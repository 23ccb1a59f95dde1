// From files to memory: what opening does before the first read. Logs from the manifest's floor on
// are read in order and their rows put into memtables; a torn tail is told from damage as LogFormat
// says.
//
// After an unclean end nothing that was read is trusted to be on the device. Readers need not wait
// for that, but whoever writes does, see LogReplacement.

/// What recovery found: where the line of commits ends, and the logs it is in.
struct RecoveredLog: Sendable {
  var sequence: SequenceNumber
  var time: Int64
  var end: LogPosition
  /// The last log and its length.
  var number: FileNumber
  var length: UInt64
  /// The logs from the floor on.
  var starts: [LogStart]
  /// What is kept of those before.
  var history: History?
}

/// A commit where it lies in its log's bytes, or in bytes of its own when it had several frames.
struct RecoveredCommit: Sendable {
  var bytes: [UInt8]
  var payload: Range<Int>
  var checksum: UInt32
  var operations: Int
  var sequence: SequenceNumber
  var time: Int64
}

/// Reads logs back into memtables.
struct Recovery {
  private let directory: any Directory
  private let identity: DatabaseIdentity
  private let manifest: ManifestState
  private let memtableSize: Int

  /// Rows by shard, oldest memtable first.
  private(set) var memtables: [[Memtable]]
  private var sequence: SequenceNumber
  private var time: Int64
  private var end: LogPosition
  private var last = FileNumber.zero
  private var length: UInt64 = 0
  private var starts: [LogStart] = []
  /// Whole commits from the floor on.
  private var commits: [RecoveredCommit] = []
  /// Pieces of a commit whose last frame has not come.
  private var pieces: [UInt8] = []
  private var piecesStart: Int?
  private var isSealed = false
  private var tear: Tear?

  /// What one commit brings to each shard; kept, so that no commit has to make another.
  private var shares: [Share]

  /// Where the first frame that cannot be read stands.
  private struct Tear {
    var file: String
    var offset: UInt64
    var position: LogPosition
  }

  init(
    directory: any Directory, identity: DatabaseIdentity, manifest: ManifestState,
    memtableSize: Int
  ) {
    self.directory = directory
    self.identity = identity
    self.manifest = manifest
    self.memtableSize = memtableSize
    memtables = Array(repeating: [], count: manifest.shards.count)
    shares = Array(repeating: Share(), count: manifest.shards.count)
    sequence = manifest.floor.sequence
    time = manifest.floor.time
    end = manifest.floor.base
  }

  /// Whether the database was closed in good order, and its logs can stay as they are.
  var isClean: Bool { isSealed && tear == nil && last == manifest.newestLog }

  /// What is to be done when they cannot.
  var replacement: LogReplacement {
    LogReplacement(
      commits: commits, sequence: sequence, time: time, end: end,
      memtables: Array(memtables.joined()))
  }

  var recovered: RecoveredLog {
    RecoveredLog(
      sequence: sequence, time: time, end: end, number: last, length: length, starts: starts,
      history: manifest.history)
  }

  // MARK: - Reading

  /// Bytes up to which a log is read at once.
  static let smallLog: UInt64 = 64 << 10

  /// Reads all logs among `names` from the floor on.
  mutating func replay(_ names: [String]) throws(EngineError) {
    let numbers = names.compactMap { FileNumber.parse($0, prefix: "LOG-") }
      .filter { $0 >= manifest.floor.number }.sorted()
    for needed in [manifest.floor.number, manifest.newestLog] where !numbers.contains(needed) {
      throw .corrupt(file: needed.logName, offset: 0, reason: "the log is missing")
    }
    for number in numbers { try read(number) }
    for memtable in memtables.joined() { memtable.link() }
    if let tear { end = tear.position }
    for (index, shard) in manifest.shards.enumerated() where shard.flushedThrough > sequence {
      throw .corrupt(
        file: last.logName, offset: length,
        reason: "commits up to \(shard.flushedThrough.rawValue) were flushed from shard \(index),"
          + " and the log ends at \(sequence.rawValue)")
    }
  }

  private mutating func read(_ number: FileNumber) throws(EngineError) {
    let name = number.logName
    let file = try directory.open(name, access: .readOnly)
    guard let size = Int(exactly: try file.size()), size <= 4 << 30 else {
      throw .corrupt(file: name, offset: 0, reason: "it is too long for a log")
    }
    let beginning = try file.read(at: 0, count: min(Int(Self.smallLog), size))
    let page = beginning.bytes.extracting(first: min(LogHeader.length, beginning.count))
    switch try LogHeader.read(page, file: name) {
    case .blank:
      // A spare that was never used, unless a later log has something to say about it.
      if number == manifest.floor.number { beginFloor(number) }
      tearHere(name, at: 0, position: end)
      return
    case .unreadable:
      if number == manifest.floor.number { beginFloor(number) }
      tearHere(name, at: 0, position: end)
    case .header(let header):
      guard header.identity == identity else {
        throw .corrupt(file: name, offset: 0, reason: "it belongs to another database")
      }
      guard header.number == number else {
        // What stood here in an older log: this one's bytes never arrived.
        if number == manifest.floor.number { beginFloor(number) }
        tearHere(name, at: 0, position: end)
        return
      }
      let bytes =
        size <= beginning.count ? beginning : try file.read(at: 0, count: size)
      var frames = FrameReader(bytes, salt: header.salt, from: LogHeader.length)
      if try connect(header, name) { try take(&frames, header, name) }
      try refuseDamage(frames)
    }
  }

  /// Whether the log follows what was read so far; a tear before it is noted otherwise.
  private mutating func connect(
    _ header: LogHeader, _ name: String
  ) throws(EngineError) -> Bool {
    guard tear == nil else { return false }
    if header.number == manifest.floor.number {
      beginFloor(header.number)
    } else {
      guard header.kind == .normal, header.previous == last else {
        // Only logs that the manifest knows were ever synced, and are there for sure.
        if header.number > manifest.newestLog {
          tearHere(name, at: 0, position: end)
          return false
        }
        throw .corrupt(file: name, offset: 0, reason: "the log before it is missing")
      }
      guard header.previousLength == length else {
        // The log before ends early: its tail was lost, or was never written.
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

  /// Takes every sound frame.
  private mutating func take(
    _ frames: inout FrameReader, _ header: LogHeader, _ name: String
  ) throws(EngineError) {
    let base = header.base.rawValue
    while !isSealed, let frame = frames.next() {
      try take(frame, frames, name)
    }
    let stop = piecesStart ?? frames.offset
    if piecesStart != nil || !(isSealed || frames.isBlankFromHere()) {
      tearHere(name, at: UInt64(stop), position: LogPosition(rawValue: base + UInt64(stop)))
    }
    length = UInt64(stop)
    end = LogPosition(rawValue: base + UInt64(stop))
  }

  private mutating func take(
    _ frame: FrameReader.Frame, _ frames: FrameReader, _ name: String
  ) throws(EngineError) {
    let header = frame.header
    let isCommit = header.kind != .seal
    guard header.sequence == (isCommit ? sequence.next : sequence), header.kind != .edit else {
      throw .corrupt(
        file: name, offset: UInt64(frame.offset), reason: "a commit is missing before this one")
    }
    switch header.kind {
    case .seal, .edit:
      isSealed = true
      time = max(time, header.time)
    case .part:
      if piecesStart == nil { piecesStart = frame.offset }
      pieces += frames.bytes[frame.payload]
    case .commit, .lastPart:
      let commit = join(frame, frames)
      do throws(MalformedBytes) {
        try insert(commit)
      } catch {
        throw .corrupt(
          file: name, offset: UInt64(frame.offset), reason: "in its rows: \(error.reason)")
      }
      commits.append(commit)
      sequence = header.sequence
      time = header.time
    }
  }

  /// The commit that ends with `frame`.
  private mutating func join(_ frame: FrameReader.Frame, _ frames: FrameReader) -> RecoveredCommit {
    let header = frame.header
    var commit = RecoveredCommit(
      bytes: frames.bytes, payload: frame.payload, checksum: header.payloadChecksum,
      operations: header.operationCount, sequence: header.sequence, time: header.time)
    guard piecesStart != nil else { return commit }
    commit.bytes = pieces + frames.bytes[frame.payload]
    commit.payload = 0..<commit.bytes.count
    commit.checksum = crc32c(commit.bytes.bytes)
    pieces = []
    piecesStart = nil
    return commit
  }

  /// Throws when a later frame vouches for bytes at the tear.
  private func refuseDamage(_ frames: FrameReader) throws(EngineError) {
    let position = tear?.position ?? end
    guard let claim = frames.furthestClaim(), claim > position else { return }
    throw .corrupt(
      file: tear?.file ?? last.logName, offset: tear?.offset ?? length,
      reason: "acknowledged commits from \(sequence.next.rawValue) on are damaged")
  }

  // MARK: - Rows

  /// What a commit brings to one shard.
  private struct Share {
    var rows = 0
    var bytes = 0
  }

  /// A commit's rows of one shard go into one memtable: what was flushed is told by the commit's
  /// sequence alone, so half a commit must never be.
  private mutating func insert(_ commit: RecoveredCommit) throws(MalformedBytes) {
    let payload = commit.bytes.bytes.extracting(commit.payload)
    for shard in shares.indices { shares[shard] = Share() }
    var sizes = OperationReader(payload)
    while let operation = try sizes.next() {
      let shard = View.shardIndex(of: operation.key, count: memtables.count)
      shares[shard].rows += 1
      shares[shard].bytes += operation.key.byteCount + operation.value.byteCount
    }
    for shard in shares.indices where shares[shard].rows > 0 {
      if isFlushed(commit, from: shard) { continue }
      makeRoom(for: shares[shard], in: shard).begin(commit.sequence, log: last)
    }
    var reader = OperationReader(payload)
    while let operation = try reader.next() {
      let shard = View.shardIndex(of: operation.key, count: memtables.count)
      if isFlushed(commit, from: shard) { continue }
      memtables[shard].last?.add(
        operation.key, commit.sequence, operation.kind, operation.value)
    }
  }

  private func isFlushed(_ commit: RecoveredCommit, from shard: Int) -> Bool {
    commit.sequence <= manifest.shards[shard].flushedThrough
  }

  /// The shard's newest memtable, a new one where the other is full.
  private mutating func makeRoom(for share: Share, in shard: Int) -> Memtable {
    if let memtable = memtables[shard].last,
      memtable.hasRoom(forRows: share.rows, bytes: share.bytes)
    {
      return memtable
    }
    let needed = share.bytes + share.rows * Memtable.nodeOverhead
    memtables[shard].last?.link()
    let memtable = Memtable(capacity: max(memtableSize, needed))
    memtables[shard].append(memtable)
    return memtable
  }
}
