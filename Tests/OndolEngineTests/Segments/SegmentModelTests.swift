// Segments compared with a sorted array: the same rows come out, by key and in both directions,
// whatever fits in the cache.

import Testing

@testable import OndolEngine

@Suite struct SegmentModelTests {
  struct Setup: CustomTestStringConvertible, Sendable {
    var seed: UInt64
    var rows: Int
    var blockSize: Int
    var budget: Int
    var segments: Int
    var testDescription: String {
      "seed \(seed), \(rows) rows, blocks \(blockSize), budget \(budget), \(segments) segments"
    }
  }

  static let setups: [Setup] = {
    var setups: [Setup] = []
    var seed: UInt64 = 1
    for (rows, blockSize) in [(1, 16 << 10), (7, 64), (300, 512), (2_000, 16 << 10), (1_500, 100)] {
      for budget in [0, 20_000, 1 << 30] {
        for segments in [1, 3] where rows >= segments {
          setups.append(
            Setup(seed: seed, rows: rows, blockSize: blockSize, budget: budget, segments: segments))
          seed += 1
        }
      }
    }
    return setups
  }()

  /// Rows, and a run of segments that contain them.
  private func make(
    _ setup: Setup, _ cache: BlockCache, _ random: inout SeededRandom
  ) throws -> ([TestRow], Run) {
    let rows = randomRows(setup.rows, &random)
    let directory = MemoryDirectory()
    var options = SegmentOptions()
    options.blockSize = setup.blockSize
    options.compress = setup.seed % 3 != 0
    options.bitsPerKey = setup.seed % 4 == 0 ? 0 : 10
    let share = (rows.count + setup.segments - 1) / setup.segments
    var segments: [Segment] = []
    for (index, start) in stride(from: 0, to: rows.count, by: share).enumerated() {
      let metadata = try writeSegment(
        rows[start..<min(start + share, rows.count)], number: UInt64(index + 1), to: directory,
        options: options)
      segments.append(openSegment(metadata, in: directory, cache: cache))
    }
    return (rows, Run(segments))
  }

  @Test(arguments: setups)
  func `a get finds every row and no other`(_ setup: Setup) throws {
    var random = SeededRandom(seed: setup.seed)
    let cache = BlockCache(budgetBytes: setup.budget)
    let (rows, run) = try make(setup, cache, &random)
    let keys = Set(rows.map(\.key))
    for row in rows.shuffled(using: &random) {
      let options = ReadOptions(asksFilterFirst: Bool.random(using: &random))
      #expect(try find(row.key, in: run, options) == row)
      for absent in Self.neighbours(of: row.key, &random) where !keys.contains(absent) {
        #expect(try find(absent, in: run, options) == nil)
      }
    }
    #expect(cache.usedBytes <= max(setup.budget, 400_000))
  }

  @Test(arguments: setups)
  func `a cursor walks all rows forward and backward`(_ setup: Setup) throws {
    var random = SeededRandom(seed: setup.seed)
    let (rows, run) = try make(setup, BlockCache(budgetBytes: setup.budget), &random)
    for keepsBlocks in [true, false] {
      let cursor = run.cursor(keepsBlocks: keepsBlocks)
      var seen: [TestRow] = []
      try cursor.seekToFirst()
      while let row = cursor.copy {
        seen.append(row)
        try cursor.next()
      }
      #expect(seen == rows)
      seen = []
      try cursor.seekToLast()
      while let row = cursor.copy {
        seen.append(row)
        try cursor.previous()
      }
      #expect(seen == rows.reversed())
    }
  }

  @Test(arguments: setups)
  func `seeks and steps agree with a sorted array`(_ setup: Setup) throws {
    var random = SeededRandom(seed: setup.seed)
    let (rows, run) = try make(setup, BlockCache(budgetBytes: setup.budget), &random)
    let cursor = run.cursor()
    for _ in 0..<min(400, 20 * rows.count) {
      let base = rows.randomElement(using: &random)?.key ?? []
      let key = Self.neighbours(of: base, &random).randomElement(using: &random) ?? base
      var place: Int
      if Bool.random(using: &random) {
        try cursor.seek(atOrAfter: key.bytes)
        place = rows.firstIndex { !($0.key < key) } ?? rows.count
      } else {
        try cursor.seek(atOrBefore: key.bytes)
        place = rows.lastIndex { !(key < $0.key) } ?? -1
      }
      for _ in 0..<Int.random(in: 0..<5, using: &random) {
        #expect(cursor.copy == (rows.indices.contains(place) ? rows[place] : nil))
        guard cursor.isValid else { break }
        if Bool.random(using: &random) {
          try cursor.next()
          place += 1
        } else {
          try cursor.previous()
          place -= 1
        }
      }
      #expect(cursor.copy == (rows.indices.contains(place) ? rows[place] : nil))
    }
  }

  @Test func `a get that may not wait says so until the blocks are in memory`() throws {
    var random = SeededRandom(seed: 5)
    let setup = Setup(seed: 5, rows: 200, blockSize: 512, budget: 1 << 30, segments: 1)
    let (rows, run) = try make(setup, BlockCache(budgetBytes: 1 << 30), &random)
    let row = rows[100]
    let impatient = ReadOptions(mayBlock: false)
    #expect(try find(row.key, in: run, impatient)?.value == Array("would block".utf8))
    #expect(try find(row.key, in: run) == row)
    #expect(try find(row.key, in: run, impatient) == row)
  }

  @Test func `a row of sixteen megabytes has a block of its own`() throws {
    var random = SeededRandom(seed: 6)
    let large = random.bytes(1 << 10) + [UInt8](repeating: 7, count: 16 << 20)
    let rows = [
      TestRow(kind: .put, key: [0, 0, 0, 1, 1], value: [1]),
      TestRow(kind: .put, key: [0, 0, 0, 1, 2], value: large),
      TestRow(kind: .put, key: [0, 0, 0, 1, 3], value: [3]),
    ]
    let directory = MemoryDirectory()
    let metadata = try writeSegment(rows, to: directory)
    #expect(metadata.sizeBytes < 1 << 20)
    let run = Run([openSegment(metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))])
    for row in rows { #expect(try find(row.key, in: run) == row) }
  }

  @Test func `an empty run holds nothing`() throws {
    let run = Run([])
    #expect(try find([1], in: run) == nil)
    let cursor = run.cursor()
    try cursor.seekToFirst()
    #expect(!cursor.isValid)
    try cursor.seekToLast()
    #expect(!cursor.isValid)
    try cursor.seek(atOrBefore: [UInt8](repeating: 1, count: 3).bytes)
    #expect(!cursor.isValid)
  }

  /// Keys that differ little from `key`.
  static func neighbours(of key: [UInt8], _ random: inout SeededRandom) -> [[UInt8]] {
    var changed = key
    let place = Int.random(in: 0..<max(1, key.count), using: &random)
    if !changed.isEmpty { changed[place] ^= 1 << UInt8.random(in: 0..<8, using: &random) }
    return [
      key, key + [0], key + [255], Array(key.dropLast()), changed, Array(key.prefix(place)), [],
      random.bytes(8), key + key,
    ]
  }
}
