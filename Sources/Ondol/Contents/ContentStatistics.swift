// The space that the contents of a database take, file by file, counted from their rows. Nothing of
// it is stored, so nothing of it can be wrong. Apps receive StorageStatistics.

internal import OndolEngine

/// How many contents a database has, their holders, and the space they take.
struct ContentStatistics: Sendable, Hashable {
  /// A file that many contents share.
  struct Pack: Sendable, Hashable {
    /// The number in the file's name.
    var number: UInt64
    /// Bytes of stored contents in it.
    var liveBytes: UInt64
    /// Bytes in it that nothing refers to. They are freed when they are more than half.
    var deadBytes: UInt64
  }

  /// Different contents.
  var contents = 0
  /// Their bytes.
  var logicalBytes: UInt64 = 0
  /// Bytes that they take in rows and files.
  var storedBytes: UInt64 = 0
  /// Documents and paths that hold a content, once for each content that they hold.
  var holders = 0
  /// Contents that a lease keeps without a holder.
  var leases = 0
  /// The shared files.
  var packs: [Pack] = []
  /// Bytes of files freed since the database was opened.
  var reclaimedBytes: UInt64 = 0
}

extension ContentStore {
  /// Counts the stored contents.
  ///
  /// - Complexity: O(contents and holders), whose rows are read; no content is.
  func statistics() async throws(DatabaseError) -> ContentStatistics {
    var statistics = ContentStatistics()
    var live: [FileNumber: UInt64] = [:]
    let files = try await readingFiles { (contents) throws(EngineError) in
      try contents.listFiles()
    }
    try await forEachLocation { (_, location) in
      statistics.contents += 1
      statistics.logicalBytes += location.length
      switch location {
      case .away: break
      case .inline: statistics.storedBytes += location.length
      case .pack(let place):
        live[place.pack, default: 0] += location.storedBytes
        statistics.storedBytes += location.storedBytes
      case .file, .parts: statistics.storedBytes += location.storedBytes
      }
    }
    for file in files where file.kind == .pack {
      let liveBytes = live[file.number] ?? 0
      let known = liveBytes + ContentFile.packOverhead
      statistics.packs.append(
        ContentStatistics.Pack(
          number: file.number.rawValue, liveBytes: liveBytes,
          deadBytes: file.sizeBytes - min(file.sizeBytes, known)))
    }
    statistics.packs.sort { $0.number < $1.number }
    (statistics.holders, statistics.leases) = try await read { (rows) throws(DatabaseError) in
      (try rows.count(ContentKey.holders), try rows.count(ContentKey.leases))
    }
    statistics.reclaimedBytes = reclaimer.total.bytes
    return statistics
  }

  /// Runs `body`, which reads files, on the thread for cold reads.
  func readingFiles<R: Sendable>(
    _ body: @escaping @Sendable (Contents) throws(EngineError) -> R
  ) async throws(DatabaseError) -> R {
    let contents = contents
    return try await rethrowing { () async throws(EngineError) in
      try await contents.readBlocking { () throws(EngineError) in try body(contents) }
    }
  }
}

extension Rows {
  /// The number of rows in one of the contents' keyspaces.
  fileprivate func count(_ keyspace: Keyspace) throws(DatabaseError) -> Int {
    var walk = RangeWalk(self, [ContentKey.all(keyspace)])
    var count = 0
    while try walk.next() { count += 1 }
    return count
  }
}
