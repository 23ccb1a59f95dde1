// The accounting of storage: what is stored, who holds it, and what came back. Counted from the
// rows, which are the truth; nothing is kept up to date for it.

internal import OndolEngine

/// What is in storage, and who holds it.
public struct StorageStatistics: Sendable, Hashable {
  /// Contents that are stored, each once.
  public var contents = 0
  /// Their bytes.
  public var bytes = 0
  /// The bytes they take in files, compressed where that pays.
  public var storedBytes = 0
  /// Storage paths that hold a content.
  public var paths = 0
  /// Documents that hold a content by a reference, once for each content.
  public var documents = 0
  /// Contents that were derived from others.
  public var derived = 0
  /// What the holders would take if each had its bytes for itself.
  public var heldBytes = 0
  /// Contents that nobody holds: yet, by a lease, or no more, and then they are about to be
  /// reclaimed.
  public var unheldContents = 0
  /// Their bytes.
  public var unheldBytes = 0
  /// Contents given up since the database was opened.
  public var reclaimedContents = 0
  /// Bytes that files have lost by that.
  public var reclaimedBytes = 0
}

extension Storage {
  /// What is in storage, who holds it, and what was reclaimed since the database was opened. All as
  /// of one moment.
  ///
  /// - Throws: `.dataLoss` when a row is damaged; `.failedPrecondition` when the database is
  ///   closed.
  /// - Complexity: O(contents + holders), whose rows are walked.
  @concurrent
  public func statistics() async throws(DatabaseError) -> StorageStatistics {
    var statistics = try await database.read(try database.engineSnapshot()) {
      (rows) throws(DatabaseError) in try rows.storageStatistics()
    }
    let reclaimed = database.contents.reclaimer.total
    statistics.reclaimedContents = reclaimed.contents
    statistics.reclaimedBytes = Int(clamping: reclaimed.bytes)
    return statistics
  }

  /// Gives up now what nobody holds any more, instead of soon: contents whose lease is over, or
  /// whose last holder went longer ago than `Options.blobGracePeriod`. What a reader or a snapshot
  /// still sees stays until later. Where this goes on in the background already, it is left to
  /// that, and nothing is reported here.
  ///
  /// - Returns: contents given up, and bytes that files have lost.
  /// - Throws: `.cancelled` when the task was cancelled, and the rest comes later; as writes do.
  /// - Complexity: O(contents given up), and O(bytes) of the files that become smaller.
  @discardableResult
  public func reclaim() async throws(DatabaseError) -> (contents: Int, bytes: Int) {
    try database.refuseInTransaction("reclaim")
    let report = try await database.contents.reclaimer.reclaim()
    return (report.contents, Int(clamping: report.bytes))
  }
}

extension Rows {
  fileprivate func storageStatistics() throws(DatabaseError) -> StorageStatistics {
    var statistics = StorageStatistics()
    var lengths: [BlobDigest: Int] = [:]
    var locations = RangeWalk(self, [ContentKey.all(ContentKey.locations)])
    while try locations.next() {
      let digest = try ContentKey.digest(in: locations.cursor.key)
      guard let location = try location(of: digest) else { continue }
      let length = Int(clamping: location.length)
      lengths[digest] = length
      statistics.contents += 1
      statistics.bytes += length
      statistics.storedBytes += Int(clamping: location.storedBytes)
    }
    var unheld = lengths
    var namer = RowNamer(self)
    var holders = RangeWalk(self, [ContentKey.all(ContentKey.holders)])
    while try holders.next() {
      let digest = try ContentKey.digest(in: holders.cursor.key)
      let row = ContentKey.holdingRow(in: holders.cursor.key)
      guard try namer.isLive(row) else { continue }
      unheld[digest] = nil
      statistics.heldBytes += lengths[digest] ?? 0
      if row.starts(with: DerivedRows.keyspace.prefix) {
        statistics.derived += 1
      } else if try namer.pattern(ofRow: row) == StorageRows.pattern {
        statistics.paths += 1
      } else {
        statistics.documents += 1
      }
    }
    statistics.unheldContents = unheld.count
    statistics.unheldBytes = unheld.values.reduce(0, +)
    return statistics
  }
}
