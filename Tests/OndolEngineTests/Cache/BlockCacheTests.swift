// The cache under several threads and with little room: pinned blocks stay, counts are correct, and
// nothing is left over.

import Synchronization
import Testing

@testable import OndolEngine

/// A number that threads increase.
private final class Counter: Sendable {
  private let number = Atomic<Int>(0)

  var count: Int { number.load(ordering: .relaxed) }
  func increase() { number.add(1, ordering: .relaxed) }
}

@Suite struct BlockCacheTests {
  private func makeRun(
    _ rows: [TestRow], _ cache: BlockCache, blockSize: Int = 512
  ) throws -> Run {
    let directory = MemoryDirectory()
    var options = SegmentOptions()
    options.blockSize = blockSize
    let half = rows.count / 2
    let parts = [Array(rows[..<half]), Array(rows[half...])]
    return Run(
      try parts.enumerated().map { index, part in
        let metadata = try writeSegment(
          part, number: UInt64(index + 1), to: directory, options: options)
        return openSegment(metadata, in: directory, cache: cache)
      })
  }

  private func smallRows(_ count: Int) -> [TestRow] {
    (0..<count).map { index in
      TestRow(
        kind: .put, key: [0, 0, 0, 1, UInt8(index >> 8), UInt8(index & 255)],
        value: [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: 30 + index % 50))
    }
  }

  @Test func `the budget is kept, and everything is given back in the end`() throws {
    let cache = BlockCache(budgetBytes: 20_000)
    do {
      let rows = smallRows(1_000)
      let run = try makeRun(rows, cache)
      var random = SeededRandom(seed: 31)
      for _ in 0..<5_000 {
        let row = rows[Int.random(in: 0..<rows.count, using: &random)]
        #expect(try find(row.key, in: run) == row)
        #expect(cache.usedBytes <= 20_000)
      }
      #expect(cache.usedBytes > 10_000)
    }
    #expect(cache.usedBytes == 0)
  }

  @Test func `a block that was read lately stays, one that was not goes`() throws {
    let rows = smallRows(1_000)
    let cache = BlockCache(budgetBytes: 60_000)
    let run = try makeRun(rows, cache)
    let favourite = rows[500]
    #expect(try find(favourite.key, in: run) == favourite)
    var loads = 0
    for row in rows {
      #expect(try find(row.key, in: run) == row)
      let before = cache.loadCount
      #expect(try find(favourite.key, in: run) == favourite)
      loads += cache.loadCount - before
    }
    // Once at most: the hand's first round finds every block referenced.
    #expect(loads <= 1)
  }

  @Test func `memory reserved elsewhere makes blocks go`() throws {
    let rows = smallRows(1_000)
    let cache = BlockCache(budgetBytes: 1 << 20)
    let run = try makeRun(rows, cache)
    for row in rows { #expect(try find(row.key, in: run) == row) }
    let before = cache.usedBytes
    cache.reserve(1 << 20)
    // The next load of a block makes the room. Charging bytes itself examines no block.
    #expect(cache.examinationCount == 0)
    let other = try makeRun(rows, cache)
    for row in rows { #expect(try find(row.key, in: other) == row) }
    // The rest belongs to open segments, and is the eighth that blocks have in any case.
    #expect(cache.usedBytes < (1 << 20) + before / 2 + (1 << 17))
    for row in rows { #expect(try find(row.key, in: run) == row) }
    cache.release(1 << 20)
    #expect(cache.usedBytes < 2 * before)
  }

  /// When unevictable parts took more than the budget, each miss once examined every slot of every
  /// segment twice, under one lock: some hundred microseconds a get at a few million rows.
  @Test(arguments: [0, 20_000, 200_000], [0, 10_000, 1 << 20])
  func `a miss looks at a bounded number of blocks, whatever else is charged`(
    _ budget: Int, _ reserved: Int
  ) throws {
    let rows = smallRows(4_000)
    let cache = BlockCache(budgetBytes: budget)
    let runs = try (0..<4).map { _ in try makeRun(rows, cache, blockSize: 256) }
    var random = SeededRandom(seed: UInt64(budget &+ reserved))
    for round in 0..<2_000 {
      if round == 500 { cache.reserve(reserved) }
      let run = runs[Int.random(in: 0..<runs.count, using: &random)]
      let row = rows[Int.random(in: 0..<rows.count, using: &random)]
      let (examined, loads) = (cache.examinationCount, cache.loadCount)
      #expect(try find(row.key, in: run) == row)
      let most = (cache.loadCount - loads) * BlockCache.mostExamined
      #expect(cache.examinationCount - examined <= most)
    }
    cache.release(reserved)
  }

  @Test func `places of segments that are gone do not pile up`() {
    var ring = BlockRing()
    for round in 0..<500 {
      let table = SlotTable(count: 20)
      ring.add(table)
      for slot in 0..<20 { ring.append(slot, of: table) }
      ring.remove(table)
      table.destroy { _, _ in }
      #expect(ring.count <= 128, "round \(round)")
    }
  }

  @Test func `blocks keep some room when memtables take all of it`() throws {
    let rows = smallRows(1_000)
    let cache = BlockCache(budgetBytes: 200_000)
    let run = try makeRun(rows, cache)
    cache.reserve(1 << 20)
    for row in rows { #expect(try find(row.key, in: run) == row) }
    let loads = cache.loadCount
    for _ in 0..<100 { #expect(try find(rows[7].key, in: run) == rows[7]) }
    #expect(cache.loadCount <= loads + 2)
    cache.release(1 << 20)
  }

  @Test func `cursors keep their current block while everything else is evicted`() throws {
    let rows = smallRows(1_000)
    let cache = BlockCache(budgetBytes: 0)
    let run = try makeRun(rows, cache)
    let cursors = try (0..<40).map { index in
      let cursor = run.cursor()
      let key = rows[index * 25].key
      try cursor.seek(atOrAfter: key.bytes)
      return cursor
    }
    for row in rows { #expect(try find(row.key, in: run) == row) }
    for (index, cursor) in cursors.enumerated() { #expect(cursor.copy == rows[index * 25]) }
  }

  @Test func `a block held by very many readers is copied for the next`() throws {
    let rows = smallRows(20)
    let cache = BlockCache(budgetBytes: 1 << 20)
    let run = try makeRun(rows, cache, blockSize: 1 << 14)
    var cursors: [RunCursor] = []
    let usedBefore = cache.usedBytes
    for _ in 0..<32_800 {
      let cursor = run.cursor()
      try cursor.seekToFirst()
      cursors.append(cursor)
    }
    #expect(cursors.allSatisfy { $0.copy == rows[0] })
    #expect(cache.usedBytes > usedBefore)
    cursors.removeAll()
    #expect(try find(rows[0].key, in: run) == rows[0])
  }

  @Test(arguments: [0, 8_000, 40_000, 1 << 20])
  func `threads read rightly while blocks come and go`(_ budget: Int) async throws {
    let rows = smallRows(600)
    let cache = BlockCache(budgetBytes: budget)
    let run = try makeRun(rows, cache)
    let failures = Counter()
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<6 {
        group.addTask { @concurrent in
          var random = SeededRandom(seed: UInt64(41 + task))
          let cursor = run.cursor(keepsBlocks: task % 3 != 0)
          for _ in 0..<3_000 {
            let place = Int.random(in: 0..<rows.count, using: &random)
            let row = rows[place]
            var isRight = (try? find(row.key, in: run)) == row
            if place % 4 == 0 {
              isRight = isRight && (try? cursor.seek(atOrAfter: row.key.bytes)) != nil
              isRight = isRight && cursor.copy == row
            } else if cursor.isValid {
              isRight = isRight && (try? cursor.next()) != nil
            }
            if !isRight { failures.increase() }
          }
        }
      }
    }
    #expect(failures.count == 0)
    #expect(cache.usedBytes <= max(budget, 60_000))
  }

  @Test func `segments opened and closed by threads leave nothing in the cache`() async throws {
    let rows = smallRows(100)
    let cache = BlockCache(budgetBytes: 6_000)
    let directory = MemoryDirectory()
    var options = SegmentOptions()
    options.blockSize = 256
    let metadata = try writeSegment(rows, to: directory, options: options)
    let failures = Counter()
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask { @concurrent in
          for round in 0..<100 {
            let run = Run([openSegment(metadata, in: directory, cache: cache)])
            let row = rows[(round * 7 + task) % rows.count]
            if (try? find(row.key, in: run)) != row { failures.increase() }
          }
        }
      }
    }
    #expect(failures.count == 0)
    #expect(cache.usedBytes == 0)
  }
}
