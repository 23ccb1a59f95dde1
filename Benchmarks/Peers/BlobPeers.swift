// Two ways to keep bytes without a blob store, with the durability of Ondol's default: a put is on
// the device when it returns. One has a plain file for each content, written and synced together
// with its name. The other has a row for each content in SQLite.

import Foundation
import OndolPlatform

/// A file for each content.
package final class FileBlobs {
  private let directory: String
  private let descriptor: CInt

  package init(_ directory: String) throws {
    self.directory = directory
    descriptor = open(directory, O_RDONLY | O_DIRECTORY)
    guard descriptor >= 0 else { throw PeerError("files", "open", "errno \(errno)") }
  }

  deinit { close(descriptor) }

  package func put(_ bytes: [UInt8], _ name: String) throws {
    let file = open("\(directory)/\(name)", O_WRONLY | O_CREAT | O_EXCL, 0o600)
    guard file >= 0 else { throw PeerError("files", "open", "errno \(errno)") }
    defer { close(file) }
    try bytes.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count {
        let wrote = write(
          file, buffer.baseAddress?.advanced(by: done), min(buffer.count - done, 1 << 20))
        guard wrote > 0 else { throw PeerError("files", "write", "errno \(errno)") }
        done += wrote
      }
    }
    guard fsync(file) == 0, fsync(descriptor) == 0 else {
      throw PeerError("files", "fsync", "errno \(errno)")
    }
  }

  package func get(_ name: String) throws -> [UInt8] {
    let file = open("\(directory)/\(name)", O_RDONLY)
    guard file >= 0 else { throw PeerError("files", "open", "errno \(errno)") }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw PeerError("files", "fstat", "errno \(errno)") }
    let size = Int(status.st_size)
    return try [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
      while filled < size {
        let got = read(file, buffer.baseAddress?.advanced(by: filled), size - filled)
        guard got > 0 else { throw PeerError("files", "read", "errno \(errno)") }
        filled += got
      }
    }
  }
}

#if PEER_SQLITE
  import CSQLite

  /// A row for each content.
  package final class SQLiteBlobs {
    private let database: OpaquePointer
    private let insert: OpaquePointer
    private let select: OpaquePointer

    package init(_ directory: String) throws {
      var opened: OpaquePointer?
      guard sqlite3_open(directory + "/data.sqlite", &opened) == SQLITE_OK, let opened else {
        throw PeerError("SQLite", "sqlite3_open", "failed")
      }
      database = opened
      let setup = """
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        PRAGMA cache_size = -65536;
        CREATE TABLE blobs(name TEXT NOT NULL PRIMARY KEY, bytes BLOB NOT NULL);
        """
      guard sqlite3_exec(database, setup, nil, nil, nil) == SQLITE_OK else {
        throw PeerError("SQLite", "setup", "failed")
      }
      var statements: [OpaquePointer] = []
      for text in ["INSERT INTO blobs VALUES (?1, ?2)", "SELECT bytes FROM blobs WHERE name = ?1"] {
        var statement: OpaquePointer?
        sqlite3_prepare_v2(database, text, -1, &statement, nil)
        guard let statement else { throw PeerError("SQLite", "prepare", text) }
        statements.append(statement)
      }
      (insert, select) = (statements[0], statements[1])
    }

    deinit {
      sqlite3_finalize(insert)
      sqlite3_finalize(select)
      sqlite3_close(database)
    }

    package func put(_ bytes: [UInt8], _ name: String) throws {
      let code = bytes.withUnsafeBytes { buffer in
        name.withCString { text in
          sqlite3_bind_text(insert, 1, text, -1, nil)
          sqlite3_bind_blob(insert, 2, buffer.baseAddress, Int32(buffer.count), nil)
          return sqlite3_step(insert)
        }
      }
      sqlite3_reset(insert)
      guard code == SQLITE_DONE else { throw PeerError("SQLite", "insert", "code \(code)") }
    }

    package func get(_ name: String) throws -> [UInt8] {
      defer { sqlite3_reset(select) }
      return try name.withCString { text in
        sqlite3_bind_text(select, 1, text, -1, nil)
        guard sqlite3_step(select) == SQLITE_ROW, let bytes = sqlite3_column_blob(select, 0) else {
          throw PeerError("SQLite", "select", name)
        }
        let count = Int(sqlite3_column_bytes(select, 0))
        return [UInt8](UnsafeRawBufferPointer(start: bytes, count: count))
      }
    }
  }
#endif
