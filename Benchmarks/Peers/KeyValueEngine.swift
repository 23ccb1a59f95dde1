// The calls that a measured engine must support. They are so coarse that the protocol costs
// nothing. Each call is a loop inside the adapter, in the engine's own best way, over keys and
// values that exist before the clock starts. The same function sums every byte that any engine
// reads.

import CPeers

/// What an acknowledged commit survives.
package enum CommitDurability: String, Sendable {
  /// The kill of the process: the bytes have been passed to the system.
  case process
  /// A power cut: the bytes have been synced.
  case power
}

/// The options for opening an engine.
package struct OpenOptions: Sendable {
  package var directory: String
  package var cacheBytes: Int
  package var durability: CommitDurability
  /// Whether everything in memory counts against the cache: indexes, filters and new writes. In
  /// Ondol it always does; in RocksDB an option decides.
  package var cacheIsAll: Bool

  package init(
    directory: String, cacheBytes: Int, durability: CommitDurability, cacheIsAll: Bool = false
  ) {
    self.directory = directory
    self.cacheBytes = cacheBytes
    self.durability = durability
    self.cacheIsAll = cacheIsAll
  }
}

/// A measured engine, open on a directory of its own. One thread or task at a time uses it; another
/// takes a `session`.
package protocol KeyValueEngine: AnyObject, Sendable {
  static var name: String { get }
  static var version: String { get }
  /// The important settings in one line, for the reader of the table.
  static var settings: String { get }

  /// Opens the database in the existing directory, and creates it if there is none.
  static func open(_ options: OpenOptions) async throws -> Self

  /// Whether its calls block, so that each concurrent writer needs a thread of its own. Otherwise a
  /// task is enough.
  static var blocks: Bool { get }

  /// Returns the same database for one more thread or task. It ends with the database.
  func session() async throws -> Self

  /// Writes all rows in one commit.
  func write(_ rows: RowList) async throws

  /// Writes each row in a commit of its own and returns the time of each.
  func writeEach(_ rows: RowList) async throws -> [UInt64]

  /// Reads the value of each key. Each get sees the newest state.
  ///
  /// - Returns: the fold of the values' sums.
  func get(_ keys: KeyList) async throws -> UInt64

  /// Reads all rows in key order.
  func scan() async throws -> Scan

  /// Reads `limit` rows for each key, from the first at or after it. Each seek sees the newest
  /// state.
  func seek(_ keys: KeyList, limit: Int) async throws -> UInt64

  /// Brings the data into the best form for reading, and out of memtables and logs.
  func settle() async throws

  /// Closes the database and all its sessions.
  func close() async throws
}

extension KeyValueEngine {
  package static var blocks: Bool { true }

  /// Writes row after row with `put`, which commits, and returns the time of each.
  @inline(__always)
  func timeEach(_ rows: RowList, _ put: (peer_rows, Int) throws -> Void) throws -> [UInt64] {
    try rows.withRows { rows in
      var nanoseconds = [UInt64](repeating: 0, count: rows.keys.count)
      for index in 0..<rows.keys.count {
        let start = peer_now()
        try put(rows, index)
        nanoseconds[index] = peer_now() - start
      }
      return nanoseconds
    }
  }
}

/// The result of a scan.
package struct Scan: Equatable {
  package var count: UInt64
  package var checksum: UInt64

  package init(count: UInt64, checksum: UInt64) {
    self.count = count
    self.checksum = checksum
  }

  @inline(__always)
  mutating func add(
    _ key: UnsafeRawPointer?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
  ) {
    checksum = peer_fold(checksum, peer_sum(key, keyLength))
    checksum = peer_fold(checksum, peer_sum(value, valueLength))
    count += 1
  }
}

/// A call that an engine refused.
package struct PeerError: Error, CustomStringConvertible {
  package var description: String

  package init(_ engine: String, _ call: String, _ reason: String) {
    description = "\(engine): \(call): \(reason)"
  }
}

/// The fold of the sums of the reads.
package struct Checksum: Sendable {
  package var value: UInt64 = 0

  package init() {}

  @inline(__always)
  package mutating func add(_ bytes: UnsafeRawPointer?, _ count: Int) {
    value = peer_fold(value, peer_sum(bytes, count))
  }
}
