// The two copies of the catalog in a database that is being salvaged, the catalog itself and its
// mirror, and which of their rows are used. An undamaged copy is used alone. When both are damaged,
// each supplies what the other lacks.

internal import OndolEngine

/// The rows of the catalog and of its mirror that could be read.
struct SalvageCopies {
  /// Whether, as far as is known, nothing of the catalog is lost.
  var isCatalogWhole = true
  /// Whether nothing of the mirror is lost.
  var isMirrorWhole = true
  /// By the keys of the catalog.
  private var catalog: [[UInt8]: [UInt8]] = [:]
  private var mirror: [[UInt8]: [UInt8]] = [:]

  /// Takes a row of one of the two.
  mutating func take(_ row: SalvagedRow) {
    if row.key.starts(with: Keyspace.mirror.prefix) {
      mirror[CatalogKey.unmirrored(row.key)] = row.value
    } else {
      catalog[row.key] = row.value
    }
  }

  /// The rows to use, in the order of their keys, each with the other copy's value if that differs.
  var rows: [(row: SalvagedRow, other: [UInt8]?)] {
    let values =
      if isCatalogWhole || mirror.isEmpty { catalog } else if isMirrorWhole { mirror } else { both }
    return values.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { key, value in
      let other = [catalog[key], mirror[key]].compactMap(\.self).first { $0 != value }
      return (SalvagedRow(key: key, value: value), other)
    }
  }

  /// The rows of both. If they differ, the mirror's is used, except for families of which the
  /// catalog has a later state.
  private var both: [[UInt8]: [UInt8]] {
    var later: Set<UInt32> = []
    for (key, value) in catalog where key.starts(with: CatalogKey.families) {
      guard let ours = try? FamilyRow(value.bytes),
        let theirs = mirror[key].flatMap({ try? FamilyRow($0.bytes) })
      else { continue }
      if theirs.isOlder(than: ours) { later.insert(ours.number) }
    }
    return mirror.merging(
      catalog.filter { key, value in
        mirror[key] == nil || Self.family(of: key, value).map(later.contains) ?? false
      }
    ) { $1 }
  }

  /// The number of the family that a row concerns.
  private static func family(of key: [UInt8], _ value: [UInt8]) -> UInt32? {
    if key.starts(with: CatalogKey.families) { return (try? FamilyRow(value.bytes))?.number }
    guard key.starts(with: CatalogKey.keyspaces) else { return nil }
    return (try? CatalogKey.parse(key.bytes)).map {
      $0.keyspace.rawValue / Keyspace.familyCapacity
    }
  }
}
