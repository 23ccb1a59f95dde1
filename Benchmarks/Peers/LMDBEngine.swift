// LMDB: a copy-on-write B+tree in a memory map. Values are read in place. `.process` turns syncing
// off. Committed pages are in the page cache and outlive the process, but a system crash may leave
// the file broken, because pages then reach the disk in any order.

#if PEER_LMDB
  import CLMDB
  import CPeers

  /// A session: a read transaction and a cursor of its own, in the shared environment.
  ///
  /// `@unchecked`: one thread at a time uses a session, and LMDB guards the environment.
  package final class LMDBEngine: KeyValueEngine, @unchecked Sendable {
    package static let name = "LMDB"
    package static let version =
      "\(MDB_VERSION_MAJOR).\(MDB_VERSION_MINOR).\(MDB_VERSION_PATCH)"
    package static let settings =
      "map 64 GiB, page cache of the system; .process = MDB_NOSYNC (a kill loses nothing, "
      + "but a system crash may break the file), .power = default; "
      + "read transaction renewed per get and seek; no reading ahead with a cache of 64 MiB"

    private let environment: OpaquePointer
    private let table: MDB_dbi
    private let reader: OpaquePointer
    private let cursor: OpaquePointer
    private var sessions: [LMDBEngine] = []

    private init(environment: OpaquePointer, table: MDB_dbi) throws {
      var reader: OpaquePointer?
      var cursor: OpaquePointer?
      try Self.check(
        mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &reader), "mdb_txn_begin")
      try Self.check(mdb_cursor_open(reader, table, &cursor), "mdb_cursor_open")
      mdb_txn_reset(reader)
      guard let reader, let cursor else { throw PeerError(Self.name, "open", "no handle") }
      self.environment = environment
      self.table = table
      self.reader = reader
      self.cursor = cursor
    }

    package static func open(_ options: OpenOptions) throws -> LMDBEngine {
      var environment: OpaquePointer?
      try check(mdb_env_create(&environment), "mdb_env_create")
      try check(mdb_env_set_mapsize(environment, 64 << 30), "mdb_env_set_mapsize")
      // Read transactions are not tied to a thread, because tasks are not. With little memory, the
      // system would read megabytes ahead of each page, and drop the pages that are needed next.
      let flags =
        MDB_NOTLS | (options.durability == .process ? MDB_NOSYNC : 0)
        | (options.cacheBytes < 256 << 20 ? MDB_NORDAHEAD : 0)
      try check(
        mdb_env_open(environment, options.directory, UInt32(flags), 0o644), "mdb_env_open")

      var transaction: OpaquePointer?
      var table: MDB_dbi = 0
      try check(mdb_txn_begin(environment, nil, 0, &transaction), "mdb_txn_begin")
      try check(mdb_dbi_open(transaction, nil, 0, &table), "mdb_dbi_open")
      try check(mdb_txn_commit(transaction), "mdb_txn_commit")

      guard let environment else { throw PeerError(name, "open", "no environment") }
      return try LMDBEngine(environment: environment, table: table)
    }

    package func session() throws -> LMDBEngine {
      let session = try LMDBEngine(environment: environment, table: table)
      sessions.append(session)
      return session
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
      try timeEach(rows) { rows, index in
        var transaction: OpaquePointer?
        try Self.check(mdb_txn_begin(environment, nil, 0, &transaction), "mdb_txn_begin")
        try put(rows, index, in: transaction)
        try Self.check(mdb_txn_commit(transaction), "mdb_txn_commit")
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
      var scan = Scan(count: 0, checksum: 0)
      try read(into: &scan, limit: .max) { mdb_cursor_get(cursor, &$0, &$1, MDB_FIRST) }
      return scan
    }

    package func seek(_ keys: KeyList, limit: Int) throws -> UInt64 {
      try keys.withKeys { keys in
        var scan = Scan(count: 0, checksum: 0)
        for index in 0..<keys.count {
          try read(into: &scan, limit: limit) { key, value in
            key = Self.value(keys[index], keys.length)
            return mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)
          }
        }
        return scan.checksum
      }
    }

    /// Reads rows of the newest state, from the one that `begin` finds.
    @inline(__always)
    private func read(
      into scan: inout Scan, limit: Int, from begin: (inout MDB_val, inout MDB_val) -> Int32
    ) throws {
      try Self.check(mdb_txn_renew(reader), "mdb_txn_renew")
      defer { mdb_txn_reset(reader) }
      try Self.check(mdb_cursor_renew(reader, cursor), "mdb_cursor_renew")
      var key = MDB_val()
      var value = MDB_val()
      var rows = 0
      var code = begin(&key, &value)
      while code == 0 {
        scan.add(key.mv_data, key.mv_size, value.mv_data, value.mv_size)
        rows += 1
        if rows == limit { return }
        code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
      }
      if code != MDB_NOTFOUND { try Self.check(code, "mdb_cursor_get") }
    }

    package func settle() throws {
      try Self.check(mdb_env_sync(environment, 1), "mdb_env_sync")
    }

    package func close() {
      for session in sessions + [self] {
        mdb_cursor_close(session.cursor)
        mdb_txn_abort(session.reader)
      }
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
