// The tree of a live result compared with a sorted array, and the difference of two trees compared
// with two sets.

import OndolTestKit
import Testing

@testable import Ondol

@Suite struct RankedTreeTests {
  private let orders = [SortOrder(field: .documentID)]

  private func entry(_ number: Int, _ database: Database) -> RankedDocument {
    RankedDocument(
      keys: [.integer(Int64(number))],
      document: DocumentSnapshot(
        reference: database.collection("c").document("d\(number)"), contents: nil))
  }

  private func numbers(_ entries: [RankedDocument]) -> [Int64?] {
    entries.map { if case .integer(let number) = $0.keys[0] { number } else { nil } }
  }

  @Test(arguments: Seeds.first(3))
  func `After any insertions and removals it is the sorted list, and old versions stay`(
    seed: UInt64
  ) async throws {
    let database = try await Database.underTest()
    var random = OndolTestKit.SeededRandom(seed: seed)
    let start = random.below(3) * 700
    var model = Dictionary(uniqueKeysWithValues: (0..<start).map { ($0, entry($0, database)) })
    var tree = RankedTree(orders, sorted: model.sorted { $0.key < $1.key }.map(\.value))
    var (kept, keptModel) = (tree, model)
    for step in 0..<1_500 {
      let number = random.below(1_600)
      // Grows, shrinks to little, grows again.
      if random.chance(step / 500 == 1 ? 4 : 1, in: 5) {
        #expect((tree.remove([.integer(Int64(number))]) != nil) == (model[number] != nil))
        model[number] = nil
      } else {
        let new = entry(number, database)
        #expect(tree.insert(new) === model.updateValue(new, forKey: number))
      }
      guard step % 100 == 99 else { continue }
      let sorted = model.sorted { $0.key < $1.key }
      #expect(tree.count == sorted.count)
      #expect(tree.documents.map(\.documentID) == sorted.map { "d\($0.key)" })
      #expect(tree.first === sorted.first?.value && tree.last === sorted.last?.value)
      for (rank, (number, entry)) in sorted.enumerated() {
        let found = tree.find([.integer(Int64(number))])
        #expect(found.rank == rank && found.entry === entry)
      }
      let difference = kept.difference(to: tree)
      let gone = keptModel.filter { model[$0.key] !== $0.value }.keys.sorted().map { Int64($0) }
      let come = model.filter { keptModel[$0.key] !== $0.value }.keys.sorted().map { Int64($0) }
      #expect(numbers(difference.old) == gone)
      #expect(numbers(difference.new) == come)
      #expect(kept.documents.count == keptModel.count)
      if random.chance(1, in: 2) { (kept, keptModel) = (tree, model) }
    }
    try await database.close()
  }
}
