// `ondol console`: the web console of a database. It opens the database for writing. If another
// process has it open, it hands over to the console embedded there, or follows the database
// read-only. A database on a server may be open for writing in several processes.

import ArgumentParser
import Foundation
import Ondol
import OndolConsole
import OndolTerminal

struct ConsoleCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "console",
    abstract: "Shows the database in a browser, live, and changes it there.",
    discussion: """
      Prints the page's address and serves it on this machine alone, until it is interrupted. \
      Whoever has the address has the token in it: keep it to yourself.
      """)

  @OptionGroup var database: DatabaseArgument

  @Flag(help: "Allow no changes.")
  var readOnly = false

  @Flag(help: "Opens a browser.")
  var open = false

  @Option(help: "The port to listen on; 0 for a free one.")
  var port = 0

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    guard UInt16(exactly: port) != nil else {
      throw ValidationError("--port is from 0 to 65535")
    }
  }

  func run() async throws {
    // The database must be closed cleanly, whatever it was opened for.
    try await Interruption.whileWriting {
      do {
        if database.isOnServer {
          let opened = try await Database.open(at: database.place, writing: false)
          return try await serve(opened, readOnly ? .read : .edit, holder: nil)
        }
        let directory = try database.directory()
        if readOnly { return try await follow(directory, holder: Self.holder(of: directory)) }
        switch await opened(directory, try DatabaseKey.current()) {
        case .success(let opened): try await serve(opened, .edit, holder: nil)
        case .failure(let error):
          guard error.code == .failedPrecondition else { throw error }
          try await handOver(directory, error)
        }
      } catch let error as DatabaseError {
        throw CommandFailure(error)
      }
    }
  }

  private func opened(
    _ directory: String, _ key: Database.Encryption?
  ) async -> Result<Database, DatabaseError> {
    do throws(DatabaseError) {
      return .success(
        try await Database.open(at: directory, options: Database.Options(encryption: key)))
    } catch {
      return .failure(error)
    }
  }

  /// Another process writes the database.
  private func handOver(_ directory: String, _ error: DatabaseError) async throws {
    guard let holder = Self.holder(of: directory) else { throw error }
    if let (url, pid) = Self.embedded(beside: directory), pid == holder {
      try Output.write(Data((url + "\n").utf8))
      globals.say("process \(holder) has the database open, and this is its console")
      if open { try Self.openBrowser(url) }
      return
    }
    globals.say(
      lines: """
        process \(holder) has the database open, so nothing can be changed here; to change it, \
        have that app serve the console:
          let console = try await Console.start(database, access: .edit)
          print(console.url)
        """)
    try await follow(directory, holder: holder)
  }

  private func follow(_ directory: String, holder: Int?) async throws {
    let options = Database.Options(
      access: .readOnly, encryption: try DatabaseKey.current())
    let opened = try await Database.open(at: directory, options: options)
    try await serve(opened, .read, holder: holder)
  }

  private func serve(_ opened: Database, _ access: ConsoleAccess, holder: Int?) async throws {
    do {
      let console = try await OndolConsole.Console.start(
        opened, access: access, port: port, holder: holder)
      try Output.write(Data((console.url + "\n").utf8))
      if open { try Self.openBrowser(console.url) }
      while !Task.isCancelled { try? await Task.sleep(for: .seconds(3_600)) }
      await console.stop()
    } catch {
      try? await Self.close(opened)
      throw error
    }
    try await Self.close(opened)
  }

  /// Closes the database even though the command was interrupted.
  private static func close(_ database: Database) async throws {
    try await Task { try await database.close() }.value
  }

  /// The process that has a database open for writing, according to its lock.
  private static func holder(of directory: String) -> Int? {
    let lock = URL(filePath: directory).appending(path: "LOCK")
    guard let text = try? String(contentsOf: lock, encoding: .utf8), text.hasPrefix("process ")
    else { return nil }
    return Int(text.dropFirst("process ".count).prefix { $0.isNumber })
  }

  /// The console that an app serves, and the app's process.
  private static func embedded(beside directory: String) -> (url: String, pid: Int)? {
    guard let note = HandOff.read(beside: directory) else { return nil }
    return (note.url, note.pid)
  }

  /// Opens a browser through a file that only its owner can read, because an address on a command
  /// line appears in the process list, which every user can read.
  private static func openBrowser(_ url: String) throws {
    let file = FileManager.default.temporaryDirectory
      .appending(path: "ondol-console-\(UUID().uuidString).html")
    let page = "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=\(url)\">\n"
    let path = file.path(percentEncoded: false)
    try HandOff.writePrivately(page, to: path)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    #if os(macOS)
      process.arguments = ["open", path]
    #else
      process.arguments = ["xdg-open", path]
    #endif
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
  }
}
