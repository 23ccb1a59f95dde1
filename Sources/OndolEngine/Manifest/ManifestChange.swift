// The edits that change the manifest's state, and their bytes. No file is involved.
//
// An edit is a list of changes, each `tag, length, body`, with numbers as varints. A reader skips
// an unknown tag if it is odd and rejects the manifest if it is even. The first edit of a manifest
// is the whole state, written as the same changes from an empty state.

/// One change.
enum ManifestChange: Sendable, Equatable {
  case nextFile(FileNumber)
  case logs(floor: LogStart, newest: FileNumber)
  /// A log from the floor on can be read without its header. Versions that do not know this skip
  /// it.
  case nameLog(NamedLog)
  /// Commits after this one can be read again; nil if none can.
  case history(after: CommitPoint?)
  /// A log before the floor is kept, after those already kept.
  case keepLog(KeptLog)
  case flushed(shard: Int, through: SequenceNumber)
  case addSegment(shard: Int, level: Int, run: UInt64, SegmentMetadata)
  case dropSegment(shard: Int, number: FileNumber)
  case addValueFile(shard: Int, ValueFileMetadata)
  case dropValueFile(shard: Int, number: FileNumber)
  /// Rows of these keyspaces no longer count. Segments below `before` may still contain some.
  case dropKeyspaces([UInt32], before: FileNumber)
  /// The list of keyed groups.
  case groups(GroupList)

  private enum Tag {
    static let nextFile: UInt64 = 2
    static let logs: UInt64 = 4
    static let flushed: UInt64 = 6
    static let addSegment: UInt64 = 8
    static let dropSegment: UInt64 = 10
    static let dropKeyspaces: UInt64 = 12
    static let addValueFile: UInt64 = 14
    static let dropValueFile: UInt64 = 16
    static let history: UInt64 = 18
    static let keepLog: UInt64 = 20
    static let nameLog: UInt64 = 21
    static let groups: UInt64 = 22
    static let addGroupSegment: UInt64 = 24
    static let addGroupValueFile: UInt64 = 26
    static let groupsOfGeneration: UInt64 = 28
  }

  /// Appends `tag, length, body`.
  func encode(into bytes: inout [UInt8]) {
    var body: [UInt8] = []
    let tag: UInt64
    switch self {
    case .nextFile(let number):
      tag = Tag.nextFile
      body.appendVarint(number.rawValue)
    case .logs(let floor, let newest):
      tag = Tag.logs
      body.appendVarint(floor.number.rawValue)
      body.appendVarint(floor.base.rawValue)
      body.appendVarint(floor.sequence.rawValue)
      body.appendLittleEndian(floor.time)
      body.appendVarint(newest.rawValue)
    case .nameLog(let log):
      tag = Tag.nameLog
      log.encode(into: &body)
    case .history(let start):
      tag = Tag.history
      if let start { start.encode(into: &body) }
    case .keepLog(let log):
      tag = Tag.keepLog
      log.encode(into: &body)
    case .flushed(let shard, let through):
      tag = Tag.flushed
      body.append(shard: shard, through.rawValue)
    case .addSegment(let shard, let level, let run, let segment):
      tag = segment.bounds == nil ? Tag.addSegment : Tag.addGroupSegment
      body.append(shard: shard, UInt64(level))
      body.appendVarint(run)
      segment.encode(into: &body)
    case .dropSegment(let shard, let number):
      tag = Tag.dropSegment
      body.append(shard: shard, number.rawValue)
    case .addValueFile(let shard, let file):
      tag = file.group == nil ? Tag.addValueFile : Tag.addGroupValueFile
      body.appendVarint(shard)
      file.encode(into: &body)
      if let group = file.group { body.appendVarint(UInt64(group)) }
    case .dropValueFile(let shard, let number):
      tag = Tag.dropValueFile
      body.append(shard: shard, number.rawValue)
    case .dropKeyspaces(let keyspaces, let before):
      tag = Tag.dropKeyspaces
      body.appendVarint(before.rawValue)
      for keyspace in keyspaces { body.appendVarint(UInt64(keyspace)) }
    case .groups(let groups):
      tag = groups.generation == 0 ? Tag.groups : Tag.groupsOfGeneration
      if groups.generation > 0 { body.appendVarint(groups.generation) }
      groups.encode(into: &body)
    }
    bytes.appendVarint(tag)
    bytes.appendVarint(body.count)
    if body.count < Self.longBody || bytes.count >= Self.longBody {
      bytes += body
    } else {
      // Keys may be of any length. The few bytes before them are moved, and the keys are not
      // copied.
      body.insert(contentsOf: bytes, at: 0)
      bytes = body
    }
  }

  /// The size from which a change is treated as one with a long key.
  fileprivate static let longBody = 1 << 16

  /// The changes in `payload`. Unknown changes are ignored where permitted.
  static func decodeAll(_ payload: RawSpan) throws(MalformedBytes) -> [ManifestChange] {
    var reader = ByteReader(payload)
    var changes: [ManifestChange] = []
    while !reader.isAtEnd {
      let start = reader.offset
      let tag = try reader.varint()
      var body = ByteReader(try reader.lengthPrefixed())
      guard let change = try decode(tag, &body) else {
        if tag & 1 == 1 { continue }
        throw .newer(at: start, "change \(tag) is unknown")
      }
      guard body.isAtEnd else { throw MalformedBytes(at: start, "change \(tag) is too long") }
      changes.append(change)
    }
    return changes
  }

  private static func decode(
    _ tag: UInt64, _ body: inout ByteReader
  ) throws(MalformedBytes) -> ManifestChange? {
    switch tag {
    case Tag.nextFile:
      return .nextFile(FileNumber(rawValue: try body.varint()))
    case Tag.logs:
      let floor = LogStart(
        number: FileNumber(rawValue: try body.varint()),
        base: LogPosition(rawValue: try body.varint()),
        sequence: SequenceNumber(rawValue: try body.varint()), time: try body.littleEndian())
      return .logs(floor: floor, newest: FileNumber(rawValue: try body.varint()))
    case Tag.nameLog:
      return .nameLog(try NamedLog(&body))
    case Tag.history:
      return .history(after: body.isAtEnd ? nil : try CommitPoint(&body))
    case Tag.keepLog:
      return .keepLog(try KeptLog(&body))
    case Tag.flushed:
      return .flushed(
        shard: try body.count(atMost: 1023), through: SequenceNumber(rawValue: try body.varint()))
    case Tag.addSegment, Tag.addGroupSegment:
      return .addSegment(
        shard: try body.count(atMost: 1023), level: try body.count(atMost: ShardState.lowestLevel),
        run: try body.varint(), try SegmentMetadata(&body, isOfGroup: tag == Tag.addGroupSegment))
    case Tag.dropSegment:
      return .dropSegment(
        shard: try body.count(atMost: 1023), number: FileNumber(rawValue: try body.varint()))
    case Tag.addValueFile, Tag.addGroupValueFile:
      let shard = try body.count(atMost: 1023)
      var file = try ValueFileMetadata(&body)
      if tag == Tag.addGroupValueFile { file.group = try body.group() }
      return .addValueFile(shard: shard, file)
    case Tag.dropValueFile:
      return .dropValueFile(
        shard: try body.count(atMost: 1023), number: FileNumber(rawValue: try body.varint()))
    case Tag.dropKeyspaces:
      let before = FileNumber(rawValue: try body.varint())
      var keyspaces: [UInt32] = []
      while !body.isAtEnd { keyspaces.append(UInt32(try body.count(atMost: Int(UInt32.max)))) }
      return .dropKeyspaces(keyspaces, before: before)
    case Tag.groups:
      return .groups(try GroupList(&body))
    case Tag.groupsOfGeneration:
      let generation = try body.varint()
      return .groups(try GroupList(&body, generation: generation))
    default:
      return nil
    }
  }
}

extension CommitPoint {
  fileprivate func encode(into bytes: inout [UInt8]) {
    bytes.appendVarint(sequence.rawValue)
    bytes.appendLittleEndian(time)
  }

  fileprivate init(_ reader: inout ByteReader) throws(MalformedBytes) {
    self.init(
      sequence: SequenceNumber(rawValue: try reader.varint()), time: try reader.littleEndian())
  }
}

extension KeptLog {
  fileprivate func encode(into bytes: inout [UInt8]) {
    bytes.appendVarint(number.rawValue)
    bytes.appendVarint(length)
    before.encode(into: &bytes)
  }

  fileprivate init(_ reader: inout ByteReader) throws(MalformedBytes) {
    self.init(
      number: FileNumber(rawValue: try reader.varint()), length: try reader.varint(),
      before: try CommitPoint(&reader))
  }
}

extension SegmentMetadata {
  fileprivate func encode(into bytes: inout [UInt8]) {
    let keys = bounds?.bytes.count ?? minKey.count + maxKey.count
    // Reserved at once, with room for everything else and for bytes that may be inserted before it.
    if keys >= ManifestChange.longBody { bytes.reserveCapacity(keys + 2 * ManifestChange.longBody) }
    bytes.appendVarint(number.rawValue)
    bytes.appendLittleEndian(salt)
    bytes.appendVarint(sizeBytes)
    bytes.appendLittleEndian(footerChecksum)
    if let bounds {
      bytes.appendVarint(UInt64(bounds.group))
      bytes.appendVarint(bounds.bytes.count)
      bytes += bounds.bytes
    } else {
      bytes.appendVarint(minKey.count)
      bytes += minKey
      bytes.appendVarint(maxKey.count)
      bytes += maxKey
    }
    bytes.appendVarint(entries)
    bytes.appendVarint(tombstones)
    bytes.appendVarint(rawBytes)
    bytes.appendVarint(minSequence.rawValue)
    bytes.appendVarint(maxSequence.rawValue)
    bytes.appendVarint(valueReferences.count)
    for reference in valueReferences {
      bytes.appendVarint(reference.file.rawValue)
      bytes.appendVarint(reference.bytes)
    }
  }

  /// - Parameter isOfGroup: whether bounds replace the keys, which are unknown then.
  fileprivate init(_ reader: inout ByteReader, isOfGroup: Bool) throws(MalformedBytes) {
    self.init(
      number: FileNumber(rawValue: try reader.varint()), salt: try reader.littleEndian(),
      sizeBytes: try reader.varint(), footerChecksum: try reader.littleEndian(), minKey: [],
      maxKey: [], entries: 0, tombstones: 0, rawBytes: 0, minSequence: .zero, maxSequence: .zero)
    if isOfGroup {
      bounds = SealedBounds(
        group: try reader.group(), bytes: try reader.lengthPrefixed().array)
    } else {
      minKey = try reader.lengthPrefixed().array
      let last = try reader.lengthPrefixed()
      // They share one array if they are equal, as in a segment with one long key.
      maxKey = minKey.bytes.compare(last) == 0 ? minKey : last.array
    }
    entries = try reader.varint()
    tombstones = try reader.varint()
    rawBytes = try reader.varint()
    minSequence = SequenceNumber(rawValue: try reader.varint())
    maxSequence = SequenceNumber(rawValue: try reader.varint())
    for _ in 0..<(try reader.count(atMost: reader.remaining)) {
      valueReferences.append(
        ValueReference(
          file: FileNumber(rawValue: try reader.varint()), bytes: try reader.varint()))
    }
  }
}

extension ByteReader {
  /// The number of a keyed group.
  @_lifetime(self: copy self)
  fileprivate mutating func group() throws(MalformedBytes) -> UInt32 {
    let start = offset
    let group = UInt32(try count(atMost: Int(UInt32.max)))
    guard KeyedGroups.numbers.contains(group) else {
      throw MalformedBytes(at: start, "a group \(group) that there cannot be")
    }
    return group
  }
}

extension [UInt8] {
  /// Appends the shard of a change and a number.
  fileprivate mutating func append(shard: Int, _ number: UInt64) {
    appendVarint(shard)
    appendVarint(number)
  }
}
