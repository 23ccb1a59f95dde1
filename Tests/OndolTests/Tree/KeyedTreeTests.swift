// The tree that keeps a node's children and their positions, compared with a sorted dictionary.

import OndolTestKit
import Testing

@testable import Ondol

private struct Entry: KeyedEntry {
  var orderedBy: [UInt8]
  var content: Int

  init(_ number: Int, _ content: Int) {
    orderedBy = [UInt8(number >> 8), UInt8(number & 0xff)]
    self.content = content
  }
}

@Suite struct KeyedTreeTests {
  @Test(arguments: Seeds.first(3))
  func `After any insertions and removals it is the sorted list, and old versions stay`(
    seed: UInt64
  ) {
    var random = OndolTestKit.SeededRandom(seed: seed)
    let start = random.below(3) * 700
    var model = Dictionary(uniqueKeysWithValues: (0..<start).map { ($0, Entry($0, 0)) })
    var tree = KeyedTree(sorted: model.sorted { $0.key < $1.key }.map(\.value))
    var (kept, keptModel) = (tree, model)
    for step in 0..<1_500 {
      let number = random.below(1_600)
      // Grows, shrinks to nothing, grows again.
      if random.chance(step / 500 == 1 ? 4 : 1, in: 5) {
        let gone = random.chance(1, in: 2) ? model.keys.min() ?? number : number
        tree.remove(Entry(gone, 0).orderedBy)
        model[gone] = nil
      } else {
        let entry = Entry(number, step)
        tree.insert(entry)
        model[number] = entry
      }
      guard step % 50 == 49 else { continue }
      check(tree, model)
      check(kept, keptModel)
      #expect((kept == tree) == (keptModel == model), "SEED=\(seed)")
      if random.chance(1, in: 2) { (kept, keptModel) = (tree, model) }
    }
    for number in model.keys.sorted() { tree.remove(Entry(number, 0).orderedBy) }
    check(tree, [:])
  }

  private func check(_ tree: KeyedTree<Entry>, _ model: [Int: Entry]) {
    let sorted = model.sorted { $0.key < $1.key }
    #expect(Array(tree) == sorted.map(\.value))
    #expect(tree.count == sorted.count && tree.isEmpty == sorted.isEmpty)
    var rank = 0
    for number in stride(from: 0, through: 1_601, by: 1) {
      let bound = Entry(number, 0).orderedBy
      while rank < sorted.count, sorted[rank].key < number { rank += 1 }
      let next = rank < sorted.count ? sorted[rank].value : nil
      guard tree.find(bound) == (rank, model[number]), tree.first(atOrAfter: bound) == next,
        tree.last(before: bound) == (rank > 0 ? sorted[rank - 1].value : nil)
      else {
        Issue.record("another answer at \(number)")
        return
      }
    }
  }
}
