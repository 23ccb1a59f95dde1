// A commit's changes of contents' holders: stage 2 of the write path, for commits that write blob
// references or storage paths. The rows are part of the holder's own commit, so a holder and its
// hold become visible together and survive together.
//
// A content must be stored before a row can hold it. Its location is read in the commit's snapshot
// and guarded. When the content is reclaimed at the same time, one of the two commits is refused,
// is derived again, and finds the other's result. Conversely, reclaiming a content guards its
// holders.

internal import OndolEngine

/// The holders that one commit adds and removes.
struct ContentHolding: Sendable {
  private struct Hold: Hashable {
    var digest: BlobDigest
    /// The key of the holding row.
    var row: [UInt8]
  }

  private var added: Set<Hold> = []
  private var removed: Set<Hold> = []
  /// Contents that become stored with this commit.
  private var brought: [BlobDigest: StagedContent] = [:]
  /// How many bytes contents have that become stored with this commit, though their bytes are
  /// elsewhere.
  private var expected: [BlobDigest: UInt64] = [:]

  init() {}

  var isEmpty: Bool { added.isEmpty && removed.isEmpty && brought.isEmpty }

  /// Makes the row at `row` hold the content. A row holds a content once, however often it refers
  /// to it.
  mutating func add(_ digest: BlobDigest, holder row: [UInt8]) {
    let hold = Hold(digest: digest, row: row)
    if removed.remove(hold) == nil { added.insert(hold) }
  }

  /// Makes the row at `row`, which holds the content, release it.
  mutating func remove(_ digest: BlobDigest, holder row: [UInt8]) {
    let hold = Hold(digest: digest, row: row)
    if added.remove(hold) == nil { removed.insert(hold) }
  }

  /// Makes the commit store a staged content that is not stored yet. Needed only for contents that
  /// get a holder in the commit; contents without a holder after the commit are left out.
  mutating func bring(_ content: StagedContent) {
    brought[content.digest] = content
  }

  /// Makes the commit store a content without its bytes, which are elsewhere, if it is not stored
  /// and gets a holder.
  mutating func expect(_ content: ExchangedContent) {
    expected[content.digest] = content.length
  }

  /// Adds the rows and guards to a batch derived from `rows`, whose sequence must be its basis.
  ///
  /// Throws `.failedPrecondition` when a row would hold a content that is not stored: it never was,
  /// or it had no holder and was reclaimed.
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
    let presence = try rows.presence(of: digest)
    if presence == .here {
      brought[digest]?.withdraw()
    } else if let location = brought[digest]?.offer(),
      try batch.makeStored(digest, at: location, rows)
    {
      // Stored with this commit.
    } else if presence == .none {
      guard let length = expected[digest] else {
        throw DatabaseError(
          .failedPrecondition,
          "the content \(digest.hex) is not stored, or was removed because it had no holder; put"
            + " its bytes again")
      }
      batch.put(key.bytes, ContentLocation.away(length).bytes.bytes)
    }
    let lease = ContentKey.lease(digest)
    if try rows.row(lease) != nil { batch.delete(lease.bytes) }
  }
}
