// What a commit changes of who holds what: stage 2 of the write path, for commits that write blob
// references or storage paths. The rows go into the holder's own commit, so a holder and its hold
// become visible together and survive together.
//
// A content that is taken hold of must be stored. Its location is read in the commit's snapshot
// and guarded: when the content is given up at the same time, one of the two commits is refused,
// is derived again, and finds what the other has left. The other way round, whoever gives a content
// up guards its holders.

internal import OndolEngine

/// The holders that one commit adds and removes.
struct ContentHolding: Sendable {
  private struct Hold: Hashable {
    var digest: BlobDigest
    /// The key of the row that holds.
    var row: [UInt8]
  }

  private var added: Set<Hold> = []
  private var removed: Set<Hold> = []
  /// Contents that become stored with this commit.
  private var brought: [BlobDigest: StagedContent] = [:]

  init() {}

  var isEmpty: Bool { added.isEmpty && removed.isEmpty && brought.isEmpty }

  /// Has the row at `row` hold the content. A row holds a content once, however often it names it.
  mutating func add(_ digest: BlobDigest, holder row: [UInt8]) {
    let hold = Hold(digest: digest, row: row)
    if removed.remove(hold) == nil { added.insert(hold) }
  }

  /// Has the row at `row`, which holds the content, let go of it.
  mutating func remove(_ digest: BlobDigest, holder row: [UInt8]) {
    let hold = Hold(digest: digest, row: row)
    if added.remove(hold) == nil { removed.insert(hold) }
  }

  /// Has the commit make a staged content stored, where it is not. Needed only for contents that
  /// the commit takes hold of; what nobody holds after the commit is left out.
  mutating func bring(_ content: StagedContent) {
    brought[content.digest] = content
  }

  /// Adds the rows and guards to a batch derived from `rows`, whose sequence must be its basis.
  ///
  /// Throws `.failedPrecondition` when a content is taken hold of that is not stored: it never was,
  /// or nobody held it and it was given up.
  func settle(into batch: inout Batch, _ rows: Rows) throws(DatabaseError) {
    let pending = ContentRelease.pending
    for hold in removed {
      let name = try rows.catalog.keys.name(ofRow: hold.row)
      batch.delete(ContentKey.holder(hold.digest, name).bytes)
      batch.put(
        ContentKey.release(hold.digest).bytes, pending.bytes,
        stamps: ContentRelease.stamps)
    }
    let nothing: [UInt8] = []
    for hold in added {
      let name = try rows.catalog.keys.name(ofRow: hold.row)
      batch.put(ContentKey.holder(hold.digest, name).bytes, nothing.bytes)
    }
    for digest in Set(added.map(\.digest)) { try takeHold(of: digest, &batch, rows) }
  }

  private func takeHold(
    of digest: BlobDigest, _ batch: inout Batch, _ rows: Rows
  ) throws(DatabaseError) {
    let key = ContentKey.location(digest)
    batch.guardUnchanged(key.bytes)
    if try rows.row(key) != nil {
      brought[digest]?.withdraw()
    } else {
      guard let location = brought[digest]?.offer(),
        try batch.makeStored(digest, at: location, rows)
      else {
        throw DatabaseError(
          .failedPrecondition,
          "the content \(digest.hex) is not stored, or was given up because nobody held it; put"
            + " its bytes again")
      }
    }
    let lease = ContentKey.lease(digest)
    if try rows.row(lease) != nil { batch.delete(lease.bytes) }
  }
}
