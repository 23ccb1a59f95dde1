// Indexes of collection groups. One row of the catalog lists the indexes of a group, and each
// pattern of the group has an index of its own, in its family's shard. Creating a pattern reads and
// guards that row, so no pattern is made without the indexes of its group.

internal import OndolEngine

extension Rows {
  /// The contents of a group's row; nothing when there is none.
  func groupIndexes(_ key: [UInt8]) throws(DatabaseError) -> [IndexKind] {
    guard let bytes = try row(key) else { return [] }
    do throws(MalformedBytes) {
      var reader = ByteReader(bytes.bytes)
      var kinds: [IndexKind] = []
      for _ in 0..<(try reader.count(atMost: Int(Keyspace.familyCapacity))) {
        kinds.append(try reader.indexKind())
      }
      return kinds
    } catch {
      throw DatabaseError(catalog: error)
    }
  }
}

extension Database {
  /// Changes the indexes of a group.
  func changeGroup(
    _ id: String, _ change: (inout [IndexKind]) -> Void
  ) async throws(DatabaseError) {
    let key = CatalogKey.group(id)
    _ = try await commit(.upkeep, durability: nil) { (snapshot) throws(DatabaseError) in
      let known = try await read(snapshot) { (rows) throws(DatabaseError) in
        try rows.groupIndexes(key)
      }
      var derivation = Derivation(outcome: (), batch: Batch())
      var kinds = known
      change(&kinds)
      guard kinds != known else { return derivation }
      derivation.batch.basis = snapshot.sequence
      derivation.batch.guardUnchanged(key.bytes)
      var row: [UInt8] = []
      row.appendVarint(kinds.count)
      for kind in kinds { row.append(kind) }
      derivation.batch.putCatalogRow(key, row)
      return derivation
    }
  }

  /// The patterns of a group, in the order of their keyspaces. Excludes those of collections whose
  /// own keys are missing: an open with the key makes the indexes that they lack.
  func patterns(ofGroup id: String) async throws(DatabaseError) -> [CollectionPattern] {
    try await families().filter { !catalog.keys.isLocked($0) }.flatMap { family in
      family.collections.filter { $0.key.collectionID.text.utf8.elementsEqual(id.utf8) }
    }.sorted { $0.value.keyspace.rawValue < $1.value.keyspace.rawValue }.map(\.key)
  }

  /// A collection of each pattern that ends with the id; the one at the top when there is none yet.
  /// Any collection of a pattern represents its indexes.
  package func collections(
    called id: String
  ) async throws(DatabaseError) -> [CollectionReference] {
    let paths = try await patterns(ofGroup: id).map { pattern in
      pattern.collectionIDs.joined(separator: "/any/")
    }
    return (paths.isEmpty ? [id] : paths).map { collection($0) }
  }

  /// Declares and builds an index in each pattern of a group that lacks it.
  func buildGroupIndex(
    _ kind: IndexKind, of id: String, _ progress: (IndexProgress) -> Void
  ) async throws(DatabaseError) {
    for pattern in try await patterns(ofGroup: id) {
      try await createIndex(kind, of: pattern, progress)
    }
  }
}
