// WiredTiger: a B-tree with a write-ahead log and checkpoints, the engine below MongoDB. Values are
// read in place, from pages in its cache.

#if PEER_WIREDTIGER
  import CPeers
  import CWiredTiger

  package final class WiredTigerEngine: KeyValueEngine {
    package static let name = "WiredTiger"
    package static let version =
      "\(WIREDTIGER_VERSION_MAJOR).\(WIREDTIGER_VERSION_MINOR).\(WIREDTIGER_VERSION_PATCH)"
    package static let settings =
      "cache_size 1 GiB, log on in files of 16 MB, block_compressor snappy where the build has "
      + "it; .process: transaction_sync method=none (written, not synced), .power: method=fsync; "
      + "checkpointed before reads"

    private let connection: UnsafeMutablePointer<WT_CONNECTION>
    private let session: UnsafeMutablePointer<WT_SESSION>
    private let cursor: UnsafeMutablePointer<WT_CURSOR>

    private init(
      connection: UnsafeMutablePointer<WT_CONNECTION>, session: UnsafeMutablePointer<WT_SESSION>,
      cursor: UnsafeMutablePointer<WT_CURSOR>
    ) {
      self.connection = connection
      self.session = session
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

      var session: UnsafeMutablePointer<WT_SESSION>?
      try check(wt_open_session(connection, &session), "open_session")
      guard let session else { throw PeerError(name, "open_session", "no session") }
      try check(
        wt_create(
          session, "table:documents",
          "key_format=u,value_format=u,block_compressor=\(compressor)"), "create")
      var cursor: UnsafeMutablePointer<WT_CURSOR>?
      try check(wt_open_cursor(session, "table:documents", nil, &cursor), "open_cursor")
      guard let cursor else { throw PeerError(name, "open_cursor", "no cursor") }
      return WiredTigerEngine(connection: connection, session: session, cursor: cursor)
    }

    package func write(_ rows: RowList) throws {
      try rows.withRows { rows in
        try Self.check(wt_begin(session), "begin_transaction")
        for index in 0..<rows.keys.count { try put(rows, index) }
        try Self.check(wt_commit(session), "commit_transaction")
      }
    }

    package func writeEach(_ rows: RowList) throws -> [UInt64] {
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
      var checksum = Checksum()
      var count: UInt64 = 0
      var key = WT_ITEM()
      var value = WT_ITEM()
      try Self.check(wt_reset(cursor), "reset")
      var code = wt_next(cursor)
      while code == 0 {
        try Self.check(wt_row(cursor, &key, &value), "get_value")
        checksum.add(key.data, key.size)
        checksum.add(value.data, value.size)
        count += 1
        code = wt_next(cursor)
      }
      if code != WT_NOTFOUND { try Self.check(code, "next") }
      try Self.check(wt_reset(cursor), "reset")
      return Scan(count: count, checksum: checksum.value)
    }

    package func seek(_ keys: KeyList, limit: Int) throws -> UInt64 {
      try keys.withKeys { keys in
        var checksum = Checksum()
        var key = WT_ITEM()
        var value = WT_ITEM()
        for index in 0..<keys.count {
          var code = wt_seek(cursor, keys[index], keys.length)
          var rows = 0
          while code == 0 {
            try Self.check(wt_row(cursor, &key, &value), "get_value")
            checksum.add(key.data, key.size)
            checksum.add(value.data, value.size)
            rows += 1
            if rows == limit { break }
            code = wt_next(cursor)
          }
          if code != WT_NOTFOUND { try Self.check(code, "next") }
          try Self.check(wt_reset(cursor), "reset")
        }
        return checksum.value
      }
    }

    package func settle() throws {
      try Self.check(wt_checkpoint(session), "checkpoint")
    }

    package func close() throws {
      try Self.check(wt_cursor_close(cursor), "close")
      try Self.check(wt_close(connection), "close")
    }

    @inline(__always)
    private static func check(_ code: Int32, _ call: String) throws {
      if code != 0 { throw PeerError(name, call, String(cString: wiredtiger_strerror(code))) }
    }
  }
#endif
