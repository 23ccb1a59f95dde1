// Guards of ranges in memtables: what they find, and how few rows they examine where other commits
// wait.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct RangeGuardTests {
  private func key(_ number: Int) -> [UInt8] {
    [0, 0, 0x10, 0, UInt8(number >> 8), UInt8(number & 0xff)]
  }

  @Test(arguments: Seeds.first(4))
  func `Changes of a range are found as by looking at every row`(seed: UInt64) {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let memtable = Memtable(capacity: 1 << 20)
    var rows: [(key: Int, sequence: UInt64)] = []
    for sequence: UInt64 in 1...400 {
      memtable.begin(SequenceNumber(rawValue: sequence), log: FileNumber(rawValue: 1))
      for _ in 0..<(1 + random.below(20)) {
        let number = random.below(3_000)
        rows.append((number, sequence))
        memtable.add(
          key(number).bytes, SequenceNumber(rawValue: sequence), .put,
          random.bytes(random.below(50)).bytes)
      }
      memtable.link()
    }
    for _ in 0..<2_000 {
      let lower = random.below(3_000)
      let upper = lower + random.below(random.pick([4, 50, 3_000]))
      let basis = UInt64(random.below(401))
      let start = memtable.place(ofCommitsAfter: SequenceNumber(rawValue: basis))
      var steps = Int.max
      let found = memtable.hasChange(
        from: key(lower).bytes, to: key(upper).bytes, after: SequenceNumber(rawValue: basis),
        among: start..<memtable.nodesEnd, steps: &steps)
      let expected = rows.contains {
        $0.sequence > basis && (lower..<max(lower, upper)).contains($0.key)
      }
      #expect(found == expected, "SEED=\(seed), \(lower)..<\(upper) after \(basis)")
    }
  }

  // A transaction that had read a collection of 250,000 fresh documents once walked through all of
  // them at every other commit, at a point where all commits wait.
  @Test func `A long range costs as much as later rows, and a short one as much as its own`() {
    let memtable = Memtable(capacity: 4 << 20)
    for number in 0..<20_000 {
      memtable.begin(
        SequenceNumber(rawValue: UInt64(number + 1)), log: FileNumber(rawValue: 1))
      memtable.add(
        key(number).bytes, SequenceNumber(rawValue: UInt64(number + 1)), .put, [1].bytes)
      memtable.link()
    }
    func steps(_ lower: Int, _ upper: Int, after basis: UInt64) -> Int {
      let start = memtable.place(ofCommitsAfter: SequenceNumber(rawValue: basis))
      var left = 1_000_000
      let found = memtable.hasChange(
        from: key(lower).bytes, to: key(upper).bytes, after: SequenceNumber(rawValue: basis),
        among: start..<memtable.nodesEnd, steps: &left)
      #expect(found == false)
      return 1_000_000 - left
    }
    // All except the last ten rows, of which only those ten are new.
    #expect(steps(0, 19_990, after: 19_990) < 600)
    // Three rows, and all others came after them.
    #expect(steps(0, 3, after: 3) <= 4)
  }

  @Test func `A search that is not given enough steps says that it does not know`() {
    let memtable = Memtable(capacity: 1 << 20)
    for number in 0..<1_000 {
      memtable.begin(
        SequenceNumber(rawValue: UInt64(number + 1)), log: FileNumber(rawValue: 1))
      memtable.add(
        key(number).bytes, SequenceNumber(rawValue: UInt64(number + 1)), .put, [1].bytes)
      memtable.link()
    }
    var steps = 100
    let start = memtable.place(ofCommitsAfter: SequenceNumber(rawValue: 500))
    #expect(
      memtable.hasChange(
        from: key(0).bytes, to: key(500).bytes, after: SequenceNumber(rawValue: 500),
        among: start..<memtable.nodesEnd, steps: &steps) == nil)
    #expect(steps == 0)
  }

  @Test func `A batch whose ranges take long to check is placed, or refused, all the same`()
    async throws
  {
    let engine = try await Engine.open(at: "db", environment: .memory())
    try await engine.put([rowKey("a"): [0]])
    let basis = try engine.snapshot().sequence
    for number in 0..<3_000 { try await engine.put([rowKey("m\(number)"): [1]]) }
    for (lower, upper, isAccepted) in [
      ("a", "m", true), ("a", "m1", false), ("n", "z", true), ("m2", "m3", false),
    ] {
      var batch = Batch()
      batch.basis = basis
      batch.guardUnchanged(from: rowKey(lower).bytes, to: rowKey(upper).bytes)
      batch.put(rowKey("zz").bytes, [1].bytes)
      let outcome: EngineError?
      do throws(EngineError) {
        _ = try await engine.commit(batch, durability: .process)
        outcome = nil
      } catch {
        outcome = error
      }
      #expect(outcome == (isAccepted ? nil : .stale), "\(lower)..<\(upper)")
    }
    try await engine.close()
  }
}
