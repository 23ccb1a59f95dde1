// What every engine must do to be measured: calls so coarse that going through a protocol costs
// nothing. Each call is a loop inside the adapter, over keys and values that were made before the
// clock started, in the engine's own best way. Whatever is read is summed byte for byte, by the
// same function for all.

import CPeers

/// What a commit survives once it has been acknowledged.
package enum CommitDurability: String, Sendable {
  /// The process being killed: the bytes have been handed to the system.
  case process
  /// A power cut: the bytes have been synced.
  case power
}

/// How an engine is opened.
package struct OpenOptions: Sendable {
  package var directory: String
  package var cacheBytes: Int
  package var durability: CommitDurability
  /// Whether everything in memory counts against the cache: indexes, filters and what is written.
  /// Ondol's always does; RocksDB's does when asked.
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

/// An engine under measurement, open on a directory of its own. Used by one thread or task at a
/// time; another takes a `session`.
package protocol KeyValueEngine: AnyObject, Sendable {
  static var name: String { get }
  static var version: String { get }
  /// The settings that matter, in one line, for the reader of the table.
  static var settings: String { get }

  /// Opens the database in the directory, which exists, and makes it when there is none.
  static func open(_ options: OpenOptions) async throws -> Self

  /// Whether its calls block, so that each of many concurrent writers needs a thread of its own;
  /// otherwise a task will do.
  static var blocks: Bool { get }

  /// The same database for one more thread or task. It ends with the database.
  func session() async throws -> Self

  /// Writes all rows in one commit.
  func write(_ rows: RowList) async throws

  /// Writes each row in a commit of its own and gives back how long each took.
  func writeEach(_ rows: RowList) async throws -> [UInt64]

  /// Reads the value of each key, each get seeing the newest state.
  ///
  /// - Returns: the fold of the values' sums.
  func get(_ keys: KeyList) async throws -> UInt64

  /// Reads all rows in key order.
  func scan() async throws -> Scan

  /// For each key, reads `limit` rows from the first at or after it, each seek seeing the newest
  /// state.
  func seek(_ keys: KeyList, limit: Int) async throws -> UInt64

  /// Brings the data into the shape it is best read in, and out of memtables and logs.
  func settle() async throws

  /// Closes the database and all its sessions.
  func close() async throws
}

extension KeyValueEngine {
  package static var blocks: Bool { true }

  /// Writes row after row with `put`, which commits, and gives back how long each took.
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

/// What a scan saw.
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

/// The fold of the sums of what was read.
package struct Checksum: Sendable {
  package var value: UInt64 = 0

  package init() {}

  @inline(__always)
  package mutating func add(_ bytes: UnsafeRawPointer?, _ count: Int) {
    value = peer_fold(value, peer_sum(bytes, count))
  }
}
