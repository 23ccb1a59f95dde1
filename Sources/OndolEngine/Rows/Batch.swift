// What a commit is made of: rows to put and to delete, written straight into the bytes that go to
// the log, so that committing copies nothing. Stage 2 of the write path ends with a batch; stage 3
// begins with it.
//
// A row's key begins with its keyspace, four bytes, high byte first; the floor above decides what
// keyspaces are. Keyspaces whose numbers agree above the low twelve bits are kept together in one
// shard.
//
// A row may need to hold the commit's own sequence number or time, which nobody knows before the
// commit is sequenced. Such places are stamps: eight bytes each, filled in by the sequencer, never
// by readers.

/// The position of a commit in the one order of all commits. The first is 1.
package struct SequenceNumber: RawRepresentable, Sendable, Hashable, Comparable {
  package var rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  package static var zero: Self { Self(rawValue: 0) }
  package var next: Self { Self(rawValue: rawValue + 1) }
}

/// What a commit survives once it has been acknowledged.
package enum Durability: Sendable, Hashable {
  /// The process's own life only: the frame reaches the system with the next stronger commit or
  /// flush.
  case memory
  /// The process being killed, but not a power cut.
  case process
  /// The process being killed, and a power cut that comes so many microseconds later.
  case periodic(microseconds: Int64)
  /// A power cut.
  case power
}

/// What an operation in a batch or a row in a memtable does.
enum RowKind: UInt8, Sendable {
  case put = 1
  case delete = 2
  /// In segments only: a put whose value is in a value file; the row has a pointer to it.
  case valuePointer = 3
}

/// A commit's place in the one order of all commits, and its time in microseconds since 1970: what
/// tells it from every other commit, also from one that a power cut took and that had its number.
package struct CommitPoint: Sendable, Hashable {
  package var sequence: SequenceNumber
  package var time: Int64

  package init(sequence: SequenceNumber, time: Int64) {
    self.sequence = sequence
    self.time = time
  }
}

/// What a commit became.
package struct CommitReceipt: Sendable, Equatable {
  package var sequence: SequenceNumber
  /// Microseconds since 1970, later than that of every commit before.
  package var time: Int64
}

/// How a stamp is written.
package enum StampForm: Sendable {
  /// The sequence number, low byte first.
  case sequence
  /// The commit time in microseconds, two's complement, low byte first.
  case time
  /// The commit time in microseconds, sign bit flipped, high byte first: ordered as bytes.
  case orderedTime
  /// The complement of `orderedTime`: ordered as bytes, latest first.
  case descendingTime
}

/// A list of changes that happen together or not at all.
package struct Batch: Sendable {
  struct Stamp: Sendable {
    var offset: Int
    var form: StampForm
  }

  /// Keys from `lower` on and before `upper`; no bound where that is empty.
  struct GuardedRange: Sendable {
    var lower: [UInt8]
    var upper: [UInt8]
  }

  /// Bytes of the keyspace at the front of every key.
  static let keyspaceLength = KeyHead.keyspaceLength

  /// The kind of an annotation, where those of rows are `RowKind`.
  static let annotationKind: UInt8 = 4
  /// The kind of a keyed group's annotation.
  static let groupAnnotationKind: UInt8 = 6

  /// Room for a frame's header, then the payload: operations follow each other as
  /// `kind, key length, key[, value length, value]`, lengths as varints; an annotation as
  /// `kind, length, bytes`, and one of a keyed group as `kind, group, length, bytes`.
  private(set) var frame: [UInt8] = []
  /// Bytes of the payload that are of keyed groups.
  private(set) var keyed: [(group: UInt32, bytes: Int)] = []
  /// Bytes of the payload that become no rows.
  private var annotationLength = 0
  /// What has an annotation: nil for what is of no keyed group.
  private var annotated: [UInt32?] = []
  package private(set) var operationCount = 0
  private var deletionCount = 0
  private(set) var stamps: [Stamp] = []
  /// The rows that must not have changed after `basis`.
  private(set) var guardedKeys: [[UInt8]] = []
  /// The ranges in which no row must have come, changed or gone after `basis`.
  private(set) var guardedRanges: [GuardedRange] = []

  /// The groups of keyspaces written to.
  private(set) var groups = KeyspaceGroups()

  /// The snapshot this batch was derived from. Required when anything is guarded.
  package var basis: SequenceNumber?

  /// Who waits for it, where somebody may go before it is committed.
  package var ticket: CommitTicket?

  /// What whoever follows the database is told of the commit.
  package var note: (any AnyObject & Sendable)?

  package init() {}

  var isGuarded: Bool { !guardedKeys.isEmpty || !guardedRanges.isEmpty }
  package var isEmpty: Bool { operationCount == 0 }
  /// Whether rows go because of it that it does not name one by one.
  package var dropsKeyspaces = false

  /// Whether it takes out at least as many rows as it puts in: such a batch may use the space that
  /// is kept for when there is no other.
  package var freesSpace: Bool {
    dropsKeyspaces || deletionCount > 0 && 2 * deletionCount >= operationCount
  }
  /// Bytes of its payload.
  package var payloadLength: Int { max(0, frame.count - FrameHeader.length) }
  /// Bytes that the payload takes in a log where groups are sealed, without frame headers.
  var sealedPayloadLength: Int {
    keyed.reduce(payloadLength) { $0 + GroupRecord.overhead(of: $1.bytes, in: $1.group) }
  }
  /// Bytes of its rows in the log.
  package var rowsLength: Int { payloadLength - annotationLength }

  /// Makes room for so many bytes more.
  package mutating func reserve(bytes: Int) {
    frame.reserveCapacity(frame.count + bytes)
  }

  /// Sets the row at `key` to `value`. A later operation on the same key wins.
  ///
  /// `stamps` are places in `value`, eight bytes each, which get the commit's number or time.
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

  /// Adds what is to stand in the log beside the rows and nowhere else, for whoever reads the
  /// history of commits; once at most. `stamps` are places in it as in a value.
  ///
  /// - Parameter group: the keyed group under whose key it is sealed, each of which may have one
  ///   more.
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

  /// Makes the commit fail with `.stale` when the row at `key` was changed after `basis`.
  package mutating func guardUnchanged(_ key: RawSpan) {
    guardedKeys.append(key.array)
  }

  /// Makes the commit fail with `.stale` when a row with a key from `lower` on and before `upper`
  /// (no bound when empty) was put or deleted after `basis`, one that was not there before
  /// included. The range must lie in one shard.
  package mutating func guardUnchanged(from lower: RawSpan, to upper: RawSpan) {
    guardedRanges.append(GuardedRange(lower: lower.array, upper: upper.array))
  }

  /// Fills the stamps in and gives the bytes away; the batch is empty afterwards.
  mutating func takeFrame(stampedWith sequence: SequenceNumber, time: Int64) -> [UInt8] {
    // A commit of nothing has a frame, too.
    begin(with: 0)
    var frame = frame
    self.frame = []
    for stamp in stamps {
      frame.overwriteStamp(stamp.form, at: stamp.offset, sequence, time: time)
    }
    return frame
  }

  /// Makes room for the header, and for the whole frame of a commit of one row: most have no more.
  /// In a long batch, makes room for the next operation.
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

  /// What was added from `start` on is a keyed group's.
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
  /// Writes a commit's number or time over the eight bytes at a place.
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
/// Almost always one, which takes no memory of its own.
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

  /// The shards the groups are in, each once, of `count` shards.
  func forEachShard<E: Error>(of count: Int, _ body: (Int) throws(E) -> Void) throws(E) {
    guard let first else { return }
    let shard = Int(first) % count
    try body(shard)
    if others.isEmpty { return }
    for other in Set(others.map { Int($0) % count }).subtracting([shard]) { try body(other) }
  }
}
