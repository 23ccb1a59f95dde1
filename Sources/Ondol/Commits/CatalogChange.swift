// Commits of the catalog alone: an index declared, a rule set. Documents bring their own changes of
// the catalog along, see WritePreparation.

internal import OndolEngine

extension Database {
  /// Commits a change of a family's catalog rows, in turn with all others who change it.
  func changeCatalog<R>(
    of root: String, _ change: (inout CatalogEdit) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    let key = LatchKey.family(ExactText(root))
    try await latches.acquire(key)
    do throws(DatabaseError) {
      let result = try await changeCatalogInTurn(of: root, change)
      latches.release(key)
      return result
    } catch {
      latches.release(key)
      throw error
    }
  }

  private func changeCatalogInTurn<R>(
    of root: String, _ change: (inout CatalogEdit) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    while true {
      let snapshot = try engineSnapshot()
      var edit = try await read(snapshot) { [catalog] (rows) throws(DatabaseError) in
        // The change runs on the caller, where a cold read cannot be begun again.
        let patient = Rows(rows.snapshot, rows.catalog, mayBlock: true)
        if let family = try catalog.family(root, in: rows) {
          return CatalogEdit(family, in: patient)
        }
        return try CatalogEdit(newFamily: root, following: nil, in: patient)
      }
      let result = try change(&edit)
      guard edit.isChanged else { return result }
      var batch = Batch()
      batch.basis = snapshot.sequence
      edit.write(to: &batch)
      let changesReading = edit.changesReading
      if changesReading {
        batch.note = CommitNote(.readAnew(root: root))
        catalog.beginChange(of: root)
      }
      defer { if changesReading { catalog.endChange(of: root) } }
      do throws(EngineError) {
        let receipt = try await engine.commit(
          batch, durability: OndolEngine.Durability(options.durability))
        edit.resolve(receipt.sequence)
        catalog.install(edit.family, at: receipt.sequence)
        return result
      } catch .stale {
        // Another root collection was made at the same moment and took its number.
        await Task.yield()
      } catch {
        throw DatabaseError(error)
      }
    }
  }
}
