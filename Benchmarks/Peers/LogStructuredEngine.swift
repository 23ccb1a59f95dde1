// LevelDB and RocksDB: log-structured merge trees with one interface. Their loops are in C++, in
// CPeers. This file has the Swift side, once for both.

package import CPeers

/// The difference between the two log-structured libraries.
package protocol LogStructuredLibrary: SendableMetatype {
  static var name: String { get }
  static var settings: String { get }
  static var library: lsm_library { get }
}

package enum LevelDB: LogStructuredLibrary {
  package static let name = "LevelDB"
  package static let settings =
    "LRU block cache, bloom filter of 10 bits, verify_checksums on, write buffer 64 MiB, "
    + "Snappy; fully compacted before reads"
  package static let library = LSM_LEVELDB
}

package enum RocksDB: LogStructuredLibrary {
  package static let name = "RocksDB"
  package static let settings =
    "LRU block cache, bloom filter of 10 bits, LZ4, write buffer 64 MiB, max_background_jobs 2; "
    + "fully compacted before reads"
  package static let library = LSM_ROCKSDB
}

/// A database of such a library. Any thread may use it at any time, so it is its own session.
///
/// `@unchecked`: the libraries promise that an open database may be used by any thread.
package final class LogStructuredEngine<Library: LogStructuredLibrary>: KeyValueEngine,
  @unchecked Sendable
{
  package static var name: String { Library.name }
  package static var version: String { String(cString: lsm_peer_version(Library.library)) }
  package static var settings: String { Library.settings }

  private let peer: OpaquePointer
  private let isSynced: Bool

  private init(peer: OpaquePointer, isSynced: Bool) {
    self.peer = peer
    self.isSynced = isSynced
  }

  package static func open(_ options: OpenOptions) throws -> LogStructuredEngine {
    var peer: OpaquePointer?
    try check(
      lsm_peer_open(
        Library.library, options.directory, options.cacheBytes, options.cacheIsAll, &peer), "open")
    guard let peer else { throw PeerError(name, "open", "no handle") }
    return LogStructuredEngine(peer: peer, isSynced: options.durability == .power)
  }

  package func session() -> LogStructuredEngine { self }

  package func write(_ rows: RowList) throws {
    try rows.withRows { try Self.check(lsm_peer_write(peer, $0, isSynced), "write") }
  }

  package func writeEach(_ rows: RowList) throws -> [UInt64] {
    var nanoseconds = [UInt64](repeating: 0, count: rows.keys.count)
    try rows.withRows { rows in
      try Self.check(lsm_peer_write_each(peer, rows, isSynced, &nanoseconds), "put")
    }
    return nanoseconds
  }

  package func get(_ keys: KeyList) throws -> UInt64 {
    var checksum: UInt64 = 0
    try keys.withKeys { try Self.check(lsm_peer_get(peer, $0, &checksum), "get") }
    return checksum
  }

  package func scan() throws -> Scan {
    var scan = Scan(count: 0, checksum: 0)
    try Self.check(lsm_peer_scan(peer, &scan.count, &scan.checksum), "scan")
    return scan
  }

  package func seek(_ keys: KeyList, limit: Int) throws -> UInt64 {
    var checksum: UInt64 = 0
    try keys.withKeys { try Self.check(lsm_peer_seek(peer, $0, limit, &checksum), "seek") }
    return checksum
  }

  package func settle() throws {
    try Self.check(lsm_peer_settle(peer), "compact")
  }

  package func close() {
    lsm_peer_close(peer)
  }

  private static func check(_ message: UnsafeMutablePointer<CChar>?, _ call: String) throws {
    guard let message else { return }
    let reason = String(cString: message)
    peer_free(message)
    throw PeerError(name, call, reason)
  }
}
