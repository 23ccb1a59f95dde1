// Statistics of storage: what is stored, its holders, and what was reclaimed. They are counted from
// the rows, which are the truth, so nothing has to be kept up to date.

internal import OndolEngine

/// What is in storage, and its holders.
public struct StorageStatistics: Sendable, Hashable {
  /// Contents that are stored, each once.
  public var contents = 0
  /// Their bytes.
  public var bytes = 0
  /// The bytes they take in files, compressed when that saves space.
  public var storedBytes = 0
  /// Storage paths that hold a content.
  public var paths = 0
  /// Documents that hold a content by a reference, once for each content.
  public var documents = 0
  /// Contents that were derived from others.
  public var derived = 0
  /// The bytes that the holders would take without sharing.
  public var heldBytes = 0
  /// Contents without a holder: new ones under a lease, and ones that are about to be reclaimed.
  public var unheldContents = 0
  /// Their bytes.
  public var unheldBytes = 0
  /// Contents reclaimed since the database was opened.
  public var reclaimedContents = 0
  /// Bytes freed in files by that.
  public var reclaimedBytes = 0
}

extension Storage {
  /// What is in storage, its holders, and what was reclaimed since the database was opened. All as
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

  /// Reclaims contents without a holder now instead of later: those whose lease is over, or whose
  /// last holder was removed longer ago than `Options.blobGracePeriod`. Contents that a reader or a
  /// snapshot still sees stay until later. If reclaiming runs in the background already, this call
  /// leaves it to that and reports nothing.
  ///
  /// - Returns: the contents reclaimed, and the bytes freed in files.
  /// - Throws: `.cancelled` when the task was cancelled, and the rest is reclaimed later; otherwise
  ///   as writes do.
  /// - Complexity: O(contents reclaimed), and O(bytes) of the files that become smaller.
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
