// The bytes of a tiny segment, written out: a change of format shows here first.

import Testing

@testable import OndolEngine

@Suite struct SegmentFormatTests {
  static let rows = [
    TestRow(kind: .put, key: Array("\0\0\0\u{9}apple".utf8), value: Array("red".utf8)),
    TestRow(kind: .delete, key: Array("\0\0\0\u{9}apricot".utf8), value: []),
    TestRow(kind: .put, key: Array("\0\0\0\u{9}banana".utf8), value: Array("yellow".utf8)),
  ]

  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    stride(from: 0, to: bytes.count, by: 32).map { start in
      bytes[start..<min(start + 32, bytes.count)].map { byte in
        let digits = String(byte, radix: 16)
        return digits.count == 1 ? "0" + digits : digits
      }.joined()
    }.joined(separator: "\n")
  }

  @Test func `a tiny segment has exactly these bytes`() throws {
    let directory = MemoryDirectory()
    let metadata = try writeSegment(Self.rows, to: directory)
    let bytes = try #require(directory.file("7.seg")).bytes
    #expect(Self.hexadecimal(bytes) == Self.golden)
    #expect(metadata.sizeBytes == UInt64(bytes.count))
    #expect(metadata.entries == 3)
    #expect(metadata.tombstones == 1)
    #expect(metadata.rawBytes == 39)
    #expect(metadata.minKey == Self.rows[0].key)
    #expect(metadata.maxKey == Self.rows[2].key)
  }

  @Test func `a tiny segment written long ago is still read`() throws {
    let directory = MemoryDirectory()
    let metadata = try writeSegment(Self.rows, to: MemoryDirectory())
    let digits = Array(Self.golden.utf8.filter { $0 != 10 })
    let bytes = stride(from: 0, to: digits.count, by: 2).map { place in
      UInt8(String(decoding: digits[place..<(place + 2)], as: UTF8.self), radix: 16) ?? 0
    }
    directory.put(bytes, as: "7.seg")
    let run = Run([openSegment(metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))])
    for row in Self.rows { #expect(try find(row.key, in: run) == row) }
  }

  @Test func `the hash of a key never changes`() {
    let expected: [(String, UInt64)] = [
      ("", 0x4cf24c5f750e3f81),
      ("a", 0xbf71c060de333406),
      ("abc", 0xb4024eaa7f928bdf),
      ("abcd", 0xeaa13cf141ac029a),
      ("abcdefg", 0xab819d4315806b75),
      ("abcdefgh", 0xa0f1a07a8a9bcffe),
      ("abcdefghijklmnop", 0xaff11e19fb5f176e),
      ("abcdefghijklmnopq", 0x514ed405f8cb7f74),
      ("The quick brown fox jumps over the lazy dog", 0xd61e8c86f2399a90),
    ]
    for (text, hash) in expected {
      let bytes = Array(text.utf8)
      #expect(KeyHash.hash(bytes.bytes) == hash, "\(text): \(KeyHash.hash(bytes.bytes))")
    }
  }

  @Test func `a filter recognises all but one absent key in sixty`() {
    let count = 20_000
    func hash(_ number: Int) -> UInt64 {
      let key = Array("key \(number)".utf8)
      return KeyHash.hash(key.bytes)
    }
    var hashes = KeyHashes()
    for number in 0..<count { hashes.append(hash(number)) }
    #expect(hashes.count == count)
    let bytes = Filter.build(hashes, bitsPerKey: 10)
    #expect(bytes.count <= count * 10 / 8 + Filter.lineBytes)
    let filter = FilterBits(bytes.bytes)
    defer { filter.free() }
    #expect((0..<count).allSatisfy { filter.mayContain(hash($0)) })
    let mistakes = (count..<(3 * count)).filter { filter.mayContain(hash($0)) }.count
    #expect(mistakes < 2 * count / 60, "\(mistakes) of \(2 * count)")
  }

  @Test func `a separator lies between two keys and is short`() {
    var random = SeededRandom(seed: 21)
    for _ in 0..<20_000 {
      let alphabet: ClosedRange<UInt8> = Bool.random(using: &random) ? 254...255 : 0...3
      var keys = (0..<2).map { _ in
        random.bytes(.random(in: 0...6, using: &random), alphabet: alphabet)
      }
      keys.sort(by: <)
      let (low, high) = (keys[0], keys[1])
      guard low != high else { continue }
      let separator = SegmentIndexBuilder.separator(low.bytes, high.bytes)
      #expect(!(separator < low) && separator < high, "\(keys) \(separator)")
      #expect(separator.count <= low.count)
    }
    let low = Array("\0\0\0\u{1}abcdefgh".utf8)
    let high = Array("\0\0\0\u{1}abdz".utf8)
    let separator = SegmentIndexBuilder.separator(low.bytes, high.bytes)
    #expect(separator == Array("\0\0\0\u{1}abd".utf8))
  }

  static let golden = """
    894f44530d0a1a0a010000000000000007000000000000000807060504030201
    887766554433221100ffeeddccbbaa990100000000000000deb3dc5b00000000
    0300000001010101040000001200000000000009050706030006010201617070
    6c6561707269636f7462616e616e6172656479656c6c6f773800000000010000
    ebfd7db200000000a501000000010001010a000100a30962616e616e61001040
    13008038000000030000002c000000010200006cc05306000000000100000001
    0001010a000000000000000000000962616e616e610010880000000000000023
    0000000100000000801202240000000000000800000000000000000000001010
    0010000080000400000000000000000200000000000004002000001100000000
    008000000000000100000001000000bb000000000000002c0000000000000029
    2dfd74000000000200000000000000e700000000000000400000000000000084
    ae79df00000000894f44530d0a1a0a0100000000010000000000000000000000
    0000000000000007000000000000000807060504030201887766554433221100
    ffeeddccbbaa9901000000000000000300000000000000010000000000000003
    0000000000000009000000000000002700000000000000bb0000000000000001
    00000000000000010000000000000027010000000000000200000000000000f1
    1964a80000000000000000000000000000000000000000000000000000000000
    0000000000000000000000000000000000000000000000000000000000000000
    0000000000000000000000000000000000000000000000000000000000000097
    7a4a2700000000
    """
}
