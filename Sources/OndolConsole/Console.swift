// The console as an app embeds it: one call serves the page on this machine and tells `ondol
// console` the address.

import Foundation
public import Ondol
import OndolEngine

/// A console that a process serves.
///
/// ```swift
/// #if DEBUG
///   let console = try await Console.start(database, access: .edit)
///   print(console.url)
/// #endif
/// ```
///
/// It listens only on 127.0.0.1. Anyone who has the URL, with the token in its fragment, sees
/// everything in the database, and can change it if `access` permits that.
public final class Console: Sendable {
  /// The page's address, with the token.
  public let url: String
  private let handler: ConsoleHandler
  private let server: ConsoleServer
  /// The path of the file with the console's address; nil for a database in memory.
  private let note: String?

  private init(
    _ url: String, _ handler: ConsoleHandler, _ server: ConsoleServer, note: String?
  ) {
    self.url = url
    self.handler = handler
    self.server = server
    self.note = note
  }

  /// Serves the console of a database until `stop()`.
  ///
  /// A file `NAME.console` beside the database's directory, which only its owner can read, contains
  /// the address for `ondol console`.
  ///
  /// - Parameters:
  ///   - database: the database to show.
  ///   - access: whether the page may change the database. It has no default, so that the app
  ///     decides.
  ///   - port: the port to listen on; 0 for a free one.
  /// - Throws: `.unimplemented` if the package was built without the trait `Console`;
  ///   `.unavailable` if the port is taken.
  public static func start(
    _ database: Database, access: ConsoleAccess, port: Int = 0
  ) async throws -> Console {
    try await start(database, access: access, port: port, holder: nil)
  }

  package static func start(
    _ database: Database, access: ConsoleAccess, port: Int, holder: Int?,
    server view: (any ConsoleServerView)? = nil, sync: (any ConsoleSyncView)? = nil
  ) async throws -> Console {
    let handler = ConsoleHandler(
      database, access: access, token: nil, holder: holder, server: view, sync: sync
    ) {
      Int64(Date().timeIntervalSince1970)
    }
    let server = try await ConsoleServer.start(handler, port: port)
    handler.serve(on: server.port)
    let url = "http://127.0.0.1:\(server.port)/#token=\(handler.token)"
    var note: String?
    if !database.isReadOnly, let directory = database.directory {
      note = HandOff.path(of: directory)
      try? HandOff.write(url, beside: directory)
    }
    return Console(url, handler, server, note: note)
  }

  /// Stops serving: the page's streams and tasks end. The database stays open.
  public func stop() async {
    if let note, (try? String(contentsOfFile: note, encoding: .utf8))?.contains(url) ?? false {
      try? FileManager.default.removeItem(atPath: note)
    }
    handler.close()
    await server.stop()
  }
}

/// The file with an embedded console's address.
package enum HandOff {
  /// The file's path, beside the database's directory.
  package static func path(of directory: String) -> String {
    var path = URL(filePath: directory).standardizedFileURL.path(percentEncoded: false)
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    return path + ".console"
  }

  /// Writes the file so that no other user can read it at any time.
  static func write(_ url: String, beside directory: String) throws {
    try writePrivately(
      "\(url)\n\(ProcessInfo.processInfo.processIdentifier)\n", to: path(of: directory))
  }

  /// Writes a file that only its owner can read, and replaces an existing one.
  package static func writePrivately(_ text: String, to path: String) throws {
    let files = FileManager.default
    // Another user could open the file before its permissions are restricted. So it is created in a
    // folder that only the owner can enter, and then moved.
    let folder = "\(path).\(UUID().uuidString)"
    try files.createDirectory(
      atPath: folder, withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    defer { try? files.removeItem(atPath: folder) }
    let made = folder + "/note"
    guard
      files.createFile(
        atPath: made, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
    else { throw DatabaseError(.permissionDenied, "cannot write \(path)", path: path) }
    try? files.removeItem(atPath: path)
    try files.moveItem(atPath: made, toPath: path)
  }

  /// The file's address and the id of the serving process, if there is a file. The database's lock
  /// shows whether that process still serves.
  package static func read(beside directory: String) -> (url: String, pid: Int)? {
    guard let text = try? String(contentsOfFile: path(of: directory), encoding: .utf8) else {
      return nil
    }
    let lines = text.split(separator: "\n").map(String.init)
    guard lines.count == 2, lines[0].hasPrefix("http://127.0.0.1:"), lines[0].contains("/#token="),
      let pid = Int(lines[1])
    else { return nil }
    return (lines[0], pid)
  }
}
