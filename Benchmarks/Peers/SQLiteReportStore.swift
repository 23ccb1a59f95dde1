// The reports in SQLite, with a column for each field and with JSON texts. Tags are a JSON text in
// both. SQLite has no regular expressions of its own.

#if PEER_SQLITE
  import CSQLite
  import Foundation

  /// A value that a statement gets.
  package enum SQLiteValue {
    case integer(Int)
    case real(Double)
    case text(String)
  }

  /// Where SQL finds a field.
  package protocol SalesColumns: Sendable {
    static var name: String { get }
    static var settings: String { get }
    static var definition: String { get }
    static func column(_ name: String) -> String
    static func row(_ sale: Sale) -> [SQLiteValue]
  }

  package enum TypedColumns: SalesColumns {
    package static let name = "SQLite columns"
    package static let settings =
      "\(SQLITE_VERSION), a column for each field, WAL, synchronous=OFF, cache 256 MiB, no index"
    package static let definition = """
      number INTEGER PRIMARY KEY, kind TEXT, customer INTEGER, session INTEGER, price REAL,
      amount INTEGER, city TEXT, tags TEXT, seller INTEGER, title TEXT, day INTEGER
      """

    package static func column(_ name: String) -> String { name }

    package static func row(_ sale: Sale) -> [SQLiteValue] {
      [
        .integer(sale.number), .text(sale.kind), .integer(sale.customer), .integer(sale.session),
        .real(sale.price), .integer(sale.amount), .text(sale.city), .text(sale.tagsText),
        .integer(sale.seller), .text(sale.title), .integer(sale.day),
      ]
    }
  }

  package enum JSONColumns: SalesColumns {
    package static let name = "SQLite JSON"
    package static let settings = "the same with a JSON text for each sale"
    package static let definition = "number INTEGER PRIMARY KEY, body TEXT"

    package static func column(_ name: String) -> String { "body->>'$.\(name)'" }

    package static func row(_ sale: Sale) -> [SQLiteValue] {
      [.integer(sale.number), .text(sale.json)]
    }
  }

  /// `@unchecked`: only one task at a time uses it.
  package final class SQLiteReportStore<Columns: SalesColumns>: ReportStore, @unchecked Sendable {
    package static var name: String { Columns.name }
    package static var settings: String { Columns.settings }

    private let database: OpaquePointer

    private init(_ database: OpaquePointer) {
      self.database = database
    }

    package static func open(_ directory: String) throws -> SQLiteReportStore {
      var database: OpaquePointer?
      guard sqlite3_open(directory + "/data.sqlite", &database) == SQLITE_OK, let database else {
        throw PeerError(name, "sqlite3_open", directory)
      }
      let store = SQLiteReportStore(database)
      try store.execute(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;")
      return store
    }

    package func load(_ count: Int) throws {
      try execute(
        """
        CREATE TABLE sellers(number INTEGER PRIMARY KEY, country TEXT);
        CREATE TABLE sales(\(Columns.definition)); BEGIN
        """)
      try insert(Sale.sellers(of: count), into: "sellers") {
        [.integer($0), .text(Sale.country(ofSeller: $0))]
      }
      try insert(count, into: "sales") { Columns.row(Sale($0, of: count)) }
      try execute("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    private func insert(
      _ count: Int, into table: String, _ row: (Int) -> [SQLiteValue]
    ) throws {
      let places = row(0).map { _ in "?" }.joined(separator: ",")
      let insert = try statement("INSERT INTO \(table) VALUES (\(places))")
      defer { sqlite3_finalize(insert) }
      for number in 0..<count {
        for (place, value) in zip(Int32(1)..., row(number)) {
          switch value {
          case .integer(let integer): sqlite3_bind_int64(insert, place, Int64(integer))
          case .real(let real): sqlite3_bind_double(insert, place, real)
          // The destructor -1 asks SQLite for a copy.
          case .text(let text):
            sqlite3_bind_text(
              insert, place, text, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
          }
        }
        guard sqlite3_step(insert) == SQLITE_DONE else { throw fail("insert") }
        sqlite3_reset(insert)
      }
    }

    package func answer(_ report: Report, hashes: Bool) throws -> ReportAnswer? {
      guard let text = report.sql(Columns.column, elements: { "json_each(\($0))" }) else {
        return nil
      }
      let select = try statement(text)
      defer { sqlite3_finalize(select) }
      var answer = ReportAnswer()
      while true {
        switch sqlite3_step(select) {
        case SQLITE_ROW:
          if hashes { answer.add(texts(of: select)) } else { answer.seen &+= look(at: select) }
        case SQLITE_DONE: return answer
        default: throw fail(text)
        }
      }
    }

    private func look(at row: OpaquePointer) -> Int {
      var seen = 0
      for column in 0..<sqlite3_column_count(row) {
        switch sqlite3_column_type(row, column) {
        case SQLITE_INTEGER: seen &+= Int(truncatingIfNeeded: sqlite3_column_int64(row, column))
        case SQLITE_FLOAT: seen &+= sqlite3_column_double(row, column) > 0 ? 1 : 0
        default:
          guard sqlite3_column_text(row, column) != nil else { continue }
          seen &+= Int(sqlite3_column_bytes(row, column))
        }
      }
      return seen
    }

    private func texts(of row: OpaquePointer) -> [String] {
      (0..<sqlite3_column_count(row)).map { column in
        if sqlite3_column_type(row, column) == SQLITE_FLOAT {
          return String(format: "%.4f", sqlite3_column_double(row, column))
        }
        return sqlite3_column_text(row, column).map { String(cString: $0) } ?? "-"
      }
    }

    package func close() throws {
      guard sqlite3_close(database) == SQLITE_OK else { throw fail("sqlite3_close") }
    }

    private func execute(_ text: String) throws {
      guard sqlite3_exec(database, text, nil, nil, nil) == SQLITE_OK else { throw fail(text) }
    }

    private func statement(_ text: String) throws -> OpaquePointer {
      var statement: OpaquePointer?
      guard sqlite3_prepare_v2(database, text, -1, &statement, nil) == SQLITE_OK, let statement
      else { throw fail(text) }
      return statement
    }

    private func fail(_ call: String) -> PeerError {
      PeerError(Self.name, call, String(cString: sqlite3_errmsg(database)))
    }
  }
#endif
