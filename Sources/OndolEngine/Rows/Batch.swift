// The contents of a commit: rows to write and to delete. They are written directly into the bytes
// that go to the log, so that committing copies nothing. Stage 2 of the write path ends with a
// batch, and stage 3 begins with it.
//
// A row's key begins with its keyspace: four bytes in big-endian order. The layer above assigns
// keyspaces. Keyspaces whose numbers are equal above the low twelve bits are kept together in one
// shard.
//
// A row may need to contain the commit's own sequence number or time, which are unknown before the
// commit is sequenced. Such positions are stamps of eight bytes each. The sequencer fills them in,
// and readers never do.

/// The position of a commit in the total order of all commits. The first is 1.
package struct SequenceNumber: RawRepresentable, Sendable, Hashable, Comparable {
  package var rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  package static var zero: Self { Self(rawValue: 0) }
  package var next: Self { Self(rawValue: rawValue + 1) }
}

/// What an acknowledged commit survives.
package enum Durability: Sendable, Hashable {
  /// Nothing beyond the process itself: the frame reaches the system together with the next commit
  /// of a stronger durability, or with a flush.
  case memory
  /// A kill of the process, but not a power cut.
  case process
  /// A kill of the process, and a power cut after this many microseconds.
  case periodic(microseconds: Int64)
  /// A power cut.
  case power
}

/// The effect of an operation in a batch, or of a row in a memtable.
enum RowKind: UInt8, Sendable {
  case put = 1
  case delete = 2
  /// In segments only: a put whose value is in a value file. The row contains a pointer to it.
  case valuePointer = 3
}

/// A commit's position in the total order of all commits, and its time in microseconds since 1970.
/// Together they distinguish it from every other commit, including one with the same number that a
/// power cut erased.
package struct CommitPoint: Sendable, Hashable {
  package var sequence: SequenceNumber
  package var time: Int64

  package init(sequence: SequenceNumber, time: Int64) {
    self.sequence = sequence
    self.time = time
  }
}

/// The result of a commit.
package struct CommitReceipt: Sendable, Equatable {
  package var sequence: SequenceNumber
  /// Microseconds since 1970, later than the time of every earlier commit.
  package var time: Int64
}

/// The encoding of a stamp.
package enum StampForm: Sendable {
  /// The sequence number, little-endian.
  case sequence
  /// The commit time in microseconds, two's complement, little-endian.
  case time
  /// The commit time in microseconds, sign bit flipped, big-endian: sorts as bytes.
  case orderedTime
  /// The complement of `orderedTime`: sorts as bytes, latest first.
  case descendingTime
}

/// A list of changes that take effect together or not at all.
package struct Batch: Sendable {
  struct Stamp: Sendable {
    var offset: Int
    var form: StampForm
  }

  /// The keys from `lower` up to but not including `upper`; an empty bound is no bound.
  struct GuardedRange: Sendable {
    var lower: [UInt8]
    var upper: [UInt8]
  }

  /// The length of the keyspace at the start of every key.
  static let keyspaceLength = KeyHead.keyspaceLength

  /// The kind of an annotation. The kinds of rows are in `RowKind`.
  static let annotationKind: UInt8 = 4
  /// The kind of a keyed group's annotation.
  static let groupAnnotationKind: UInt8 = 6

  /// Space for a frame's header, then the payload. Operations are encoded as `kind, key length,
  /// key[, value length, value]`, with lengths as varints. An annotation is encoded as `kind,
  /// length, bytes`, and one of a keyed group as `kind, group, length, bytes`.
  private(set) var frame: [UInt8] = []
  /// The payload bytes that belong to keyed groups.
  private(set) var keyed: [(group: UInt32, bytes: Int)] = []
  /// The payload bytes that do not become rows.
  private var annotationLength = 0
  /// The groups that have an annotation; nil for data without a keyed group.
  private var annotated: [UInt32?] = []
  package private(set) var operationCount = 0
  private var deletionCount = 0
  private(set) var stamps: [Stamp] = []
  /// The rows that must not have changed after `basis`.
  private(set) var guardedKeys: [[UInt8]] = []
  /// The ranges in which no row may have been added, changed or removed after `basis`.
  private(set) var guardedRanges: [GuardedRange] = []

  /// The groups of keyspaces that the batch writes to.
  private(set) var groups = KeyspaceGroups()

  /// The snapshot that this batch was derived from. It is required if anything is guarded.
  package var basis: SequenceNumber?

  /// The ticket of the waiting caller, if the caller may stop waiting before the batch is
  /// committed.
  package var ticket: CommitTicket?

  /// Passed to followers of the database together with the commit.
  package var note: (any AnyObject & Sendable)?

  package init() {}

  var isGuarded: Bool { !guardedKeys.isEmpty || !guardedRanges.isEmpty }
  package var isEmpty: Bool { operationCount == 0 }
  /// Whether it removes rows that it does not name individually.
  package var dropsKeyspaces = false

  /// Whether it removes at least as many rows as it adds. Such a batch may use the reserved space
  /// when no other space is left.
  package var freesSpace: Bool {
    dropsKeyspaces || deletionCount > 0 && 2 * deletionCount >= operationCount
  }
  /// The length of its payload.
  package var payloadLength: Int { max(0, frame.count - FrameHeader.length) }
  /// The length of the payload in a log with encrypted groups, without frame headers.
  var sealedPayloadLength: Int {
    keyed.reduce(payloadLength) { $0 + GroupRecord.overhead(of: $1.bytes, in: $1.group) }
  }
  /// The length of its rows in the log.
  package var rowsLength: Int { payloadLength - annotationLength }

  /// Reserves space for this many more bytes.
  package mutating func reserve(bytes: Int) {
    frame.reserveCapacity(frame.count + bytes)
  }

  /// Sets the row at `key` to `value`. The last operation on a key wins.
  ///
  /// `stamps` are positions in `value` of eight bytes each, which receive the commit's number or
  /// time.
  package mutating func put(
    _ key: RawSpan, _ value: RawSpan, stamps valueStamps: [(offset: Int, form: StampForm)] = [],
    keyStamps: [(offset: Int, form: StampForm)] = []
  ) {
    begin(with: key.byteCount + value.byteCount)
    let start = frame.count
    appendKey(.put, key, keyStamps)
    frame.appendVarint(value.byteCount)
    note(valueStamps, within: value)
    frame.append(value)
    if let group = KeyedGroups.group(of: key) { note(group, from: start) }
  }

  /// Removes the row at `key`, which need not exist.
  package mutating func delete(
    _ key: RawSpan, keyStamps: [(offset: Int, form: StampForm)] = []
  ) {
    begin(with: key.byteCount)
    let start = frame.count
    appendKey(.delete, key, keyStamps)
    deletionCount += 1
    if let group = KeyedGroups.group(of: key) { note(group, from: start) }
  }

  /// Adds data that is stored only in the log, alongside the rows, for readers of the commit
  /// history. It may be called once. `stamps` are positions in it, as in a value.
  ///
  /// - Parameter group: the keyed group whose key encrypts it. Each group may have one more
  ///   annotation.
  package mutating func annotate(
    _ bytes: RawSpan, stamps annotationStamps: [(offset: Int, form: StampForm)] = [],
    of group: UInt32? = nil
  ) {
    let isFirst = annotated.allSatisfy { $0 != group }
    precondition(isFirst, "a commit has one annotation")
    annotated.append(group)
    begin(with: bytes.byteCount)
    let start = frame.count
    if let group {
      frame.append(Self.groupAnnotationKind)
      frame.appendVarint(UInt64(group))
    } else {
      frame.append(Self.annotationKind)
    }
    frame.appendVarint(bytes.byteCount)
    note(annotationStamps, within: bytes)
    frame.append(bytes)
    annotationLength += frame.count - start
    if let group { note(group, from: start) }
  }

  /// Makes the commit fail with `.stale` if the row at `key` was changed after `basis`.
  package mutating func guardUnchanged(_ key: RawSpan) {
    guardedKeys.append(key.array)
  }

  /// Makes the commit fail with `.stale` if any row with a key from `lower` up to but not including
  /// `upper` (no bound if empty) was written or deleted after `basis`. This includes rows that did
  /// not exist before. The range must lie in one shard.
  package mutating func guardUnchanged(from lower: RawSpan, to upper: RawSpan) {
    guardedRanges.append(GuardedRange(lower: lower.array, upper: upper.array))
  }

  /// Fills in the stamps and returns the bytes. The batch is empty afterwards.
  mutating func takeFrame(stampedWith sequence: SequenceNumber, time: Int64) -> [UInt8] {
    // An empty commit also has a frame.
    begin(with: 0)
    var frame = frame
    self.frame = []
    for stamp in stamps {
      frame.overwriteStamp(stamp.form, at: stamp.offset, sequence, time: time)
    }
    return frame
  }

  /// Reserves space for the header, and for the whole frame of a commit of one row, because most
  /// have no more. In a long batch it reserves space for the next operation.
  private mutating func begin(with length: Int) {
    let end = max(frame.count, FrameHeader.length) + length + 2 * Varint.maximumLength + 8
    guard frame.isEmpty else {
      if end > frame.capacity, end >= FrameMemory.leastCapacity {
        frame = FrameMemory.enlarge(frame, to: end)
      }
      return
    }
    frame.reserveCapacity(end)
    frame.append(contentsOf: repeatElement(0, count: FrameHeader.length))
  }

  private mutating func appendKey(
    _ kind: RowKind, _ key: RawSpan, _ keyStamps: [(offset: Int, form: StampForm)]
  ) {
    precondition(key.byteCount >= Self.keyspaceLength, "a key begins with its keyspace")
    operationCount += 1
    groups.insert(UInt32(keyHead(key) >> 44))
    frame.append(kind.rawValue)
    frame.appendVarint(key.byteCount)
    note(keyStamps, within: key)
    frame.append(key)
  }

  /// Records that the bytes added from `start` on belong to a keyed group.
  private mutating func note(_ group: UInt32, from start: Int) {
    let length = frame.count - start
    if let place = keyed.firstIndex(where: { $0.group == group }) {
      keyed[place].bytes += length
    } else {
      keyed.append((group, length))
    }
  }

  private mutating func note(_ places: [(offset: Int, form: StampForm)], within bytes: RawSpan) {
    for place in places {
      precondition(place.offset >= 0 && place.offset + 8 <= bytes.byteCount, "a stamp outside")
      stamps.append(Stamp(offset: frame.count + place.offset, form: place.form))
    }
  }
}

extension [UInt8] {
  /// Writes a commit's number or time over the eight bytes at a position.
  @inline(__always)
  mutating func overwriteStamp(
    _ form: StampForm, at offset: Int, _ sequence: SequenceNumber, time: Int64
  ) {
    switch form {
    case .sequence: overwriteLittleEndian(sequence.rawValue, at: offset)
    case .time: overwriteLittleEndian(time, at: offset)
    case .orderedTime: overwriteLittleEndian((time ^ .min).byteSwapped, at: offset)
    case .descendingTime: overwriteLittleEndian((~(time ^ .min)).byteSwapped, at: offset)
    }
  }
}

/// A few groups of keyspaces, numbered by their keyspaces' numbers without the low twelve bits.
/// Usually there is only one, which needs no memory allocation.
struct KeyspaceGroups: Sendable {
  private(set) var first: UInt32?
  private(set) var others: [UInt32] = []

  mutating func insert(_ group: UInt32) {
    if first == group { return }
    if first == nil {
      first = group
    } else if !others.contains(group) {
      others.append(group)
    }
  }

  /// The shards of the groups, without duplicates, out of `count` shards.
  func forEachShard<E: Error>(of count: Int, _ body: (Int) throws(E) -> Void) throws(E) {
    guard let first else { return }
    let shard = Int(first) % count
    try body(shard)
    if others.isEmpty { return }
    for other in Set(others.map { Int($0) % count }).subtracting([shard]) { try body(other) }
  }
}
