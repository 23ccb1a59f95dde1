// One block compared with a sorted array, and blocks of bytes that no writer would have written.

import Testing

@testable import OndolEngine

@Suite struct BlockTests {
  /// Keys of one shape each: evenly spread, crowded, with long shared prefixes, prefixes of others.
  private func keys(_ shape: Int, _ count: Int, _ random: inout SeededRandom) -> [[UInt8]] {
    var keys: Set<[UInt8]> = []
    while keys.count < count {
      switch shape {
      case 0: keys.insert([0, 0, 0, 9] + random.bytes(16))
      case 1: keys.insert([0, 0, 0, 9] + random.bytes(8, alphabet: 7...7) + random.bytes(4))
      case 2:
        keys.insert([UInt8](repeating: 0, count: .random(in: 0...(2 * count), using: &random)))
      case 3: keys.insert(random.bytes(.random(in: 0...20, using: &random), alphabet: 0...1))
      default: keys.insert(random.bytes(2) + [UInt8](repeating: 255, count: keys.count % 9))
      }
    }
    return keys.sorted(by: <)
  }

  @Test(arguments: 0..<5, [1, 2, 9, 40, 300])
  func `searches agree with a sorted array`(_ shape: Int, _ count: Int) {
    var random = SeededRandom(seed: UInt64(100 * shape + count))
    let keys = keys(shape, count, &random)
    var builder = BlockBuilder()
    for key in keys { builder.append(.put, key: key.bytes, value: key.bytes) }
    let block = Block.make(builder)
    defer { block.free() }
    for (row, key) in keys.enumerated() {
      #expect(block.find(key.bytes) == row)
      #expect(block.value(row).array == key)
      #expect(block.prefix().array + block.suffix(row).array == key)
    }
    for _ in 0..<100 {
      let near = SegmentModelTests.neighbours(
        of: keys[.random(in: 0..<count, using: &random)], &random)
      for key in near {
        let place = keys.firstIndex { !($0 < key) } ?? keys.count
        #expect(block.lowerBound(key.bytes) == place, "\(key)")
        #expect(block.find(key.bytes) == (place < count && keys[place] == key ? place : nil))
      }
    }
  }

  /// A block of three rows without prefix: header 16, key lengths 3, value lengths 3, kinds 3,
  /// keys 5, values 3.
  private var small: [UInt8] {
    var builder = BlockBuilder()
    let rows: [(RowKind, [UInt8], [UInt8])] = [
      (.put, [1], [9]), (.delete, [2, 2], []), (.put, [3, 3], [9, 9]),
    ]
    for (kind, key, value) in rows { builder.append(kind, key: key.bytes, value: value.bytes) }
    var raw: [UInt8] = []
    builder.encode(into: &raw)
    return raw
  }

  @Test func `bytes that no writer writes are refused`() throws {
    let block = try Block.make(rowCount: 3, small.bytes)
    block.free()
    #expect(small.count == 33)
    let changes: [(String, Int, UInt8)] = [
      ("more rows than announced", 0, 4), ("another version", 4, 2), ("an unknown flag", 5, 3),
      ("no kinds, so bytes too many", 5, 0), ("no key width", 6, 0), ("a key width of three", 6, 3),
      ("a value width of three", 7, 3), ("wider values than there are bytes", 7, 4),
      ("a prefix that takes the lengths", 8, 1), ("a prefix beyond the end", 11, 255),
      ("fewer key bytes", 12, 4), ("more key bytes", 12, 6), ("key bytes beyond the end", 15, 255),
      ("a key too long", 16, 2), ("a key far too long", 17, 255), ("a key too short", 18, 1),
      ("a value too long", 19, 2), ("a value far too long", 21, 255),
      ("a tombstone's value", 20, 1),
      ("kind 0", 22, 0), ("kind 3", 23, 3), ("a put that is none", 24, 2), ("keys equal", 25, 2),
      ("keys descending", 26, 4), ("keys descending late", 28, 1),
    ]
    for (name, place, byte) in changes {
      var raw = small
      raw[place] = byte
      if name == "keys equal" { raw[26...27] = [3, 3] }
      #expect(throws: MalformedBytes.self, "\(name)") {
        try Block.make(rowCount: 3, raw.bytes).free()
      }
    }
    for rowCount in [0, 2, 4, -1, 1 << 20] {
      let raw = small
      #expect(throws: MalformedBytes.self) { try Block.make(rowCount: rowCount, raw.bytes).free() }
    }
    for length in 0..<small.count {
      let raw = Array(small.prefix(length))
      #expect(throws: MalformedBytes.self) { try Block.make(rowCount: 3, raw.bytes).free() }
    }
  }
}
