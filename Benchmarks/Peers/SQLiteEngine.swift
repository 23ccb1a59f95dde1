// SQLite, and SQLCipher, which is SQLite with encrypted pages: a B-tree with a write-ahead log, one
// table WITHOUT ROWID whose primary key is the document's key, and statements prepared once. Values
// are read in place.

#if PEER_SQLITE
  import CPeers
  package import CSQLite
  import Foundation

  /// The difference between libraries with SQLite's interface.
  package protocol SQLiteLibrary: SendableMetatype {
    static var name: String { get }
    static var version: String { get }
    static var settings: String { get }

    /// The first statements of a connection.
    static var opening: String { get }

    /// Returns the library's functions. Throws if this machine does not have the library.
    static func calls() throws -> sqlite_calls
  }

  package enum SQLite: SQLiteLibrary {
    package static let name = "SQLite"
    package static let version = SQLITE_VERSION
    package static let settings =
      "WAL, WITHOUT ROWID table with a BLOB key, prepared statements, "
      + "checkpoint every 64 MiB of log; .process: synchronous=OFF, .power: synchronous=FULL"
    package static let opening = ""

    package static func calls() -> sqlite_calls { sqlite_linked_calls() }
  }

  /// A session: a connection of its own for reading. Writes go through the first connection, one at
  /// a time under a lock, because SQLite has one writer, and any other connection that wrote would
  /// invalidate the caches of the rest.
  ///
  /// `@unchecked`: one thread at a time reads with a session, and the lock guards the writer.
  package final class SQLiteEngine<Library: SQLiteLibrary>: KeyValueEngine, @unchecked Sendable {
    package static var name: String { Library.name }
    package static var version: String { Library.version }
    package static var settings: String { Library.settings }

    private let calls: sqlite_calls
    private let options: OpenOptions
    private let database: OpaquePointer
    private let writing = NSLock()
    private let writer: SQLiteEngine?
    private var sessions: [SQLiteEngine] = []
    private let begin: OpaquePointer
    private let commit: OpaquePointer
    private let insert: OpaquePointer
    private let select: OpaquePointer
    private let all: OpaquePointer
    private let range: OpaquePointer

    private init(
      _ calls: sqlite_calls, _ database: OpaquePointer, _ options: OpenOptions,
      writer: SQLiteEngine?
    ) throws {
      func prepare(_ text: String) throws -> OpaquePointer {
        var statement: OpaquePointer?
        let code = calls.prepare_v2(database, text, -1, &statement, nil)
        try Self.check(code, "sqlite3_prepare_v2", database, calls)
        guard let statement else {
          throw PeerError(Self.name, "sqlite3_prepare_v2", "no statement")
        }
        return statement
      }
      self.calls = calls
      self.database = database
      self.options = options
      self.writer = writer
      begin = try prepare("BEGIN IMMEDIATE")
      commit = try prepare("COMMIT")
      insert = try prepare("INSERT OR REPLACE INTO documents VALUES (?1, ?2)")
      select = try prepare("SELECT value FROM documents WHERE key = ?1")
      all = try prepare("SELECT key, value FROM documents ORDER BY key")
      range = try prepare(
        "SELECT key, value FROM documents WHERE key >= ?1 ORDER BY key LIMIT ?2")
    }

    package static func open(_ options: OpenOptions) throws -> SQLiteEngine {
      try connect(options, writer: nil)
    }

    package func session() throws -> SQLiteEngine {
      let session = try Self.connect(options, writer: self)
      sessions.append(session)
      return session
    }

    private static func connect(
      _ options: OpenOptions, writer: SQLiteEngine?
    ) throws -> SQLiteEngine {
      let calls = try Library.calls()
      var database: OpaquePointer?
      let code = calls.open(options.directory + "/data.sqlite", &database)
      guard code == SQLITE_OK, let database else {
        throw PeerError(name, "sqlite3_open", "code \(code)")
      }
      let synchronous = options.durability == .process ? "OFF" : "FULL"
      let setup = """
        \(Library.opening)
        PRAGMA busy_timeout = 60000;
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = \(synchronous);
        PRAGMA cache_size = -\(options.cacheBytes / 1024);
        PRAGMA wal_autocheckpoint = 16384;
        CREATE TABLE IF NOT EXISTS documents(
          key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
        """
      try check(calls.exec(database, setup, nil, nil, nil), "setup", database, calls)
      return try SQLiteEngine(calls, database, options, writer: writer)
    }

    package func write(_ rows: RowList) throws {
      let writer = writer ?? self
      try rows.withRows { rows in
        try writer.writing.withLock {
          try writer.run(writer.begin)
          for index in 0..<rows.keys.count { try writer.put(rows, index) }
          try writer.run(writer.commit)
        }
      }
    }

    package func writeEach(_ rows: RowList) throws -> [UInt64] {
      let writer = writer ?? self
      return try timeEach(rows) { rows, index in
        try writer.writing.withLock { try writer.put(rows, index) }
      }
    }

    @inline(__always)
    private func put(_ rows: peer_rows, _ index: Int) throws {
      // Passing no destructor promises that the bytes stay in place until the step is done.
      _ = calls.bind_blob(insert, 1, rows.keys[index], Int32(rows.keys.length), nil)
      _ = calls.bind_blob(insert, 2, rows.value(index), Int32(rows.value_length), nil)
      try run(insert)
    }

    @inline(__always)
    private func run(_ statement: OpaquePointer) throws {
      let code = calls.step(statement)
      _ = calls.reset(statement)
      if code != SQLITE_DONE { try Self.check(code, "sqlite3_step", database, calls) }
    }

    package func get(_ keys: KeyList) throws -> UInt64 {
      try keys.withKeys { keys in
        var checksum = Checksum()
        for index in 0..<keys.count {
          _ = calls.bind_blob(select, 1, keys[index], Int32(keys.length), nil)
          guard calls.step(select) == SQLITE_ROW else {
            throw PeerError(Self.name, "get", "not found")
          }
          checksum.add(calls.column_blob(select, 0), Int(calls.column_bytes(select, 0)))
          _ = calls.reset(select)
        }
        return checksum.value
      }
    }

    package func scan() throws -> Scan {
      var scan = Scan(count: 0, checksum: 0)
      try readRows(of: all, into: &scan)
      return scan
    }

    package func seek(_ keys: KeyList, limit: Int) throws -> UInt64 {
      try keys.withKeys { keys in
        var scan = Scan(count: 0, checksum: 0)
        _ = calls.bind_int64(range, 2, Int64(limit))
        for index in 0..<keys.count {
          _ = calls.bind_blob(range, 1, keys[index], Int32(keys.length), nil)
          try readRows(of: range, into: &scan)
        }
        return scan.checksum
      }
    }

    @inline(__always)
    private func readRows(of statement: OpaquePointer, into scan: inout Scan) throws {
      var code = calls.step(statement)
      while code == SQLITE_ROW {
        scan.add(
          calls.column_blob(statement, 0), Int(calls.column_bytes(statement, 0)),
          calls.column_blob(statement, 1), Int(calls.column_bytes(statement, 1)))
        code = calls.step(statement)
      }
      _ = calls.reset(statement)
      if code != SQLITE_DONE { try Self.check(code, "sqlite3_step", database, calls) }
    }

    package func settle() throws {
      try Self.check(
        calls.exec(database, "PRAGMA wal_checkpoint(TRUNCATE)", nil, nil, nil), "checkpoint",
        database, calls)
    }

    package func close() throws {
      for session in sessions { try session.close() }
      for statement in [begin, commit, insert, select, all, range] {
        _ = calls.finalize(statement)
      }
      try Self.check(calls.close(database), "sqlite3_close", database, calls)
    }

    private static func check(
      _ code: Int32, _ call: String, _ database: OpaquePointer, _ calls: sqlite_calls
    ) throws {
      if code != SQLITE_OK {
        throw PeerError(
          name, call, calls.errmsg(database).map { String(cString: $0) } ?? "code \(code)")
      }
    }
  }
#endif
