// Commits read back from logs, with their rows in memtables by shard. Recovery fills these from the
// floor on, and a reader alongside a writer continues to fill them as commits arrive.

/// A commit. It refers to its log's bytes, or has its own bytes if it had several frames.
struct RecoveredCommit: Sendable {
  var bytes: [UInt8]
  var payload: Range<Int>
  var checksum: UInt32
  var operations: Int
  var sequence: SequenceNumber
  var time: Int64
  /// Whether any part of it belongs to keyed groups.
  var isKeyed = false
  /// The groups among them whose keys are missing. Their operations are not among the others.
  var unopened: [UInt32] = []
  /// The groups among them whose available keys do not decrypt their part.
  var forged: [UInt32] = []

  var point: CommitPoint { CommitPoint(sequence: sequence, time: time) }
}

extension RecoveredCommit {
  /// The commit in one frame of `log`.
  init(_ frame: FrameReader.Frame, in log: [UInt8]) {
    let header = frame.header
    self.init(
      bytes: frame.opened ?? log, payload: frame.payload, checksum: header.payloadChecksum,
      operations: header.operationCount, sequence: header.sequence, time: header.time)
    if let opened = frame.opened { checksum = crc32c(opened.bytes) }
  }

  /// Replaces the parts that are encrypted with keys of groups by their plain form. The commit
  /// includes all of its frames.
  ///
  /// - Throws: if a part is malformed, or, unless `takesForged` is set, was not encrypted for this
  ///   commit.
  mutating func openGroups(
    by seal: FileSeal?, takesForged: Bool = false
  ) throws(MalformedBytes) {
    guard let groups = seal?.groups, groups.mayBeUsed else { return }
    let opened = try GroupRecords.open(bytes.bytes.extracting(payload), sequence, by: groups)
    guard let opened else { return }
    guard takesForged || opened.forged.isEmpty else { throw FileSeal.forged }
    (bytes, payload) = (opened.payload, 0..<opened.payload.count)
    checksum = crc32c(bytes.bytes)
    (isKeyed, unopened, forged) = (true, opened.unopened + opened.forged, opened.forged)
  }
}

/// The frames of a commit whose last frame has not arrived.
struct CommitPieces: Sendable {
  private var bytes: [UInt8] = []
  /// Where the first of them starts; nil if there are none.
  private(set) var start: Int?

  mutating func add(_ frame: FrameReader.Frame, of frames: FrameReader) {
    if start == nil { start = frame.offset }
    bytes += frames.payload(of: frame)
  }

  /// The commit that ends with `frame`.
  ///
  /// - Throws: if a part of a group was not encrypted for it, unless `takesForged` is set.
  mutating func join(
    with frame: FrameReader.Frame, of frames: FrameReader, takesForged: Bool = false
  ) throws(MalformedBytes) -> RecoveredCommit {
    var commit = RecoveredCommit(frame, in: frames.bytes)
    if start != nil {
      commit.bytes = bytes + frames.payload(of: frame)
      commit.payload = 0..<commit.bytes.count
      commit.checksum = crc32c(commit.bytes.bytes)
      self = CommitPieces()
    }
    try commit.openGroups(by: frames.seal, takesForged: takesForged)
    return commit
  }

  /// The same, for frames read from the file called `name`.
  mutating func join(
    with frame: FrameReader.Frame, of frames: FrameReader, takesForged: Bool = false,
    in name: String
  ) throws(EngineError) -> RecoveredCommit {
    do throws(MalformedBytes) {
      return try join(with: frame, of: frames, takesForged: takesForged)
    } catch {
      throw .corrupt(
        file: name, offset: frames.fileOffset(of: frame.offset),
        reason: "in its rows: \(error.reason)")
    }
  }
}

/// Rows of commits that are not in any segment.
struct RecoveredRows: Sendable {
  /// By shard, oldest memtable first. The last memtable receives the next rows.
  private(set) var memtables: [[Memtable]]
  private var flushedThrough: [SequenceNumber]
  private let memtableSize: Int
  private let budget: BlockCache?
  /// The share of one commit for each shard. It is kept, so that commits need not allocate another.
  private var shares: [Share]

  private struct Share {
    var rows = 0
    var bytes = 0
  }

  /// - Parameters:
  ///   - flushedThrough: for each shard, the commits up to here are skipped.
  ///   - budget: the cache that the memtables' memory counts against, if any.
  init(flushedThrough: [SequenceNumber], memtableSize: Int, budget: BlockCache?) {
    self.flushedThrough = flushedThrough
    self.memtableSize = memtableSize
    self.budget = budget
    memtables = Array(repeating: [], count: flushedThrough.count)
    shares = Array(repeating: Share(), count: flushedThrough.count)
  }

  /// Adds a commit's rows, which become visible once `link()` was called: all of them, or none if
  /// it throws. All rows that a commit has for one shard go into one memtable. Only the commit's
  /// sequence number tells whether it was flushed, so a commit must never be split.
  mutating func insert(
    _ commit: RecoveredCommit, log: FileNumber
  ) throws(MalformedBytes) {
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
      makeRoom(for: shares[shard], in: shard).begin(commit.sequence, log: log)
    }
    var reader = OperationReader(payload)
    while let operation = try reader.next() {
      let shard = View.shardIndex(of: operation.key, count: memtables.count)
      if isFlushed(commit, from: shard) { continue }
      memtables[shard].last?.add(
        operation.key, commit.sequence, operation.kind, operation.value)
    }
  }

  /// Makes all rows visible.
  func link() {
    for memtable in memtables.joined() { memtable.link() }
  }

  private func isFlushed(_ commit: RecoveredCommit, from shard: Int) -> Bool {
    commit.sequence <= flushedThrough[shard]
  }

  /// The shard's newest memtable, or a new one if that is full.
  private mutating func makeRoom(for share: Share, in shard: Int) -> Memtable {
    if let memtable = memtables[shard].last,
      memtable.hasRoom(forRows: share.rows, bytes: share.bytes)
    {
      return memtable
    }
    let needed = share.bytes + share.rows * Memtable.nodeOverhead
    memtables[shard].last?.link()
    let memtable = Memtable(capacity: max(memtableSize, needed))
    if let budget { memtable.charge(to: budget) }
    memtables[shard].append(memtable)
    return memtable
  }

  /// Releases the rows that are in segments by now. Memtables that readers use stay unchanged: the
  /// rest of a partially flushed one is copied.
  mutating func drop(through flushed: [SequenceNumber]) {
    for (shard, flushed) in flushed.enumerated() where flushed > flushedThrough[shard] {
      flushedThrough[shard] = flushed
      memtables[shard] = memtables[shard].compactMap { memtable in
        guard let sequences = memtable.sequences, sequences.upperBound > flushed else { return nil }
        if sequences.lowerBound > flushed { return memtable }
        return memtable.copy(behind: flushed, chargedTo: budget)
      }
    }
  }
}

extension Memtable {
  /// A memtable of the same size with only the rows of the commits after `sequence`.
  fileprivate func copy(
    behind sequence: SequenceNumber, chargedTo budget: BlockCache?
  ) -> Memtable {
    let copy = Memtable(capacity: capacity)
    if let budget { copy.charge(to: budget) }
    guard let sequences, let log = firstLog, sequences.upperBound > sequence else { return copy }
    copy.begin(sequence.next, log: log)
    copy.begin(sequences.upperBound, log: log)
    var previous = 0
    var node = node(after: 0)
    while node != 0 {
      // Of several rows of a key in one commit, only the first in order counts.
      let isHidden =
        previous != 0 && haveEqualKeys(node, previous)
        && self.sequence(of: node) == self.sequence(of: previous)
      if self.sequence(of: node) > sequence, !isHidden {
        copy.add(key(of: node), self.sequence(of: node), kind(of: node), value(of: node))
      }
      previous = node
      node = self.node(after: node)
    }
    copy.link()
    return copy
  }
}
