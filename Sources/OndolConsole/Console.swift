// The console as an app embeds it: one call that serves the page on this machine, and tells
// `ondol console` where.

import Foundation
public import Ondol
import OndolEngine

/// A console that is served.
///
/// ```swift
/// #if DEBUG
///   let console = try await Console.start(database, access: .edit)
///   print(console.url)
/// #endif
/// ```
///
/// It listens on 127.0.0.1 alone. Whoever knows the URL, with the token in its fragment, sees all
/// that is in the database, and may change it where `access` says so.
public final class Console: Sendable {
  /// The page's address, with the token.
  public let url: String
  private let handler: ConsoleHandler
  private let server: ConsoleServer
  /// The file that tells where the console is; nil for a database in memory.
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
  /// Beside the database's directory a file `NAME.console`, which only its owner can read, tells
  /// the address to `ondol console`.
  ///
  /// - Parameters:
  ///   - database: what is shown.
  ///   - access: whether the page may change it. There is no default: somebody decides.
  ///   - port: where it listens; a free port for 0.
  /// - Throws: `.unimplemented` where the package was built without the trait `Console`;
  ///   `.unavailable` when the port is taken.
  public static func start(
    _ database: Database, access: ConsoleAccess, port: Int = 0
  ) async throws -> Console {
    try await start(database, access: access, port: port, holder: nil)
  }

  package static func start(
    _ database: Database, access: ConsoleAccess, port: Int, holder: Int?
  ) async throws -> Console {
    let handler = ConsoleHandler(database, access: access, token: nil, holder: holder) {
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

  /// Serves it no more: streams and tasks of the page end. The database stays open.
  public func stop() async {
    if let note, (try? String(contentsOfFile: note, encoding: .utf8))?.contains(url) ?? false {
      try? FileManager.default.removeItem(atPath: note)
    }
    handler.close()
    await server.stop()
  }
}

/// The file that tells where an embedded console is.
package enum HandOff {
  /// Where it is: beside the database's directory.
  package static func path(of directory: String) -> String {
    var path = URL(filePath: directory).standardizedFileURL.path(percentEncoded: false)
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    return path + ".console"
  }

  /// Writes it so that nobody else can ever read it.
  static func write(_ url: String, beside directory: String) throws {
    try writePrivately(
      "\(url)\n\(ProcessInfo.processInfo.processIdentifier)\n", to: path(of: directory))
  }

  /// Writes a file that only its owner can read, in the place of one that is there.
  package static func writePrivately(_ text: String, to path: String) throws {
    let files = FileManager.default
    // A file that is closed to others after it was made may have been opened before: so it is made
    // in a folder of its owner's, and moved.
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

  /// The address in it and the process that serves it, if there is one; whether it still does, the
  /// database's lock tells.
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
