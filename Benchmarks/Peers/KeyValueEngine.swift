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

  package init(directory: String, cacheBytes: Int, durability: CommitDurability) {
    self.directory = directory
    self.cacheBytes = cacheBytes
    self.durability = durability
  }
}

/// An engine under measurement, open on a directory of its own.
package protocol KeyValueEngine: AnyObject, SendableMetatype {
  static var name: String { get }
  static var version: String { get }
  /// The settings that matter, in one line, for the reader of the table.
  static var settings: String { get }

  /// Opens the database in the directory, which exists, and makes it when there is none.
  static func open(_ options: OpenOptions) async throws -> Self

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

  func close() async throws
}

/// What a scan saw.
package struct Scan: Equatable {
  package var count: UInt64
  package var checksum: UInt64

  package init(count: UInt64, checksum: UInt64) {
    self.count = count
    self.checksum = checksum
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
