// SQLite's full-text index, FTS5, as a table of one column that stores its texts itself, with
// statements prepared once, in C. Words use the tokenizer unicode61, three letters the tokenizer
// trigram.

#if PEER_SQLITE
  import CSQLite

  /// FTS5 by words.
  package final class FTS5WordStore: FTS5Store, SearchStore, @unchecked Sendable {
    package static let name = "SQLite FTS5 unicode61"
    package static let settings =
      "\(SQLITE_VERSION), WAL, synchronous=OFF, bm25"
    package static let findsWords = true

    package static func open(_ directory: String) throws -> FTS5WordStore {
      try FTS5WordStore(directory, "tokenize = 'unicode61'")
    }

    package func canAnswer(_ question: SearchQuestion) -> Bool {
      if case .syllables = question { false } else { true }
    }
  }

  /// FTS5 by three letters.
  package final class FTS5TrigramStore: FTS5Store, SearchStore, @unchecked Sendable {
    package static let name = "SQLite FTS5 trigram"
    package static let settings = "the same; finds three letters and more anywhere in a word"
    package static let findsWords = false

    package static func open(_ directory: String) throws -> FTS5TrigramStore {
      try FTS5TrigramStore(directory, "tokenize = 'trigram'")
    }

    package func canAnswer(_ question: SearchQuestion) -> Bool {
      if case .syllables = question { false } else { true }
    }
  }

  /// `@unchecked`: only one task at a time uses it.
  package class FTS5Store: @unchecked Sendable {
    private let database: OpaquePointer
    private var statements: [String: OpaquePointer] = [:]

    fileprivate init(_ directory: String, _ options: String) throws {
      var opened: OpaquePointer?
      let code = sqlite3_open(directory + "/data.sqlite", &opened)
      guard code == SQLITE_OK, let opened else {
        throw PeerError("SQLite", "sqlite3_open", "code \(code)")
      }
      database = opened
      try execute(
        """
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = OFF;
        PRAGMA cache_size = -262144;
        PRAGMA wal_autocheckpoint = 16384;
        CREATE VIRTUAL TABLE texts USING fts5(body, \(options));
        """)
    }

    private func execute(_ text: String) throws {
      guard sqlite3_exec(database, text, nil, nil, nil) == SQLITE_OK else {
        throw PeerError("SQLite", "sqlite3_exec", String(cString: sqlite3_errmsg(database)))
      }
    }

    private func statement(_ text: String) throws -> OpaquePointer {
      if let known = statements[text] { return known }
      var statement: OpaquePointer?
      sqlite3_prepare_v2(database, text, -1, &statement, nil)
      guard let statement else {
        throw PeerError("SQLite", "prepare", String(cString: sqlite3_errmsg(database)))
      }
      statements[text] = statement
      return statement
    }

    private func bind(_ text: String, _ statement: OpaquePointer, _ place: Int32) {
      var text = text
      text.withUTF8 { bytes in
        bytes.withMemoryRebound(to: CChar.self) { characters in
          // -1 is SQLITE_TRANSIENT: SQLite copies.
          let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
          sqlite3_bind_text(
            statement, place, characters.baseAddress, Int32(characters.count), copies)
        }
      }
    }

    package func put(_ texts: [SearchedText]) throws {
      let insert = try statement("INSERT OR REPLACE INTO texts(rowid, body) VALUES (?1, ?2)")
      try execute("BEGIN IMMEDIATE")
      for text in texts {
        sqlite3_bind_int64(insert, 1, Int64(text.id))
        bind(text.text, insert, 2)
        let code = sqlite3_step(insert)
        sqlite3_reset(insert)
        guard code == SQLITE_DONE else { throw PeerError("SQLite", "insert", "code \(code)") }
      }
      try execute("COMMIT")
    }

    /// In FTS5's own language.
    private func text(_ question: SearchQuestion) -> String {
      switch question {
      case .words(let words): words.map { "\"\($0)\"" }.joined(separator: " OR ")
      case .phrase(let words): "\"" + words.joined(separator: " ") + "\""
      case .prefix(let start): self is FTS5TrigramStore ? "\"\(start)\"" : "\(start)*"
      case .syllables(let text): "\"\(text)\""
      }
    }

    package func top(_ questions: [SearchQuestion]) throws -> Int {
      let select = try statement(
        "SELECT rowid, body, rank FROM texts WHERE texts MATCH ?1 ORDER BY rank LIMIT 10")
      var bytes = 0
      for question in questions {
        bind(text(question), select, 1)
        while sqlite3_step(select) == SQLITE_ROW { bytes += Int(sqlite3_column_bytes(select, 1)) }
        sqlite3_reset(select)
      }
      return bytes
    }

    package func count(_ question: SearchQuestion) throws -> Int {
      let select = try statement("SELECT count(*) FROM texts WHERE texts MATCH ?1")
      bind(text(question), select, 1)
      defer { sqlite3_reset(select) }
      guard sqlite3_step(select) == SQLITE_ROW else {
        throw PeerError("SQLite", "count", String(cString: sqlite3_errmsg(database)))
      }
      return Int(sqlite3_column_int64(select, 0))
    }

    package func close() {
      for statement in statements.values { sqlite3_finalize(statement) }
      sqlite3_close(database)
    }
  }
#endif
