// The two copies of the catalog in a database that is being saved, the catalog itself and its
// mirror, and which rows of which of them count. A copy of which nothing is lost says everything.
// Where something is lost of both, each fills in what the other lacks.

internal import OndolEngine

/// The rows of the catalog and of its mirror that could be read.
struct SalvageCopies {
  /// Whether nothing of the catalog is lost, as far as anybody can tell.
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

  /// The rows that count, in the order of their keys, each with what the other copy has in its
  /// place, if that is something else.
  var rows: [(row: SalvagedRow, other: [UInt8]?)] {
    let values =
      if isCatalogWhole || mirror.isEmpty { catalog } else if isMirrorWhole { mirror } else { both }
    return values.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { key, value in
      let other = [catalog[key], mirror[key]].compactMap(\.self).first { $0 != value }
      return (SalvagedRow(key: key, value: value), other)
    }
  }

  /// The rows of both. Where they differ the mirror's counts, except of families that the catalog
  /// knows a later state of.
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

  /// The number of the family that a row is about.
  private static func family(of key: [UInt8], _ value: [UInt8]) -> UInt32? {
    if key.starts(with: CatalogKey.families) { return (try? FamilyRow(value.bytes))?.number }
    guard key.starts(with: CatalogKey.keyspaces) else { return nil }
    return (try? CatalogKey.parse(key.bytes)).map {
      $0.keyspace.rawValue / Keyspace.familyCapacity
    }
  }
}
