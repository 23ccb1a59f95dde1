// The declared indexes that a write affects: those above its place, and those at it and below.
// However they are searched, they must be those that a walk over all of them finds.

import OndolEngine
import OndolTestKit
import Testing

@testable import Ondol

@Suite struct TreeIndexLookupTests {
  private static func path(_ random: inout SeededRandom, _ most: Int) throws -> TreePath {
    var path = TreePath.root
    for _ in 0..<random.below(most) {
      path = try path.appending(key: ["a", "b", "1", "12", "a b"][random.below(5)])
    }
    return path
  }

  @Test(arguments: Seeds.first(8))
  func `A write is shown the indexes above and below it, and no others`(seed: UInt64) async throws {
    var random = SeededRandom(seed: seed)
    let database = try await Database.underTest()
    let declared = random.below(20)
    for _ in 0..<declared {
      let node = try Self.path(&random, 4)
      let reference = node.keys.reduce(database.tree) { $0.child($1) }
      try await reference.createIndex(byChild: ["x", "x/y", "a"][random.below(3)])
    }
    let rows = Rows(try database.engineSnapshot(), database.catalog, mayBlock: true)
    let all = try TreeIndexDefinition.all(in: rows)
    for places in [1, 1_000] {
      var lookup = TreeIndexLookup(rows)
      try lookup.expect(places: places)
      for _ in 0..<100 {
        let path = try Self.path(&random, 5)
        let above = all.filter {
          path.rowKey.count > $0.node.count && path.rowKey.starts(with: $0.node)
        }
        #expect(Set(try lookup.above(path)) == Set(above), "ONDOL_SEED=\(seed), \(path)")
        let within = all.filter { $0.node.starts(with: path.rowKey) }
        #expect(try lookup.within(path) == within, "ONDOL_SEED=\(seed), \(path)")
      }
    }
  }
}
