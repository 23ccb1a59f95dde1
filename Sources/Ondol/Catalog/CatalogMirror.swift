// The mirror: a second copy of every row of the catalog, under the same key in another keyspace,
// written in the same commit. Documents hold numbers for the names of their fields, so an
// unreadable block of the catalog would take the names from readable documents. A salvage takes
// them from the mirror, and a check compares the two. Nothing else reads a mirror.
//
// Its keyspace is number 0 of family 1, so no family assigns its number 0. There the mirror is
// never in the catalog's shard, unless there is only one shard, and needs no shard that is not in
// use. It also comes before all documents. A salvage walks all rows once in the order of their
// keys, so it has the names before it meets the documents that use them.

internal import OndolEngine

extension Keyspace {
  /// The keyspace of the catalog's mirror.
  static let mirror = Keyspace(family: 1, member: 0)
  /// The number of a family's first keyspace within the family.
  static let firstMember: UInt32 = 1
}

/// A row of the catalog for a batch.
struct CatalogRow: Sendable {
  var key: [UInt8]
  var value: [UInt8]
}

extension CatalogKey {
  /// The key of the mirror's row for a row of the catalog.
  static func mirrored(_ key: [UInt8]) -> [UInt8] {
    Keyspace.mirror.prefix + key.dropFirst(Keyspace.catalog.prefix.count)
  }

  /// The key of the catalog's row for a row of the mirror.
  static func unmirrored(_ key: [UInt8]) -> [UInt8] {
    Keyspace.catalog.prefix + key.dropFirst(Keyspace.mirror.prefix.count)
  }
}

extension Batch {
  /// Adds a row to the catalog, and to its mirror.
  mutating func putCatalogRow(
    _ key: [UInt8], _ value: [UInt8], stamps: [(offset: Int, form: StampForm)] = []
  ) {
    put(key.bytes, value.bytes, stamps: stamps)
    put(CatalogKey.mirrored(key).bytes, value.bytes, stamps: stamps)
  }

  /// Removes a row from the catalog and its mirror.
  mutating func deleteCatalogRow(_ key: [UInt8]) {
    delete(key.bytes)
    delete(CatalogKey.mirrored(key).bytes)
  }
}

extension [SalvagedRow] {
  /// All rows of a catalog and its mirror, in the order of their keys.
  var withMirror: [SalvagedRow] {
    let rows = sorted { $0.key.lexicographicallyPrecedes($1.key) }
    return rows + rows.map { SalvagedRow(key: CatalogKey.mirrored($0.key), value: $0.value) }
  }
}
