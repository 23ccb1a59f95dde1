// What the manifest says: which runs each shard has, how far each is flushed, and from which log on
// recovery must read. A plain value and the edits that change it; bytes in and out, no file.
//
// An edit is a list of changes, each `tag, length, body`, numbers as varints. A reader that does
// not know a tag skips it when the tag is odd and refuses the manifest when it is even. The first
// edit of a manifest is the whole state, written with the same changes from nothing.

/// Where a log stands in the one line of commits.
struct LogStart: Sendable, Equatable {
  var number: FileNumber
  /// The position of its first byte.
  var base: LogPosition
  /// The last commit before it, and that commit's time.
  var sequence: SequenceNumber
  var time: Int64
}

/// A sorted run as the manifest names it.
struct RunState: Sendable, Equatable {
  /// 0 for a flushed memtable, 1 for a merged run.
  var level: Int
  /// The number of its first segment.
  var id: UInt64
  /// Ascending and disjoint.
  var segments: [SegmentMetadata]

  var maxSequence: SequenceNumber { segments.map(\.maxSequence).max() ?? .zero }
}

/// One shard's part.
struct ShardState: Sendable, Equatable {
  var flushedThrough = SequenceNumber.zero
  /// Newest first.
  var runs: [RunState] = []
}

/// The state that all edits so far add up to.
struct ManifestState: Sendable, Equatable {
  /// Every file number below has been given out.
  var nextFile: FileNumber
  /// The first log that recovery needs.
  var floor: LogStart
  /// The last log made; it exists, used or not.
  var newestLog: FileNumber
  var shards: [ShardState]
  /// By number.
  var valueFiles: [FileNumber: ValueFileMetadata] = [:]

  /// Whether a segment is referenced.
  func references(segment number: FileNumber) -> Bool {
    shards.contains { shard in
      shard.runs.contains { run in run.segments.contains { $0.number == number } }
    }
  }
}

/// One change.
enum ManifestChange: Sendable, Equatable {
  case nextFile(FileNumber)
  case logs(floor: LogStart, newest: FileNumber)
  case flushed(shard: Int, through: SequenceNumber)
  case addSegment(shard: Int, level: Int, run: UInt64, SegmentMetadata)
  case dropSegment(shard: Int, number: FileNumber)
  case addValueFile(ValueFileMetadata)
  case dropValueFile(FileNumber)

  private enum Tag {
    static let nextFile: UInt64 = 2
    static let logs: UInt64 = 4
    static let flushed: UInt64 = 6
    static let addSegment: UInt64 = 8
    static let dropSegment: UInt64 = 10
    static let addValueFile: UInt64 = 14
    static let dropValueFile: UInt64 = 16
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
    case .flushed(let shard, let through):
      tag = Tag.flushed
      body.appendVarint(shard)
      body.appendVarint(through.rawValue)
    case .addSegment(let shard, let level, let run, let segment):
      tag = Tag.addSegment
      body.appendVarint(shard)
      body.appendVarint(level)
      body.appendVarint(run)
      segment.encode(into: &body)
    case .dropSegment(let shard, let number):
      tag = Tag.dropSegment
      body.appendVarint(shard)
      body.appendVarint(number.rawValue)
    case .addValueFile(let file):
      tag = Tag.addValueFile
      file.encode(into: &body)
    case .dropValueFile(let number):
      tag = Tag.dropValueFile
      body.appendVarint(number.rawValue)
    }
    bytes.appendVarint(tag)
    bytes.appendVarint(body.count)
    bytes += body
  }

  /// The changes in `payload`; unknown ones that may be ignored are.
  static func decodeAll(_ payload: RawSpan) throws(MalformedBytes) -> [ManifestChange] {
    var reader = ByteReader(payload)
    var changes: [ManifestChange] = []
    while !reader.isAtEnd {
      let start = reader.offset
      let tag = try reader.varint()
      var body = ByteReader(try reader.lengthPrefixed())
      guard let change = try decode(tag, &body) else {
        if tag & 1 == 1 { continue }
        throw MalformedBytes(at: start, "change \(tag) is unknown")
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
    case Tag.flushed:
      return .flushed(
        shard: try body.count(atMost: 1023), through: SequenceNumber(rawValue: try body.varint()))
    case Tag.addSegment:
      return .addSegment(
        shard: try body.count(atMost: 1023), level: try body.count(atMost: 63),
        run: try body.varint(), try SegmentMetadata(&body))
    case Tag.dropSegment:
      return .dropSegment(
        shard: try body.count(atMost: 1023), number: FileNumber(rawValue: try body.varint()))
    case Tag.addValueFile:
      return .addValueFile(try ValueFileMetadata(&body))
    case Tag.dropValueFile:
      return .dropValueFile(FileNumber(rawValue: try body.varint()))
    default:
      return nil
    }
  }
}

extension ManifestState {
  /// The whole state as changes from nothing.
  var asChanges: [ManifestChange] {
    var changes: [ManifestChange] = [
      .nextFile(nextFile), .logs(floor: floor, newest: newestLog),
    ]
    changes += valueFiles.values.sorted { $0.number < $1.number }.map { .addValueFile($0) }
    for (index, shard) in shards.enumerated() {
      changes.append(.flushed(shard: index, through: shard.flushedThrough))
      for run in shard.runs {
        for segment in run.segments {
          changes.append(.addSegment(shard: index, level: run.level, run: run.id, segment))
        }
      }
    }
    return changes
  }

  /// Applies one change; what cannot be is a reason to refuse the manifest.
  mutating func apply(_ change: ManifestChange) throws(MalformedBytes) {
    switch change {
    case .nextFile(let number):
      nextFile = max(nextFile, number)
    case .logs(let floor, let newest):
      self.floor = floor
      newestLog = newest
    case .flushed(let shard, let through):
      try check(shard)
      shards[shard].flushedThrough = through
    case .addSegment(let shard, let level, let run, let segment):
      try check(shard)
      try checkValueFiles(of: segment, shard)
      shards[shard].add(segment, level: level, run: run)
    case .dropSegment(let shard, let number):
      try check(shard)
      guard shards[shard].drop(number) else {
        throw MalformedBytes(at: 0, "drops segment \(number.rawValue), which it lacks")
      }
    case .addValueFile(let file):
      try check(Int(file.shard))
      valueFiles[file.number] = file
    case .dropValueFile(let number):
      guard valueFiles.removeValue(forKey: number) != nil else {
        throw MalformedBytes(at: 0, "drops value file \(number.rawValue), which it lacks")
      }
    }
  }

  private func check(_ shard: Int) throws(MalformedBytes) {
    guard shards.indices.contains(shard) else {
      throw MalformedBytes(at: 0, "names shard \(shard) of \(shards.count)")
    }
  }
}

extension ShardState {
  fileprivate mutating func add(_ segment: SegmentMetadata, level: Int, run id: UInt64) {
    if let index = runs.firstIndex(where: { $0.id == id && $0.level == level }) {
      runs[index].segments.append(segment)
    } else {
      runs.append(RunState(level: level, id: id, segments: [segment]))
    }
    // Newest first: flushed runs by age, above what was merged before them.
    runs.sort { left, right in
      left.level != right.level
        ? left.level < right.level : left.maxSequence > right.maxSequence
    }
  }

  fileprivate mutating func drop(_ number: FileNumber) -> Bool {
    for index in runs.indices {
      guard let place = runs[index].segments.firstIndex(where: { $0.number == number }) else {
        continue
      }
      runs[index].segments.remove(at: place)
      if runs[index].segments.isEmpty { runs.remove(at: index) }
      return true
    }
    return false
  }
}

extension SegmentMetadata {
  fileprivate func encode(into bytes: inout [UInt8]) {
    bytes.appendVarint(number.rawValue)
    bytes.appendLittleEndian(salt)
    bytes.appendVarint(sizeBytes)
    bytes.appendLittleEndian(footerChecksum)
    bytes.appendVarint(minKey.count)
    bytes += minKey
    bytes.appendVarint(maxKey.count)
    bytes += maxKey
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

  fileprivate init(_ reader: inout ByteReader) throws(MalformedBytes) {
    self.init(
      number: FileNumber(rawValue: try reader.varint()), salt: try reader.littleEndian(),
      sizeBytes: try reader.varint(), footerChecksum: try reader.littleEndian(),
      minKey: try reader.lengthPrefixed().array, maxKey: try reader.lengthPrefixed().array,
      entries: try reader.varint(), tombstones: try reader.varint(),
      rawBytes: try reader.varint(), minSequence: SequenceNumber(rawValue: try reader.varint()),
      maxSequence: SequenceNumber(rawValue: try reader.varint()))
    for _ in 0..<(try reader.count(atMost: reader.remaining)) {
      valueReferences.append(
        ValueReference(
          file: FileNumber(rawValue: try reader.varint()), bytes: try reader.varint()))
    }
  }
}
