// Which rows of the catalog's two copies count in a salvage, depending on the loss in each.

import Testing

@testable import Ondol
@testable import OndolEngine

@Suite struct `The two copies of a catalog` {
  private let name = CatalogKey.symbol(0, of: Keyspace(family: 1, member: 1))
  private let other = CatalogKey.symbol(1, of: Keyspace(family: 1, member: 1))
  private let family = CatalogKey.family("items")

  private func family(generation: UInt64) -> [UInt8] {
    FamilyRow(number: 1, generation: generation, nextMember: 2).bytes
  }

  private func choice(
    _ catalog: [[UInt8]: [UInt8]], _ mirror: [[UInt8]: [UInt8]], whole: (Bool, Bool)
  ) -> [[UInt8]: [UInt8]] {
    var copies = SalvageCopies()
    for (key, value) in catalog { copies.take(SalvagedRow(key: key, value: value)) }
    for (key, value) in mirror {
      copies.take(SalvagedRow(key: CatalogKey.mirrored(key), value: value))
    }
    copies.isCatalogWhole = whole.0
    copies.isMirrorWhole = whole.1
    return Dictionary(uniqueKeysWithValues: copies.rows.map { ($0.row.key, $0.row.value) })
  }

  @Test func `A whole catalog says everything`() {
    #expect(choice([name: [1]], [name: [2], other: [3]], whole: (true, false)) == [name: [1]])
    #expect(choice([name: [1]], [name: [2], other: [3]], whole: (true, true)) == [name: [1]])
  }

  @Test func `A whole mirror alone is used beside a catalog that is not whole`() {
    #expect(choice([name: [1], other: [3]], [name: [2]], whole: (false, true)) == [name: [2]])
  }

  @Test func `A database without a mirror has its catalog`() {
    #expect(choice([name: [1]], [:], whole: (false, true)) == [name: [1]])
  }

  @Test func `Of two that are not whole each fills in, and the later state counts`() {
    let (old, new) = (family(generation: 3), family(generation: 4))
    #expect(
      choice(
        [family: old, name: [1]], [family: new, name: [2], other: [3]], whole: (false, false))
        == [family: new, name: [2], other: [3]])
    #expect(
      choice(
        [family: new, name: [1]], [family: old, name: [2], other: [3]], whole: (false, false))
        == [family: new, name: [1], other: [3]])
  }

  @Test func `A row that cannot be understood is taken from the other copy`() {
    var copies = SalvageCopies()
    copies.take(SalvagedRow(key: family, value: [0xff]))
    copies.take(SalvagedRow(key: CatalogKey.mirrored(family), value: family(generation: 1)))
    var catalog = SalvageCatalog()
    for (row, other) in copies.rows { catalog.take(row, or: other) }
    #expect(catalog.losses == [])
  }
}
