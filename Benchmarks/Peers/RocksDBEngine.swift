// RocksDB: a log-structured merge tree. Its loops are in C++, in CPeers.

#if PEER_ROCKSDB
  import CPeers

  package final class RocksDBEngine: KeyValueEngine {
    package static let name = "RocksDB"
    package static var version: String { String(cString: rocksdb_peer_version()) }
    package static let settings =
      "LRU block cache 1 GiB, bloom filter of 10 bits, LZ4, write buffer 64 MiB, "
      + "max_background_jobs 2; fully compacted before reads"

    private let peer: OpaquePointer
    private let synced: Int32

    private init(peer: OpaquePointer, synced: Int32) {
      self.peer = peer
      self.synced = synced
    }

    package static func open(_ options: OpenOptions) throws -> RocksDBEngine {
      var peer: OpaquePointer?
      try check(rocksdb_peer_open(options.directory, options.cacheBytes, &peer), "open")
      guard let peer else { throw PeerError(name, "open", "no handle") }
      return RocksDBEngine(peer: peer, synced: options.durability == .power ? 1 : 0)
    }

    package func write(_ rows: RowList) throws {
      try rows.withRows { try Self.check(rocksdb_peer_write(peer, $0, synced), "write") }
    }

    package func writeEach(_ rows: RowList) throws -> [UInt64] {
      var nanoseconds = [UInt64](repeating: 0, count: rows.keys.count)
      try rows.withRows { rows in
        try Self.check(rocksdb_peer_write_each(peer, rows, synced, &nanoseconds), "put")
      }
      return nanoseconds
    }

    package func get(_ keys: KeyList) throws -> UInt64 {
      var checksum: UInt64 = 0
      try keys.withKeys { try Self.check(rocksdb_peer_get(peer, $0, &checksum), "get") }
      return checksum
    }

    package func scan() throws -> Scan {
      var scan = Scan(count: 0, checksum: 0)
      try Self.check(rocksdb_peer_scan(peer, &scan.count, &scan.checksum), "scan")
      return scan
    }

    package func seek(_ keys: KeyList, limit: Int) throws -> UInt64 {
      var checksum: UInt64 = 0
      try keys.withKeys { try Self.check(rocksdb_peer_seek(peer, $0, limit, &checksum), "seek") }
      return checksum
    }

    package func settle() throws {
      try Self.check(rocksdb_peer_settle(peer), "compact")
    }

    package func close() {
      rocksdb_peer_close(peer)
    }

    private static func check(_ message: UnsafeMutablePointer<CChar>?, _ call: String) throws {
      guard let message else { return }
      let reason = String(cString: message)
      peer_free(message)
      throw PeerError(name, call, reason)
    }
  }
#endif
