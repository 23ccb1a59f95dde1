// SQLite as a document database: a table of ids and JSON texts, with indexes on expressions, and
// statements prepared once, in C. SQLite itself extracts two fields of a document from the text.
// Foundation's decoder decodes whole documents.

#if PEER_SQLITE
  import CPeers
  import CSQLite
  import Foundation

  /// `@unchecked`: only one task at a time uses it.
  package final class SQLiteJSONStore: DocumentStore, @unchecked Sendable {
    package static let name = "SQLite JSON"
    package static let version = SQLITE_VERSION
    package static let settings =
      "WAL, synchronous=OFF, JSON text, TEXT primary key, expression indexes, prepared statements, "
      + "checkpoint every 64 MiB of log"

    private let database: OpaquePointer
    private var statements: [String: OpaquePointer] = [:]

    private init(_ database: OpaquePointer) {
      self.database = database
    }

    package static func open(_ directory: String, cacheBytes: Int) throws -> SQLiteJSONStore {
      var database: OpaquePointer?
      let code = sqlite3_open(directory + "/data.sqlite", &database)
      guard code == SQLITE_OK, let database else {
        throw PeerError(name, "sqlite3_open", "code \(code)")
      }
      let store = SQLiteJSONStore(database)
      try store.execute(
        """
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = OFF;
        PRAGMA cache_size = -\(cacheBytes / 1024);
        PRAGMA wal_autocheckpoint = 16384;
        """)
      return store
    }

    package func prepare() throws {
      for place in DocumentPlace.allCases {
        try execute(
          "CREATE TABLE \(place.rawValue)(id TEXT NOT NULL PRIMARY KEY, body TEXT NOT NULL)")
      }
      try execute(
        """
        CREATE TABLE listing(id TEXT NOT NULL PRIMARY KEY, body TEXT NOT NULL);
        CREATE INDEX emails ON diary(body->>'$.email');
        CREATE INDEX dates ON diary(body->>'$.user', body->>'$.date');
        CREATE INDEX prices ON diary(body->>'$.category', body->>'$.price' DESC);
        """)
    }

    package func write(_ records: [IdentifiedRecord], to place: DocumentPlace) throws {
      try insert(records.lazy.map { ($0.id, $0.record.json) }, into: place.rawValue)
    }

    private func insert(
      _ rows: some Sequence<(id: String, json: String)>, into table: String
    ) throws {
      let insert = try statement("INSERT OR REPLACE INTO \(table) VALUES (?1, ?2)")
      try execute("BEGIN IMMEDIATE")
      for (id, json) in rows {
        bind(id, insert, 1)
        bind(json, insert, 2)
        let code = sqlite3_step(insert)
        sqlite3_reset(insert)
        if code != SQLITE_DONE { try check(code, "sqlite3_step") }
      }
      try execute("COMMIT")
    }

    private static let fields = "SELECT body->>'$.name', body->>'$.user', body FROM"

    package func get(_ ids: [String]) throws -> UInt64 {
      try rows(ids, "\(Self.fields) diary WHERE id = ?1") { bind($1, $0, 1) }
    }

    package func decode(_ ids: [String]) throws -> UInt64 {
      let select = try statement("SELECT body FROM diary WHERE id = ?1")
      var checksum = Checksum()
      for id in ids {
        bind(id, select, 1)
        try forEachRow(select) { checksum.add(try record($0).checksum) }
      }
      return checksum.value
    }

    package func equality(_ emails: [String]) throws -> UInt64 {
      try rows(emails, "\(Self.fields) diary WHERE body->>'$.email' = ?1") { bind($1, $0, 1) }
    }

    package func weeks(_ queries: [WeekQuery]) throws -> UInt64 {
      let text = """
        \(Self.fields) diary WHERE body->>'$.user' = ?1
        AND body->>'$.date' IN (?2,?3,?4,?5,?6,?7,?8) ORDER BY body->>'$.date'
        """
      return try rows(queries, text) { select, query in
        sqlite3_bind_int64(select, 1, Int64(query.user))
        for (index, date) in query.dates.enumerated() {
          sqlite3_bind_int64(select, Int32(index + 2), Int64(date.timeIntervalSince1970))
        }
      }
    }

    package func pages(_ queries: [PageQuery]) throws -> UInt64 {
      let text = """
        \(Self.fields) diary WHERE body->>'$.category' = ?1 AND body->>'$.price' < ?2
        ORDER BY body->>'$.price' DESC LIMIT \(PageQuery.length)
        """
      return try rows(queries, text) { select, query in
        bind(query.category, select, 1)
        sqlite3_bind_double(select, 2, query.price)
      }
    }

    package func scan(_ names: [String]) throws -> UInt64 {
      try rows(names, "\(Self.fields) archive WHERE body->>'$.name' = ?1") { bind($1, $0, 1) }
    }

    package func decodeAll() throws -> UInt64 {
      var records: [Record] = []
      try forEachRow(try statement("SELECT body FROM export")) { records.append(try record($0)) }
      return records.reduce(0) { $0 &+ $1.checksum }
    }

    package func write(_ files: [(id: String, file: ListedFile)]) throws {
      try insert(files.lazy.map { ($0.id, $0.file.json) }, into: "listing")
    }

    package func build(_ index: ListingIndex) throws {
      switch index {
      case .section: try execute("CREATE INDEX sections ON listing(body->>'$.section')")
      case .sectionAndEnding:
        try execute("CREATE INDEX endings ON listing(body->>'$.section', body->>'$.ending')")
      }
    }

    package func countAll() throws -> UInt64 {
      try number("SELECT count(*) FROM listing")
    }

    package func countDeep() throws -> UInt64 {
      try number("SELECT count(*) FROM listing WHERE body->>'$.depth' > \(ListedFile.depth)")
    }

    package func groupBySection() throws -> UInt64 {
      try groups(
        "SELECT body->>'$.section', count(*) FROM listing GROUP BY body->>'$.section' ORDER BY 1")
    }

    package func groupByPackage() throws -> UInt64 {
      try groups(
        """
        SELECT body->>'$.package', count(*) FROM listing
        WHERE body->>'$.ending' = '\(ListedFile.ending)' GROUP BY body->>'$.package' ORDER BY 1
        """)
    }

    package func paths(_ query: PathQuery) throws -> UInt64 {
      let select = try statement(
        """
        SELECT body->>'$.path' FROM listing WHERE body->>'$.path' >= ?1 AND body->>'$.path' < ?2
        ORDER BY body->>'$.path' LIMIT \(PathQuery.length)
        """)
      bind(query.lower, select, 1)
      bind(query.upper, select, 2)
      var checksum = Checksum()
      try forEachRow(select) { row in
        checksum.add(sqlite3_column_text(row, 0), Int(sqlite3_column_bytes(row, 0)))
      }
      return checksum.value
    }

    private func number(_ text: String) throws -> UInt64 {
      var number: Int64 = 0
      try forEachRow(try statement(text)) { number = sqlite3_column_int64($0, 0) }
      return UInt64(bitPattern: number)
    }

    private func groups(_ text: String) throws -> UInt64 {
      var checksum = Checksum()
      try forEachRow(try statement(text)) { row in
        checksum.add(sqlite3_column_text(row, 0), Int(sqlite3_column_bytes(row, 0)))
        checksum.add(UInt64(bitPattern: sqlite3_column_int64(row, 1)))
      }
      return checksum.value
    }

    package func settle() throws {
      try execute("ANALYZE")
      try execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    package func close() throws {
      for statement in statements.values { sqlite3_finalize(statement) }
      try check(sqlite3_close(database), "sqlite3_close")
    }

    // MARK: - Statements

    private func rows<Query>(
      _ queries: [Query], _ text: String, _ bind: (OpaquePointer, Query) -> Void
    ) throws -> UInt64 {
      let select = try statement(text)
      var checksum = Checksum()
      for query in queries {
        bind(select, query)
        try forEachRow(select) { row in
          checksum.add(sqlite3_column_text(row, 0), Int(sqlite3_column_bytes(row, 0)))
          checksum.add(UInt64(bitPattern: sqlite3_column_int64(row, 1)))
        }
      }
      return checksum.value
    }

    @inline(__always)
    private func forEachRow(
      _ statement: OpaquePointer, _ body: (OpaquePointer) throws -> Void
    ) throws {
      var code = sqlite3_step(statement)
      while code == SQLITE_ROW {
        try body(statement)
        code = sqlite3_step(statement)
      }
      sqlite3_reset(statement)
      if code != SQLITE_DONE { try check(code, "sqlite3_step") }
    }

    private func record(_ row: OpaquePointer) throws -> Record {
      guard let text = sqlite3_column_text(row, 0) else { throw fail("sqlite3_column_text") }
      let data = Data(
        bytesNoCopy: UnsafeMutableRawPointer(mutating: text),
        count: Int(sqlite3_column_bytes(row, 0)), deallocator: .none)
      return try decoder.decode(Record.self, from: data)
    }

    private let decoder = {
      let decoder = JSONDecoder()
      decoder.dateDecodingStrategy = .secondsSince1970
      return decoder
    }()

    private func bind(_ text: String, _ statement: OpaquePointer, _ index: Int32) {
      var text = text
      text.withUTF8 { bytes in
        bytes.withMemoryRebound(to: CChar.self) { bytes in
          // The destructor -1 asks SQLite for a copy.
          _ = sqlite3_bind_text(
            statement, index, bytes.baseAddress, Int32(bytes.count),
            unsafeBitCast(-1, to: sqlite3_destructor_type.self))
        }
      }
    }

    private func statement(_ text: String) throws -> OpaquePointer {
      if let statement = statements[text] { return statement }
      var statement: OpaquePointer?
      let code = sqlite3_prepare_v3(
        database, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
      try check(code, "sqlite3_prepare_v3")
      guard let statement else { throw fail("sqlite3_prepare_v3") }
      statements[text] = statement
      return statement
    }

    private func execute(_ text: String) throws {
      try check(sqlite3_exec(database, text, nil, nil, nil), "sqlite3_exec")
    }

    private func check(_ code: Int32, _ call: String) throws {
      if code != SQLITE_OK { throw fail(call) }
    }

    private func fail(_ call: String) -> PeerError {
      PeerError(Self.name, call, String(cString: sqlite3_errmsg(database)))
    }
  }

  extension ListedFile {
    fileprivate var json: String {
      """
      {"path":"\(path)","depth":\(depth),"section":"\(section)","ending":"\(ending)",\
      "package":"\(package)"}
      """
    }
  }

  extension Record {
    /// The document as JSON, written by hand because Foundation's encoder takes several times as
    /// long. No text here contains a character that JSON escapes.
    fileprivate var json: String {
      """
      {"name":"\(name)","email":"\(email)","user":\(user),\
      "date":\(Int64(date.timeIntervalSince1970)),"category":"\(category)","price":\(price),\
      "isActive":\(isActive),"note":"\(note)","tags":["\(tags.joined(separator: "\",\""))"],\
      "address":{"street":"\(address.street)","city":"\(address.city)",\
      "postcode":\(address.postcode)}}
      """
    }
  }
#endif
