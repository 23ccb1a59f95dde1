// What a dropped root collection releases, after the commit that dropped it: the storage paths that
// nothing else links, and the contents that its documents held. This takes a few hundred for each
// commit. The catalog's record of the drop stays until all of it is done, so a crash only delays
// it.

internal import OndolEngine

extension Database {
  /// Paths that are checked in one commit.
  private static let pathsAtOnce = 256

  /// Removes the paths in the rows of a dropped link, except those that something else links.
  func release(pathsOf link: Keyspace) async throws(DatabaseError) {
    var behind: [UInt8]?
    repeat {
      let snapshot = try engineSnapshot()
      let found = try await read(snapshot) { [behind] (rows) throws(DatabaseError) in
        try rows.linkedPaths(in: link, behind: behind, limit: Self.pathsAtOnce)
      }
      behind = found.last
      let writes = found.paths.map { path in
        DocumentWrite(
          path: StorageRows.document(at: path),
          intent: WriteIntent(change: .delete, precondition: .isUnlinked))
      }
      if !writes.isEmpty { _ = try await commit(writes, durability: nil) }
    } while behind != nil
  }
}

extension Rows {
  /// Some of the paths in the rows of a link, and where the next ones begin; nil at the end.
  fileprivate func linkedPaths(
    in link: Keyspace, behind: [UInt8]?, limit: Int
  ) throws(DatabaseError) -> (paths: [String], last: [UInt8]?) {
    var range = KeyRange(prefix: link.prefix)
    if let behind { range.lower = behind + [0] }
    var paths: [String] = []
    var walk = RangeWalk(self, [range])
    while try walk.next() {
      do throws(MalformedBytes) {
        var reader = KeyReader(walk.cursor.key)
        try reader.skip(raw: link.prefix.count)
        let path = try reader.id()
        if paths.last != path { paths.append(path) }
      } catch {
        throw DatabaseError(.dataLoss, "a row of a link is damaged: \(error.reason)")
      }
      if paths.count == limit { return (paths, walk.cursor.key.array) }
    }
    return (paths, nil)
  }
}

extension Database {
  /// Rows of holders that are checked in one step.
  private static let holdersAtOnce = 1_024

  /// Removes the rows of a dropped family's holders, and has their contents checked.
  ///
  /// - Complexity: O(holders) in the whole database: their rows are in the order of the contents.
  func release(contentsHeldIn family: DroppedFamily) async throws(DatabaseError) {
    var behind: [UInt8]?
    var isAny = false
    repeat {
      let found = try await commit(.upkeep, durability: .process) {
        [behind] (snapshot) throws(DatabaseError) in
        let step = try await read(snapshot) { (rows) throws(DatabaseError) in
          try rows.holders(in: family.number, behind: behind, limit: Self.holdersAtOnce)
        }
        return Derivation(outcome: step.last, batch: step.batch)
      }
      if found.receipt != nil { isAny = true }
      behind = found.outcome
    } while behind != nil
    if isAny { contents.reclaimer.noteRelease() }
  }
}

extension Rows {
  /// A commit that removes those of some holders' rows that are in a family, and the last row that
  /// was checked; nil at the end.
  fileprivate func holders(
    in family: UInt32, behind: [UInt8]?, limit: Int
  ) throws(DatabaseError) -> (batch: Batch, last: [UInt8]?) {
    var batch = Batch()
    batch.basis = snapshot.sequence
    var range = ContentKey.all(ContentKey.holders)
    if let behind { range.lower = behind + [0] }
    let pending = ContentRelease.pending
    var walk = RangeWalk(self, [range])
    for _ in 0..<limit {
      guard try walk.next() else { return (batch, nil) }
      let row = ContentKey.holdingRow(in: walk.cursor.key)
      guard row.count > Keyspace.prefixLength, Keyspace(of: row)?.family == family else { continue }
      batch.guardUnchanged(walk.cursor.key)
      batch.delete(walk.cursor.key)
      let release = ContentKey.release(try ContentKey.digest(in: walk.cursor.key))
      batch.put(release.bytes, pending.bytes, stamps: ContentRelease.stamps)
    }
    return (batch, walk.cursor.key.array)
  }
}
