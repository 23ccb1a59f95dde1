// SQLCipher: SQLite with encrypted pages, each with AES-256-CBC and an HMAC of its own. Its
// functions have SQLite's names, so it is loaded and not linked.

#if PEER_SQLCIPHER && PEER_SQLITE
  import CPeers
  package import CSQLite

  package enum SQLCipher: SQLiteLibrary {
    package static let name = "SQLCipher"
    package static let settings =
      "as SQLite, with a key of 32 bytes that is used as it is, pages of 4 KiB and an HMAC for each"

    /// The key must come first. By default, version 3 has pages of 1 KiB and version 4 of 4 KiB.
    package static let opening = """
      PRAGMA key = "x'\(String(repeating: "5a", count: 32))'";
      PRAGMA cipher_page_size = 4096;
      """

    package static func calls() throws -> sqlite_calls {
      guard let loaded else { throw PeerError(name, "dlopen", "there is no library of it") }
      return loaded
    }

    /// The names on Linux, on a Mac, and in Homebrew's folder.
    private static let loaded: sqlite_calls? = {
      let names = [
        "libsqlcipher.so", "libsqlcipher.dylib", "/opt/homebrew/lib/libsqlcipher.dylib",
      ]
      for name in names {
        guard let library = peer_load_library(name) else { continue }
        var calls = sqlite_calls()
        if sqlite_loaded_calls(library, &calls) { return calls }
      }
      return nil
    }()

    /// Its own version, and that of the SQLite in it.
    package static let version: String = {
      guard let calls = loaded, let number = calls.libversion() else { return "not found" }
      let sqlite = String(cString: number)
      var database: OpaquePointer?
      var statement: OpaquePointer?
      defer {
        _ = calls.finalize(statement)
        _ = calls.close(database)
      }
      guard calls.open(":memory:", &database) == SQLITE_OK,
        calls.prepare_v2(database, "PRAGMA cipher_version", -1, &statement, nil) == SQLITE_OK,
        calls.step(statement) == SQLITE_ROW, let text = calls.column_text(statement, 0)
      else { return "on SQLite \(sqlite)" }
      return "\(String(cString: text)) on SQLite \(sqlite)"
    }()
  }
#endif
