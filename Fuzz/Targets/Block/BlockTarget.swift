// Blocks and segments. Any bytes are a block or are refused, and a search of a block never leaves
// its memory. The target writes a segment, damages it, corrects its checksums, and reads it from
// both ends. The segment answers or is refused, and an undamaged one answers correctly.

@testable import OndolEngine

enum BlockTarget: FuzzTarget {
  static let name = "block"

  static func run(_ bytes: [UInt8]) {
    var input = FuzzInput(bytes)
    if input.flag() {
      readSegment(&input)
    } else {
      readBlock(input.rest())
    }
  }

  // MARK: - One block

  private static func readBlock(_ raw: [UInt8]) {
    guard raw.count >= 4 else { return }
    // The block's claimed number of rows is the one that an index would have given.
    let rowCount = Int(raw[0]) | Int(raw[1]) << 8
    guard let block = try? Block.make(rowCount: rowCount, raw.bytes) else { return }
    defer { block.free() }
    var builder = BlockBuilder()
    for row in 0..<block.rowCount {
      let key = block.prefix().array + block.suffix(row).array
      demand(block.find(key.bytes) == row, "row \(row) is not found by its key")
      builder.append(block.kind(row), key: key.bytes, value: block.value(row))
    }
    let strangers: [[UInt8]] = [[], [0], [0xff], raw.suffix(3) + [7]]
    for key in strangers { _ = block.find(key.bytes) }
    let again = Block.make(builder)
    defer { again.free() }
    for row in 0..<block.rowCount {
      demand(again.value(row).compare(block.value(row)) == 0, "row \(row) has another value")
    }
  }

  // MARK: - A segment

  private static let identity = DatabaseIdentity(low: 1, high: 2)
  private static let fileName = FileNumber(rawValue: 7).segmentName

  private static func readSegment(_ input: inout FuzzInput) {
    let rows = rows(&input)
    let directory = FuzzDirectory()
    var options = SegmentOptions()
    options.blockSize = 64 << input.below(5)
    options.compress = input.flag()
    guard var metadata = try? write(rows, options, to: directory) else {
      return demand(false, "rows in order cannot be written")
    }
    let sound = directory.contents(fileName)
    var bytes = sound
    let places = SealedPlaces(bytes, fileName)
    bytes.damage(&input)
    if bytes.count == sound.count { places.seal(&bytes, metadata.salt) }
    metadata.sizeBytes = UInt64(bytes.count)
    metadata.footerChecksum = bytes.suffix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    read(bytes, metadata, rows, isSound: bytes == sound)
  }

  private static func read(
    _ bytes: [UInt8], _ metadata: SegmentMetadata, _ rows: [Row], isSound: Bool
  ) {
    let segment = Segment(
      metadata, identity: identity, shard: 1, directory: FuzzDirectory([fileName: bytes]),
      cache: BlockCache(budgetBytes: 1 << 20))
    let run = Run([segment])
    for row in rows.prefix(8) {
      let found = try? find(row.key, in: run)
      if isSound { demand(found == row, "\(row.key) gives \(found as Any)") }
    }
    let cursor = run.cursor()
    // A row takes at least two bytes of a block, so no file has more.
    let most = 64 * bytes.count
    let forwards = walk(most) { first in
      try first ? cursor.seekToFirst() : cursor.next()
      return cursor.row
    }
    let backwards = walk(most) { first in
      try first ? cursor.seekToLast() : cursor.previous()
      return cursor.row
    }
    if let row = rows.dropFirst(rows.count / 2).first {
      try? cursor.seek(atOrAfter: row.key.bytes)
      try? cursor.seek(atOrBefore: row.key.bytes)
    }
    _ = try? segment.verify()
    if isSound {
      demand(forwards == rows, "forwards \(forwards as Any) instead of \(rows)")
      demand(backwards?.reversed() == rows, "backwards \(backwards as Any) instead of \(rows)")
    }
  }

  /// Returns all rows, or nil if the file is refused.
  private static func walk(_ most: Int, _ step: (Bool) throws -> Row?) -> [Row]? {
    var rows: [Row] = []
    while let row = try? step(rows.isEmpty) {
      rows.append(row)
      demand(rows.count <= most, "a cursor that does not end")
    }
    return rows
  }

  struct Row: Equatable {
    var kind: RowKind
    var key: [UInt8]
    var value: [UInt8]
  }

  private static func find(_ key: [UInt8], in run: Run) throws(EngineError) -> Row? {
    switch try run.load(key.bytes, hash: KeyHash.hash(key.bytes), ReadOptions()) {
    case .found(let pin, let row):
      Row(kind: pin.block.kind(row), key: key, value: pin.block.value(row).array)
    case .absent: nil
    case .notInMemory: nil
    }
  }

  private static func rows(_ input: inout FuzzInput) -> [Row] {
    var keys: Set<[UInt8]> = []
    for _ in 0...input.below(40) { keys.insert([0, 0, 0, 1] + input.take(input.below(12))) }
    return keys.sorted { $0.lexicographicallyPrecedes($1) }.map { key in
      if input.oneIn(6) { return Row(kind: .delete, key: key, value: []) }
      let value = [UInt8](repeating: input.byte(), count: input.below(120))
      return Row(kind: .put, key: key, value: value)
    }
  }

  private static func write(
    _ rows: [Row], _ options: SegmentOptions, to directory: FuzzDirectory
  ) throws(EngineError) -> SegmentMetadata {
    let writer = SegmentWriter(
      file: try directory.create(fileName), number: FileNumber(rawValue: 7), salt: 9,
      identity: identity, shard: 1, options: options)
    for row in rows { try writer.add(row.kind, key: row.key.bytes, value: row.value.bytes) }
    return try writer.finish(
      minSequence: SequenceNumber(rawValue: 1), maxSequence: SequenceNumber(rawValue: 9))
  }

  // MARK: - Seeds

  static func seeds() -> [[UInt8]] {
    var builder = BlockBuilder()
    for index in 0..<20 {
      let key: [UInt8] = [1, 2, 3, UInt8(index), UInt8(index * 7 & 255)]
      let value = [UInt8](repeating: UInt8(index), count: index)
      if index % 6 == 5 {
        builder.append(.delete, key: key.bytes, value: value.bytes.extracting(first: 0))
      } else {
        builder.append(.put, key: key.bytes, value: value.bytes)
      }
    }
    var raw: [UInt8] = []
    builder.encode(into: &raw)
    var chance = Chance(3)
    return [[0] + raw] + [60, 200, 500, 900].map { [1] + chance.bytes($0) }
  }
}

extension RunCursor {
  /// The row under the cursor, copied.
  fileprivate var row: BlockTarget.Row? {
    isValid ? BlockTarget.Row(kind: kind, key: key.array, value: value.array) : nil
  }
}
