// Commits of the catalog alone: declaring an index, setting a rule. Writes of documents bring their
// own changes of the catalog, see WritePreparation.

internal import OndolEngine

extension Database {
  /// Commits a change of a family's catalog rows, in turn with all other writers of these rows.
  func changeCatalog<R>(
    of root: String, _ change: (inout CatalogEdit) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    try await commit(.catalog(root: root), durability: nil) { (snapshot) throws(DatabaseError) in
      var edit = try await read(snapshot) { [catalog] (rows) throws(DatabaseError) in
        // The change runs on the caller, where a cold read cannot be retried.
        let patient = Rows(rows.snapshot, rows.catalog, mayBlock: true)
        if let family = try catalog.family(root, in: rows) {
          return CatalogEdit(family, in: patient)
        }
        return try CatalogEdit(newFamily: root, following: nil, in: patient)
      }
      var derivation = Derivation(outcome: try change(&edit), batch: Batch())
      guard edit.isChanged else { return derivation }
      derivation.batch.basis = snapshot.sequence
      edit.write(to: &derivation.batch)
      if edit.changesReading {
        derivation.batch.note = CommitNote(.readAnew(root: root))
        derivation.consequences.rereadRoots = [root]
      }
      derivation.consequences.edits = [edit]
      return derivation
    }.outcome
  }
}
