// GRDB: the same Codable records in a table with a typed column for each field. Arrays and maps are
// JSON in a column, as GRDB stores them. Statements are prepared once. Reads are single statements
// that each see the newest state, so they need no transaction of their own.

#if PEER_GRDB
  import CPeers
  import Foundation
  package import GRDB

  extension Record: FetchableRecord {
    package static func databaseDateDecodingStrategy(
      for column: String
    ) -> DatabaseDateDecodingStrategy {
      .timeIntervalSince1970
    }
  }

  package final class GRDBStore: DocumentStore {
    package static let name = "GRDB"
    package static let version = "7.10, on the same SQLite"
    package static let settings =
      "DatabasePool, WAL, synchronous=OFF, a typed column for each field, arrays and maps as JSON, "
      + "TEXT primary key, cached statements, reads by unsafeRead, checkpoint every 64 MiB of log"

    private let pool: DatabasePool

    private init(_ pool: DatabasePool) {
      self.pool = pool
    }

    package static func open(_ directory: String, cacheBytes: Int) throws -> GRDBStore {
      var configuration = Configuration()
      configuration.prepareDatabase { database in
        try database.execute(
          sql: """
            PRAGMA synchronous = OFF;
            PRAGMA cache_size = -\(cacheBytes / 1024);
            PRAGMA wal_autocheckpoint = 16384;
            """)
      }
      return GRDBStore(
        try DatabasePool(path: directory + "/data.sqlite", configuration: configuration))
    }

    package func prepare() throws {
      try pool.write { database in
        for place in DocumentPlace.allCases {
          try database.execute(
            sql: """
              CREATE TABLE \(place.rawValue)(
                id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL,
                user INTEGER NOT NULL, date INTEGER NOT NULL, category TEXT NOT NULL,
                price REAL NOT NULL, isActive INTEGER NOT NULL, note TEXT NOT NULL,
                tags TEXT NOT NULL, address TEXT NOT NULL);
              """)
        }
        try database.execute(
          sql: """
            CREATE TABLE listing(
              id TEXT NOT NULL PRIMARY KEY, path TEXT NOT NULL, depth INTEGER NOT NULL,
              section TEXT NOT NULL, ending TEXT NOT NULL, package TEXT NOT NULL);
            CREATE INDEX emails ON diary(email);
            CREATE INDEX dates ON diary(user, date);
            CREATE INDEX prices ON diary(category, price DESC);
            """)
      }
    }

    package func write(_ records: [IdentifiedRecord], to place: DocumentPlace) throws {
      let encoder = JSONEncoder()
      try pool.write { database in
        let statement = try database.cachedStatement(
          sql: "INSERT OR REPLACE INTO \(place.rawValue) VALUES (?,?,?,?,?,?,?,?,?,?,?)")
        for identified in records {
          let record = identified.record
          statement.setUncheckedArguments([
            identified.id, record.name, record.email, record.user,
            Int64(record.date.timeIntervalSince1970), record.category, record.price,
            record.isActive, record.note,
            String(decoding: try encoder.encode(record.tags), as: UTF8.self),
            String(decoding: try encoder.encode(record.address), as: UTF8.self),
          ])
          try statement.execute()
        }
      }
    }

    package func get(_ ids: [String]) throws -> UInt64 {
      var checksum = Checksum()
      for id in ids {
        let row = try pool.unsafeRead { database in
          try Row.fetchOne(
            database.cachedStatement(sql: "SELECT * FROM diary WHERE id = ?"), arguments: [id])
        }
        checksum.add(row)
      }
      return checksum.value
    }

    package func decode(_ ids: [String]) throws -> UInt64 {
      var checksum = Checksum()
      for id in ids {
        let record = try pool.unsafeRead { database in
          try Record.fetchOne(
            database.cachedStatement(sql: "SELECT * FROM diary WHERE id = ?"), arguments: [id])
        }
        if let record { checksum.add(record.checksum) }
      }
      return checksum.value
    }

    package func equality(_ emails: [String]) throws -> UInt64 {
      try rows(emails, sql: "SELECT * FROM diary WHERE email = ?") { [$0] }
    }

    package func weeks(_ queries: [WeekQuery]) throws -> UInt64 {
      let sql = "SELECT * FROM diary WHERE user = ? AND date IN (?,?,?,?,?,?,?) ORDER BY date"
      return try rows(queries, sql: sql) { query in
        var arguments: StatementArguments = [query.user]
        arguments += StatementArguments(query.dates.map { Int64($0.timeIntervalSince1970) })
        return arguments
      }
    }

    package func pages(_ queries: [PageQuery]) throws -> UInt64 {
      let sql =
        "SELECT * FROM diary WHERE category = ? AND price < ? ORDER BY price DESC "
        + "LIMIT \(PageQuery.length)"
      return try rows(queries, sql: sql) { [$0.category, $0.price] }
    }

    package func scan(_ names: [String]) throws -> UInt64 {
      try rows(names, sql: "SELECT * FROM archive WHERE name = ?") { [$0] }
    }

    package func decodeAll() throws -> UInt64 {
      let records = try pool.unsafeRead { database in
        try Record.fetchAll(database.cachedStatement(sql: "SELECT * FROM export"))
      }
      return records.reduce(0) { $0 &+ $1.checksum }
    }

    private func rows<Query>(
      _ queries: [Query], sql: String, _ arguments: (Query) -> StatementArguments
    ) throws -> UInt64 {
      var checksum = Checksum()
      for query in queries {
        let rows = try pool.unsafeRead { database in
          try Row.fetchAll(database.cachedStatement(sql: sql), arguments: arguments(query))
        }
        for row in rows { checksum.add(row) }
      }
      return checksum.value
    }

    package func write(_ files: [(id: String, file: ListedFile)]) throws {
      try pool.write { database in
        let statement = try database.cachedStatement(
          sql: "INSERT OR REPLACE INTO listing VALUES (?,?,?,?,?,?)")
        for (id, file) in files {
          statement.setUncheckedArguments([
            id, file.path, file.depth, file.section, file.ending, file.package,
          ])
          try statement.execute()
        }
      }
    }

    package func build(_ index: ListingIndex) throws {
      try pool.write { database in
        switch index {
        case .section: try database.execute(sql: "CREATE INDEX sections ON listing(section)")
        case .sectionAndEnding:
          try database.execute(sql: "CREATE INDEX endings ON listing(section, ending)")
        }
      }
    }

    package func countAll() throws -> UInt64 {
      try number("SELECT count(*) FROM listing")
    }

    package func countDeep() throws -> UInt64 {
      try number("SELECT count(*) FROM listing WHERE depth > \(ListedFile.depth)")
    }

    package func groupBySection() throws -> UInt64 {
      try groups("SELECT section, count(*) FROM listing GROUP BY section ORDER BY section")
    }

    package func groupByPackage() throws -> UInt64 {
      try groups(
        """
        SELECT package, count(*) FROM listing WHERE ending = '\(ListedFile.ending)'
        GROUP BY package ORDER BY package
        """)
    }

    package func paths(_ query: PathQuery) throws -> UInt64 {
      let rows = try pool.unsafeRead { database in
        try Row.fetchAll(
          database.cachedStatement(
            sql: """
              SELECT path FROM listing WHERE path >= ? AND path < ? ORDER BY path
              LIMIT \(PathQuery.length)
              """),
          arguments: [query.lower, query.upper])
      }
      var checksum = Checksum()
      for row in rows { checksum.add(row[0] as String) }
      return checksum.value
    }

    private func number(_ sql: String) throws -> UInt64 {
      try pool.unsafeRead { database in
        let number = try Int64.fetchOne(database.cachedStatement(sql: sql))
        return UInt64(bitPattern: number ?? 0)
      }
    }

    private func groups(_ sql: String) throws -> UInt64 {
      let rows = try pool.unsafeRead { database in
        try Row.fetchAll(database.cachedStatement(sql: sql))
      }
      var checksum = Checksum()
      for row in rows { checksum.add(group: row[0], count: row[1]) }
      return checksum.value
    }

    package func settle() throws {
      try pool.write { try $0.execute(sql: "ANALYZE") }
      _ = try pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
    }

    package func close() throws {
      try pool.close()
    }
  }

  extension Checksum {
    fileprivate mutating func add(_ row: Row?) {
      // Columns in the order of the table, the id first.
      if let row { add(name: row[1], user: row[3]) }
    }
  }
#endif
