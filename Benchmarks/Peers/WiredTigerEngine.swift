// WiredTiger: a B-tree with a write-ahead log and checkpoints, the engine of MongoDB. Values are
// read in place, from pages in its cache.

#if PEER_WIREDTIGER
  import CPeers
  import CWiredTiger

  /// A session with a cursor, in the shared connection.
  ///
  /// `@unchecked`: one thread at a time uses a session, and WiredTiger guards the connection.
  package final class WiredTigerEngine: KeyValueEngine, @unchecked Sendable {
    package static let name = "WiredTiger"
    package static let version =
      "\(WIREDTIGER_VERSION_MAJOR).\(WIREDTIGER_VERSION_MINOR).\(WIREDTIGER_VERSION_PATCH)"
    package static let settings =
      "log on in files of 16 MB, block_compressor snappy where the build has "
      + "it; .process: transaction_sync method=none (written, not synced), .power: method=fsync; "
      + "checkpointed before reads"

    private let connection: UnsafeMutablePointer<WT_CONNECTION>
    private let ownSession: UnsafeMutablePointer<WT_SESSION>
    private let cursor: UnsafeMutablePointer<WT_CURSOR>
    private let compressor: String

    private init(connection: UnsafeMutablePointer<WT_CONNECTION>, compressor: String) throws {
      var session: UnsafeMutablePointer<WT_SESSION>?
      try Self.check(wt_open_session(connection, &session), "open_session")
      guard let session else { throw PeerError(Self.name, "open_session", "no session") }
      try Self.check(
        wt_create(
          session, "table:documents",
          "key_format=u,value_format=u,block_compressor=\(compressor)"), "create")
      var cursor: UnsafeMutablePointer<WT_CURSOR>?
      try Self.check(wt_open_cursor(session, "table:documents", nil, &cursor), "open_cursor")
      guard let cursor else { throw PeerError(Self.name, "open_cursor", "no cursor") }
      self.connection = connection
      self.compressor = compressor
      ownSession = session
      self.cursor = cursor
    }

    package static func open(_ options: OpenOptions) throws -> WiredTigerEngine {
      let method = options.durability == .process ? "none" : "fsync"
      let config =
        "create,cache_size=\(options.cacheBytes),log=(enabled=true,file_max=16MB,prealloc=false),"
        + "transaction_sync=(enabled=true,method=\(method))"
      var compressor = "snappy"
      var connection: UnsafeMutablePointer<WT_CONNECTION>?
      let compressed = config + ",extensions=[libwiredtiger_snappy.so],error_prefix=bench"
      if wiredtiger_open(options.directory, nil, compressed, &connection) != 0 {
        compressor = "none"
        try check(wiredtiger_open(options.directory, nil, config, &connection), "wiredtiger_open")
      }
      guard let connection else { throw PeerError(name, "wiredtiger_open", "no connection") }
      return try WiredTigerEngine(connection: connection, compressor: compressor)
    }

    package func session() throws -> WiredTigerEngine {
      try WiredTigerEngine(connection: connection, compressor: compressor)
    }

    package func write(_ rows: RowList) throws {
      try rows.withRows { rows in
        try Self.check(wt_begin(ownSession), "begin_transaction")
        for index in 0..<rows.keys.count { try put(rows, index) }
        try Self.check(wt_commit(ownSession), "commit_transaction")
      }
    }

    package func writeEach(_ rows: RowList) throws -> [UInt64] {
      try timeEach(rows) { rows, index in try put(rows, index) }
    }

    @inline(__always)
    private func put(_ rows: peer_rows, _ index: Int) throws {
      try Self.check(
        wt_insert(
          cursor, rows.keys[index], rows.keys.length, rows.value(index), rows.value_length),
        "insert")
    }

    package func get(_ keys: KeyList) throws -> UInt64 {
      try keys.withKeys { keys in
        var checksum = Checksum()
        var value = WT_ITEM()
        for index in 0..<keys.count {
          try Self.check(wt_search(cursor, keys[index], keys.length, &value), "search")
          checksum.add(value.data, value.size)
        }
        try Self.check(wt_reset(cursor), "reset")
        return checksum.value
      }
    }

    package func scan() throws -> Scan {
      var scan = Scan(count: 0, checksum: 0)
      try Self.check(wt_reset(cursor), "reset")
      try read(into: &scan, limit: .max, from: wt_next(cursor))
      return scan
    }

    package func seek(_ keys: KeyList, limit: Int) throws -> UInt64 {
      try keys.withKeys { keys in
        var scan = Scan(count: 0, checksum: 0)
        for index in 0..<keys.count {
          try read(into: &scan, limit: limit, from: wt_seek(cursor, keys[index], keys.length))
        }
        return scan.checksum
      }
    }

    /// Reads rows from the cursor's position. `first` is the result of placing it there.
    @inline(__always)
    private func read(into scan: inout Scan, limit: Int, from first: Int32) throws {
      var key = WT_ITEM()
      var value = WT_ITEM()
      var rows = 0
      var code = first
      while code == 0 {
        try Self.check(wt_row(cursor, &key, &value), "get_value")
        scan.add(key.data, key.size, value.data, value.size)
        rows += 1
        if rows == limit { break }
        code = wt_next(cursor)
      }
      if code != 0, code != WT_NOTFOUND { try Self.check(code, "next") }
      try Self.check(wt_reset(cursor), "reset")
    }

    package func settle() throws {
      try Self.check(wt_checkpoint(ownSession), "checkpoint")
    }

    package func close() throws {
      // Closes every session and cursor as well.
      try Self.check(wt_close(connection), "close")
    }

    @inline(__always)
    private static func check(_ code: Int32, _ call: String) throws {
      if code != 0 { throw PeerError(name, call, String(cString: wiredtiger_strerror(code))) }
    }
  }
#endif
