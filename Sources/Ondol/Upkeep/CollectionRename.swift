// Renames a collection. Its documents' keys contain the number of a keyspace and no name, so only
// the catalog changes, in one commit. A root collection's family gets another row `02`, and each
// keyspace of a pattern below it another row `03 … 00`. Nothing else is written, whatever is in the
// collection. Readers, writers and listeners notice the change by these rows.

internal import OndolEngine

/// The changes that rename a collection.
struct RenamedCollection: Sendable {
  var edit: CatalogEdit
  /// The family under its old name, when it is a root collection's.
  var forgotten: Family?
}

extension Rows {
  /// The changes that rename a collection; nil when there is none.
  ///
  /// Throws `.alreadyExists` when there are documents under the new name, or declarations.
  func renaming(_ renaming: CollectionRenaming) throws(DatabaseError) -> RenamedCollection? {
    let (pattern, target) = (renaming.pattern, renaming.target)
    guard let family = try catalog.family(pattern.root, in: self),
      family.collections.keys.contains(where: { renaming.renamed($0) != nil })
    else { return nil }
    let isOfRoot = pattern.ancestorCount == 0
    let other = isOfRoot ? try catalog.family(target.root, in: self) : family
    let back = try CollectionRenaming(target, pattern)
    let obstacles = (other?.collections ?? [:]).filter { back.renamed($0.key) != nil }
    for (known, entry) in obstacles {
      var walk = RangeWalk(self, [KeyRange(prefix: entry.keyspace.prefix)])
      guard try !walk.next(), !entry.isDeclared else {
        throw DatabaseError(
          .alreadyExists,
          "\(pattern) cannot be called \(target): there are documents in \(known), or something is"
            + " declared of it", path: "\(known)")
      }
    }
    // The code that carries the edit out may read, where a retry is possible.
    let patient = Rows(snapshot, catalog, mayBlock: true)
    if isOfRoot, let other, other.hasOwnKey {
      throw DatabaseError(
        .alreadyExists,
        "\(pattern) cannot be called \(target): that is a collection with a key of its own; drop it"
          + " first", path: "\(target)")
    }
    var edit = CatalogEdit(family, in: patient)
    for (known, entry) in obstacles { edit.forget(try catalogKeys(of: entry), of: known) }
    if isOfRoot, let other {
      let (lower, upper) = CatalogKey.keyspaces(ofFamily: other.row.number)
      edit.forget(try keys(in: KeyRange(lower: lower, upper: upper)), of: nil)
    }
    edit.rename(renaming)
    return RenamedCollection(edit: edit, forgotten: isOfRoot ? family : nil)
  }

  /// The keys of the catalog's rows about a pattern and its indexes.
  private func catalogKeys(of entry: CollectionEntry) throws(DatabaseError) -> [[UInt8]] {
    var found: [[UInt8]] = []
    for keyspace in [entry.keyspace] + entry.allIndexes.map(\.keyspace) {
      let key = CatalogKey.keyspace(keyspace).dropLast()
      found += try keys(in: KeyRange(prefix: Array(key)))
    }
    return found
  }

  private func keys(in range: KeyRange) throws(DatabaseError) -> [[UInt8]] {
    var found: [[UInt8]] = []
    var walk = RangeWalk(self, [range])
    while try walk.next() { found.append(walk.cursor.key.array) }
    return found
  }
}

extension Database {
  /// Renames a collection, unless there is none with the old name.
  ///
  /// Throws `.failedPrecondition` when one of the names is of a collection that is kept equal to a
  /// server's.
  func rename(_ renaming: CollectionRenaming) async throws(DatabaseError) {
    try await refuseFollowed(renaming.pattern, "renamed")
    try await refuseFollowed(renaming.target, "replaced by another")
    let roots = Set([renaming.pattern.root, renaming.target.root].map { ExactText($0) })
      .map(\.text).sorted { ValueOrder.compare($0, $1) < 0 }
    let (isRenamed, _) = try await commit(.renaming(roots: roots), durability: nil) {
      (snapshot) throws(DatabaseError) in
      let found = try await read(snapshot) { (rows) throws(DatabaseError) in
        try rows.renaming(renaming)
      }
      guard var found else { return Derivation(outcome: false, batch: Batch()) }
      var batch = Batch()
      batch.basis = snapshot.sequence
      found.edit.write(to: &batch)
      batch.note = CommitNote(.renamed(renaming))
      if catalog.keepsChanges { batch.annotate(ChangeRecord.renamed(renaming).bytes) }
      return Derivation(
        outcome: true, batch: batch,
        consequences: CommitConsequences(
          edits: [found.edit], forgotten: found.forgotten, rereadRoots: roots))
    }
    guard isRenamed else { return }
    catalog.schemas.rename(renaming)
    // It is in another group now, which has other indexes.
    resume()
  }
}
