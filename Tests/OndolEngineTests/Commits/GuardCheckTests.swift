// Guards without an engine: they find what examining every row would find, whatever has been sealed
// and however often the batch must look outside.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct GuardCheckTests {
  private func key(_ number: Int) -> [UInt8] {
    [0, 0, 0x10, 0, UInt8(number >> 8), UInt8(number & 0xff)]
  }

  @Test(arguments: Seeds.first(6))
  func `A batch is stale when a row it guards has changed since its basis`(seed: UInt64) throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var rows: [(key: Int, sequence: UInt64)] = []
    var memtables: [Memtable] = []
    for sequence: UInt64 in 1...600 {
      if sequence % 150 == 1 { memtables.insert(Memtable(capacity: 1 << 20), at: 0) }
      memtables[0].begin(SequenceNumber(rawValue: sequence), log: FileNumber(rawValue: 1))
      for _ in 0..<(1 + random.below(6)) {
        let number = random.below(4_000)
        rows.append((number, sequence))
        memtables[0].add(key(number).bytes, SequenceNumber(rawValue: sequence), .put, [1].bytes)
      }
      memtables[0].link()
    }
    let view = View(
      shards: [ShardView(active: memtables[0], sealed: Array(memtables.dropFirst()))],
      reads: ReadingThreads(Environment.memory().threads))
    let keys = RecentKeys(shardCount: 1, limitBytes: 1 << 20)
    for _ in 0..<400 {
      let basis = UInt64(random.below(601))
      var batch = Batch()
      batch.basis = SequenceNumber(rawValue: basis)
      var ranges: [Range<Int>] = []
      for _ in 0..<(1 + random.below(3)) {
        let lower = random.below(4_000)
        let range = lower..<(lower + 1 + random.below(random.pick([1, 20, 2_000])))
        ranges.append(range)
        if range.count == 1 {
          batch.guardUnchanged(key(lower).bytes)
        } else {
          batch.guardUnchanged(from: key(lower).bytes, to: key(range.upperBound).bytes)
        }
      }
      let isStale = rows.contains { row in
        row.sequence > basis && ranges.contains { $0.contains(row.key) }
      }
      var check = GuardCheck()
      do throws(EngineError) {
        let last = SequenceNumber(rawValue: 600)
        while try !check.isKnown(batch, last, view, keys) {
          try check.look(batch)
        }
        #expect(!isStale, "SEED=\(seed)")
      } catch {
        #expect(error == .stale && isStale, "SEED=\(seed): \(error)")
      }
    }
  }

  // Other commits wait at the point where commits get their order. So a long check happens
  // elsewhere, and the later commits are checked afterwards.
  @Test func `A long check runs outside, and finds later commits`() throws {
    let memtable = Memtable(capacity: 1 << 20)
    func add(_ number: Int, _ sequence: UInt64) {
      memtable.begin(SequenceNumber(rawValue: sequence), log: FileNumber(rawValue: 1))
      memtable.add(key(number).bytes, SequenceNumber(rawValue: sequence), .put, [1].bytes)
      memtable.link()
    }
    for number in 0..<1_000 { add(number, UInt64(number + 1)) }
    for number in 2_000..<3_000 { add(number, UInt64(number)) }
    let view = View(
      shards: [ShardView(active: memtable)],
      reads: ReadingThreads(Environment.memory().threads))
    let keys = RecentKeys(shardCount: 1, limitBytes: 1 << 20)
    var batch = Batch()
    batch.basis = SequenceNumber(rawValue: 1_000)
    batch.guardUnchanged(from: key(0).bytes, to: key(1_500).bytes)
    var check = GuardCheck()
    let isKnown = try check.isKnown(batch, SequenceNumber(rawValue: 2_999), view, keys)
    #expect(!isKnown)
    try check.look(batch)
    let isKnownThen = try check.isKnown(batch, SequenceNumber(rawValue: 2_999), view, keys)
    #expect(isKnownThen)
    add(700, 3_000)
    do throws(EngineError) {
      _ = try check.isKnown(batch, SequenceNumber(rawValue: 3_000), view, keys)
      Issue.record("the change was not found")
    } catch {
      #expect(error == .stale)
    }
  }

  @Test func `Keys are kept for as long as guarded commits come`() {
    var keys = RecentKeys(shardCount: 1, limitBytes: 1 << 20)
    #expect(!keys.isWanted(from: SequenceNumber(rawValue: 1)))
    keys.noteGuard(behind: SequenceNumber(rawValue: 1_000))
    #expect(keys.isWanted(from: SequenceNumber(rawValue: 101_000)))
    #expect(!keys.isWanted(from: SequenceNumber(rawValue: 101_001)))
  }
}
