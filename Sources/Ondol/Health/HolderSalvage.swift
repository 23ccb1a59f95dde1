// Rebuilds the holders of a salvaged database from its documents, including storage paths, because
// documents are the better source. Documents are walked a few hundred at a time, with a commit
// each, like building an index.

internal import OndolEngine

/// A content that a document refers to and that is not stored any more.
struct LostContent: Sendable {
  var document: DocumentPath
  var digest: BlobDigest
}

extension Database {
  /// Documents in one commit.
  private static let documentsAtOnce = 256

  /// Makes every document hold the contents it refers to, as far as they are stored; returns those
  /// that are not.
  func rebuildHolders() async throws(DatabaseError) -> [LostContent] {
    var lost: [LostContent] = []
    for family in try await families() where !catalog.keys.isLocked(family) {
      for (pattern, entry) in family.collections {
        var behind: [UInt8]?
        repeat {
          let step = try await holderStep(pattern, entry, behind: behind)
          behind = step.last
          lost += step.lost
        } while behind != nil
      }
    }
    return lost
  }

  private struct Step: Sendable {
    var lost: [LostContent] = []
    /// The last document's key; nil at the end.
    var last: [UInt8]?
  }

  private func holderStep(
    _ pattern: CollectionPattern, _ entry: CollectionEntry, behind: [UInt8]?
  ) async throws(DatabaseError) -> Step {
    try await commit(.upkeep, durability: .process) { (snapshot) throws(DatabaseError) in
      let (step, batch) = try await read(snapshot) { (rows) throws(DatabaseError) in
        try Self.step(rows, pattern, entry, behind: behind)
      }
      return Derivation(outcome: step, batch: batch)
    }.outcome
  }

  private static func step(
    _ rows: Rows, _ pattern: CollectionPattern, _ entry: CollectionEntry, behind: [UInt8]?
  ) throws(DatabaseError) -> (Step, Batch) {
    var step = Step()
    var batch = Batch()
    batch.basis = rows.snapshot.sequence
    var range = KeyRange(prefix: entry.keyspace.prefix)
    if let behind { range.lower = behind + [0] }
    var walk = RangeWalk(rows, [range])
    let nothing: [UInt8] = []
    for _ in 0..<documentsAtOnce {
      guard try walk.next() else { return (step, batch) }
      let key = walk.cursor.key.array
      let row = try walk.value.array
      // Documents that cannot be decoded were reported when they were saved.
      for digest in (try? DocumentView(row.bytes).fields(entry.symbols))?.contents ?? [] {
        batch.guardUnchanged(key.bytes)
        let location = ContentKey.location(digest)
        if try rows.row(location) == nil {
          let document = try pattern.document(inTail: key[entry.keyspace.prefix.count...])
          step.lost.append(LostContent(document: document, digest: digest))
        } else {
          batch.guardUnchanged(location.bytes)
          let holder = ContentKey.holder(digest, try rows.catalog.keys.name(ofRow: key))
          batch.put(holder.bytes, nothing.bytes)
        }
      }
      step.last = key
    }
    return (step, batch)
  }
}
