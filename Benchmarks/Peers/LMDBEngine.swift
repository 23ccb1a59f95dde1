// LMDB: a copy-on-write B+tree in a memory map. Values are read in place. `.process` turns syncing
// off: what was committed is in the page cache and outlives the process, but a system crash may
// leave the file broken, because pages then reach the disk in any order.

#if PEER_LMDB
  import CLMDB
  import CPeers

  package final class LMDBEngine: KeyValueEngine {
    package static let name = "LMDB"
    package static let version =
      "\(MDB_VERSION_MAJOR).\(MDB_VERSION_MINOR).\(MDB_VERSION_PATCH)"
    package static let settings =
      "map 64 GiB, page cache of the system; .process = MDB_NOSYNC (a kill loses nothing, "
      + "but a system crash may break the file), .power = default; "
      + "read transaction renewed per get and seek"

    private let environment: OpaquePointer
    private let table: MDB_dbi
    private let reader: OpaquePointer
    private let cursor: OpaquePointer

    private init(
      environment: OpaquePointer, table: MDB_dbi, reader: OpaquePointer, cursor: OpaquePointer
    ) {
      self.environment = environment
      self.table = table
      self.reader = reader
      self.cursor = cursor
    }

    package static func open(_ options: OpenOptions) throws -> LMDBEngine {
      var environment: OpaquePointer?
      try check(mdb_env_create(&environment), "mdb_env_create")
      try check(mdb_env_set_mapsize(environment, 64 << 30), "mdb_env_set_mapsize")
      // Read transactions are not tied to a thread, because tasks are not.
      let flags = MDB_NOTLS | (options.durability == .process ? MDB_NOSYNC : 0)
      try check(
        mdb_env_open(environment, options.directory, UInt32(flags), 0o644), "mdb_env_open")

      var transaction: OpaquePointer?
      var table: MDB_dbi = 0
      try check(mdb_txn_begin(environment, nil, 0, &transaction), "mdb_txn_begin")
      try check(mdb_dbi_open(transaction, nil, 0, &table), "mdb_dbi_open")
      try check(mdb_txn_commit(transaction), "mdb_txn_commit")

      var reader: OpaquePointer?
      var cursor: OpaquePointer?
      try check(mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &reader), "mdb_txn_begin")
      try check(mdb_cursor_open(reader, table, &cursor), "mdb_cursor_open")
      mdb_txn_reset(reader)
      guard let environment, let reader, let cursor else {
        throw PeerError(name, "open", "no handle")
      }
      return LMDBEngine(environment: environment, table: table, reader: reader, cursor: cursor)
    }

    package func write(_ rows: RowList) throws {
      try rows.withRows { rows in
        var transaction: OpaquePointer?
        try Self.check(mdb_txn_begin(environment, nil, 0, &transaction), "mdb_txn_begin")
        for index in 0..<rows.keys.count {
          try put(rows, index, in: transaction)
        }
        try Self.check(mdb_txn_commit(transaction), "mdb_txn_commit")
      }
    }

    package func writeEach(_ rows: RowList) throws -> [UInt64] {
      try rows.withRows { rows in
        var nanoseconds = [UInt64](repeating: 0, count: rows.keys.count)
        for index in 0..<rows.keys.count {
          let start = peer_now()
          var transaction: OpaquePointer?
          try Self.check(mdb_txn_begin(environment, nil, 0, &transaction), "mdb_txn_begin")
          try put(rows, index, in: transaction)
          try Self.check(mdb_txn_commit(transaction), "mdb_txn_commit")
          nanoseconds[index] = peer_now() - start
        }
        return nanoseconds
      }
    }

    @inline(__always)
    private func put(_ rows: peer_rows, _ index: Int, in transaction: OpaquePointer?) throws {
      var key = Self.value(rows.keys[index], rows.keys.length)
      var value = Self.value(rows.value(index), rows.value_length)
      try Self.check(mdb_put(transaction, table, &key, &value, 0), "mdb_put")
    }

    package func get(_ keys: KeyList) throws -> UInt64 {
      try keys.withKeys { keys in
        var checksum = Checksum()
        for index in 0..<keys.count {
          try Self.check(mdb_txn_renew(reader), "mdb_txn_renew")
          var key = Self.value(keys[index], keys.length)
          var value = MDB_val()
          try Self.check(mdb_get(reader, table, &key, &value), "mdb_get")
          checksum.add(value.mv_data, value.mv_size)
          mdb_txn_reset(reader)
        }
        return checksum.value
      }
    }

    package func scan() throws -> Scan {
      try Self.check(mdb_txn_renew(reader), "mdb_txn_renew")
      defer { mdb_txn_reset(reader) }
      try Self.check(mdb_cursor_renew(reader, cursor), "mdb_cursor_renew")
      var checksum = Checksum()
      var count: UInt64 = 0
      var key = MDB_val()
      var value = MDB_val()
      var code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
      while code == 0 {
        checksum.add(key.mv_data, key.mv_size)
        checksum.add(value.mv_data, value.mv_size)
        count += 1
        code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
      }
      if code != MDB_NOTFOUND { try Self.check(code, "mdb_cursor_get") }
      return Scan(count: count, checksum: checksum.value)
    }

    package func seek(_ keys: KeyList, limit: Int) throws -> UInt64 {
      try keys.withKeys { keys in
        var checksum = Checksum()
        for index in 0..<keys.count {
          try Self.check(mdb_txn_renew(reader), "mdb_txn_renew")
          try Self.check(mdb_cursor_renew(reader, cursor), "mdb_cursor_renew")
          var key = Self.value(keys[index], keys.length)
          var value = MDB_val()
          var code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)
          var rows = 0
          while code == 0 {
            checksum.add(key.mv_data, key.mv_size)
            checksum.add(value.mv_data, value.mv_size)
            rows += 1
            if rows == limit { break }
            code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
          }
          if code != MDB_NOTFOUND { try Self.check(code, "mdb_cursor_get") }
          mdb_txn_reset(reader)
        }
        return checksum.value
      }
    }

    package func settle() throws {
      try Self.check(mdb_env_sync(environment, 1), "mdb_env_sync")
    }

    package func close() {
      mdb_cursor_close(cursor)
      mdb_txn_abort(reader)
      mdb_env_close(environment)
    }

    @inline(__always)
    private static func value(_ bytes: UnsafeRawPointer, _ count: Int) -> MDB_val {
      MDB_val(mv_size: count, mv_data: UnsafeMutableRawPointer(mutating: bytes))
    }

    @inline(__always)
    private static func check(_ code: Int32, _ call: String) throws {
      if code != 0 { throw PeerError(name, call, String(cString: mdb_strerror(code))) }
    }
  }
#endif
