// Commits that were read back from logs, and their rows in memtables by shard: what recovery fills
// from the floor on, and what a reader beside a writer goes on filling as commits come.

/// A commit where it lies in its log's bytes, or in bytes of its own when it had several frames.
struct RecoveredCommit: Sendable {
  var bytes: [UInt8]
  var payload: Range<Int>
  var checksum: UInt32
  var operations: Int
  var sequence: SequenceNumber
  var time: Int64
  /// Whether anything in it is of keyed groups.
  var isKeyed = false
  /// Those of them whose keys are not here: their operations are not among the others.
  var unopened: [UInt32] = []
  /// Those of them that keys which are here do not open.
  var forged: [UInt32] = []

  var point: CommitPoint { CommitPoint(sequence: sequence, time: time) }
}

extension RecoveredCommit {
  /// What is in one frame of `log`.
  init(_ frame: FrameReader.Frame, in log: [UInt8]) {
    let header = frame.header
    self.init(
      bytes: frame.opened ?? log, payload: frame.payload, checksum: header.payloadChecksum,
      operations: header.operationCount, sequence: header.sequence, time: header.time)
    if let opened = frame.opened { checksum = crc32c(opened.bytes) }
  }

  /// Puts what is sealed under keys of groups in its place; all frames of the commit are in it.
  ///
  /// - Throws: when a part is malformed, or, unless `takesForged`, was not sealed for the commit.
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

/// The frames of a commit whose last one has not come.
struct CommitPieces: Sendable {
  private var bytes: [UInt8] = []
  /// Where the first of them stands; nil when there are none.
  private(set) var start: Int?

  mutating func add(_ frame: FrameReader.Frame, of frames: FrameReader) {
    if start == nil { start = frame.offset }
    bytes += frames.payload(of: frame)
  }

  /// The commit that ends with `frame`.
  ///
  /// - Throws: when a part of a group was not sealed for it, unless `takesForged`.
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

  /// The same, read from the file called `name`.
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

/// Rows that came with commits and are in no file of rows.
struct RecoveredRows: Sendable {
  /// By shard, oldest memtable first. The last one takes the next rows.
  private(set) var memtables: [[Memtable]]
  private var flushedThrough: [SequenceNumber]
  private let memtableSize: Int
  private let budget: BlockCache?
  /// What one commit brings to each shard; kept, so that no commit has to make another.
  private var shares: [Share]

  private struct Share {
    var rows = 0
    var bytes = 0
  }

  /// - Parameters:
  ///   - flushedThrough: the commits of each shard that are left out.
  ///   - budget: what the memtables' memory counts against, if anything.
  init(flushedThrough: [SequenceNumber], memtableSize: Int, budget: BlockCache?) {
    self.flushedThrough = flushedThrough
    self.memtableSize = memtableSize
    self.budget = budget
    memtables = Array(repeating: [], count: flushedThrough.count)
    shares = Array(repeating: Share(), count: flushedThrough.count)
  }

  /// Adds a commit's rows, which are found once `link()` has been called; all of them, or none when
  /// it throws. A commit's rows of one shard go into one memtable: what was flushed is told by the
  /// commit's sequence alone, so half a commit must never be.
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

  /// Has all rows found.
  func link() {
    for memtable in memtables.joined() { memtable.link() }
  }

  private func isFlushed(_ commit: RecoveredCommit, from shard: Int) -> Bool {
    commit.sequence <= flushedThrough[shard]
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
    if let budget { memtable.charge(to: budget) }
    memtables[shard].append(memtable)
    return memtable
  }

  /// Lets the rows go that are in files by now. Memtables that somebody reads stay as they are:
  /// of one that is flushed in part the rest is copied.
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
  /// A memtable as large with the rows of the commits behind `sequence` alone.
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
      // Of several rows of a key in one commit only the first in order counts.
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
