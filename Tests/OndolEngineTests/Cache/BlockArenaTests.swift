// The slabs compared with a model that only remembers what it was given. In any order of
// allocations and releases, no two runs share a byte, none crosses the end of its slab, and
// released runs are used again.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct BlockArenaTests {
  /// The runs in use, ordered by address.
  private struct Model {
    var runs: [(address: UInt, units: Int)] = []
    var usedBytes = 0

    mutating func add(_ address: UInt, _ units: Int) {
      var (low, high) = (0, runs.count)
      while low < high {
        let middle = (low + high) / 2
        if runs[middle].address < address { low = middle + 1 } else { high = middle }
      }
      #expect(address % 64 == 0)
      if low > 0 { #expect(end(of: low - 1) <= address, "overlaps what is before it") }
      runs.insert((address, units), at: low)
      if low + 1 < runs.count {
        #expect(end(of: low) <= runs[low + 1].address, "overlaps what is behind it")
      }
      let slab = UInt(BlockArena.slabSize)
      #expect(address / slab == (end(of: low) - 1) / slab, "leaves its slab")
      // Everything before the runs, except for a rest at the slab's end that is smaller than a
      // unit.
      let front = BlockArena.slabSize - (BlockArena.longestRun + 1) * BlockArena.unit
      #expect(address % slab >= UInt(front), "lies on the slab's tags")
      usedBytes += units * BlockArena.unit
    }

    mutating func take(_ index: Int) -> UInt {
      usedBytes -= runs[index].units * BlockArena.unit
      return runs.remove(at: index).address
    }

    private func end(of index: Int) -> UInt {
      runs[index].address + UInt(runs[index].units * BlockArena.unit)
    }
  }

  /// Realistic lengths, many of a few units and some of hundreds, and sometimes any.
  private func units(_ random: inout OndolTestKit.SeededRandom) -> Int {
    switch random.below(8) {
    case 0: 1 + random.below(3)
    case 1: 1 + random.below(820)
    case 2: 63 + random.below(4)
    default: 20 + random.below(12)
    }
  }

  @Test(arguments: Seeds.first(8))
  func `runs never overlap, and all memory comes back`(seed: UInt64) {
    var random = OndolTestKit.SeededRandom(seed: seed)
    var arena = BlockArena()
    var model = Model()
    var peak = 0
    for phase in 0..<6 {
      // In turns, more allocations than releases, and more releases than allocations.
      let growth = phase % 2 == 0 ? 7 : 3
      for _ in 0..<1_500 {
        if model.runs.isEmpty || random.chance(growth, in: 10) {
          let count = units(&random)
          let address = arena.allocate(count)
          #expect(address != 0, "SEED=\(seed)")
          model.add(address, count)
        } else {
          arena.free(model.take(random.below(model.runs.count)))
        }
        peak = max(peak, model.usedBytes)
        let mapped = arena.mappedBytes
        #expect(mapped >= model.usedBytes)
        // Holes are used again: at most a fifth more than was ever in use, and a spare slab.
        #expect(mapped <= peak + peak / 5 + 2 * BlockArena.slabSize, "SEED=\(seed)")
      }
    }
    while !model.runs.isEmpty { arena.free(model.take(random.below(model.runs.count))) }
    checkEmpty(&arena)
  }

  /// One slab is kept, and its parts have merged.
  private func checkEmpty(_ arena: inout BlockArena) {
    var mapped = arena.mappedBytes
    #expect(mapped == BlockArena.slabSize)
    let whole = arena.allocate(BlockArena.longestRun)
    mapped = arena.mappedBytes
    #expect(whole != 0 && mapped == BlockArena.slabSize)
    arena.free(whole)
  }

  @Test func `empty slabs go back to the system, except for one`() {
    var arena = BlockArena()
    let slabs = (0..<3).map { _ in arena.allocate(BlockArena.longestRun) }
    for (index, slab) in slabs.enumerated() {
      let mapped = arena.mappedBytes
      #expect(mapped == (3 - max(0, index - 1)) * BlockArena.slabSize)
      arena.free(slab)
    }
    checkEmpty(&arena)
  }
}
