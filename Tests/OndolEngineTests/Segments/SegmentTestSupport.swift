// Rows to write, their model, and shorthand for reading them back.

@testable import OndolEngine

/// A generator whose seed a failing test prints (SplitMix64).
struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  mutating func bytes(_ count: Int, alphabet: ClosedRange<UInt8> = 0...255) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: alphabet, using: &self) }
  }
}

struct TestRow: Equatable, CustomStringConvertible {
  var kind: RowKind
  var key: [UInt8]
  var value: [UInt8]

  var description: String { "\(kind) \(key) (\(value.count) bytes)" }
}

extension [UInt8] {
  static func < (left: [UInt8], right: [UInt8]) -> Bool {
    left.lexicographicallyPrecedes(right)
  }
}

/// Rows of all shapes in ascending order of distinct keys.
func randomRows(_ count: Int, _ random: inout SeededRandom) -> [TestRow] {
  var keys: Set<[UInt8]> = []
  let prefixes = (0..<4).map { [0, 0, 0, UInt8($0)] + random.bytes([0, 3, 20, 200][$0]) }
  // A narrow alphabet makes long shared prefixes and keys that are prefixes of others.
  let alphabets: [ClosedRange<UInt8>] = [0...255, 0...1, 97...122, 255...255]
  while keys.count < count {
    let prefix = prefixes.randomElement(using: &random) ?? []
    let alphabet = alphabets.randomElement(using: &random) ?? 0...255
    let length = Int.random(in: 0...(Bool.random(using: &random) ? 12 : 96), using: &random)
    keys.insert(prefix + random.bytes(length, alphabet: alphabet))
  }
  return keys.sorted(by: <).map { key in
    if Int.random(in: 0..<8, using: &random) == 0 {
      return TestRow(kind: .delete, key: key, value: [])
    }
    let size: Int
    switch Int.random(in: 0..<40, using: &random) {
    case 0: size = Int.random(in: 0...100_000, using: &random)
    case 1...8: size = 0
    case 9...16: size = Int.random(in: 200...2_000, using: &random)
    default: size = Int.random(in: 1...100, using: &random)
    }
    let filler = UInt8.random(in: 0...255, using: &random)
    let value =
      Bool.random(using: &random)
      ? random.bytes(size) : [UInt8](repeating: filler, count: size)
    return TestRow(kind: .put, key: key, value: value)
  }
}

let testIdentity = DatabaseIdentity(low: 0x1122_3344_5566_7788, high: 0x99aa_bbcc_ddee_ff00)

/// Writes `rows` into a file of `directory`.
func writeSegment(
  _ rows: some Sequence<TestRow>, number: UInt64 = 7, to directory: MemoryDirectory,
  options: SegmentOptions = SegmentOptions()
) throws -> SegmentMetadata {
  let number = FileNumber(rawValue: number)
  let writer = SegmentWriter(
    file: try directory.create(number.segmentName), number: number,
    salt: 0x0102_0304_0506_0708, identity: testIdentity, shard: 1, options: options)
  for row in rows {
    try writer.add(row.kind, key: row.key.bytes, value: row.value.bytes)
  }
  return try writer.finish(
    minSequence: SequenceNumber(rawValue: 3), maxSequence: SequenceNumber(rawValue: 9))
}

func openSegment(
  _ metadata: SegmentMetadata, in directory: MemoryDirectory, cache: BlockCache
) -> Segment {
  Segment(metadata, identity: testIdentity, shard: 1, directory: directory, cache: cache)
}

/// The result of a get, copied; nil if the key is absent.
func find(
  _ key: [UInt8], in run: Run, _ options: ReadOptions = ReadOptions()
) throws(EngineError) -> TestRow? {
  let hash = KeyHash.hash(key.bytes)
  switch run.table.find(key.bytes, hash: options.asksFilterFirst ? hash : nil) {
  case .found(let pin, let row): return TestRow(key, pin, row)
  case .absent: return nil
  case .notInMemory: break
  }
  switch try run.load(key.bytes, hash: hash, options) {
  case .found(let pin, let row): return TestRow(key, pin, row)
  case .absent: return nil
  case .notInMemory: return TestRow(kind: .put, key: [], value: Array("would block".utf8))
  }
}

extension TestRow {
  fileprivate init(_ key: [UInt8], _ pin: borrowing PinnedBlock, _ row: Int) {
    self.init(kind: pin.block.kind(row), key: key, value: pin.block.value(row).array)
  }
}

extension RunCursor {
  /// The row under the cursor, copied.
  var copy: TestRow? {
    isValid ? TestRow(kind: kind, key: key.array, value: value.array) : nil
  }
}
