// The one way in which every command opens and closes a database. A command that only reads opens
// it for reading, alongside an app that has it open, and never creates one. Whatever happens in
// between, the database is closed before the process ends.

import ArgumentParser
import Foundation
import Ondol

/// A command that works in one open database.
protocol DatabaseCommand: AsyncParsableCommand {
  var database: DatabaseArgument { get }

  /// Whether it writes. Most commands only read.
  var isWriting: Bool { get }

  func run(in database: Database) async throws
}

extension DatabaseCommand {
  var isWriting: Bool { false }

  func run() async throws {
    try await database.withDatabase(writing: isWriting) { try await run(in: $0) }
  }
}

/// The location of the database, the first argument of every command.
struct DatabaseArgument: ParsableArguments {
  @Argument(
    help: "The database's directory, or its address on a server: postgresql://…",
    completion: .directory)
  var place: String

  /// The database at a location, for a command that gets it from elsewhere.
  init(at place: String) {
    self.init()
    self.place = place
  }

  init() {}

  var isOnServer: Bool { ServerAddress.isOne(place) }

  /// The part of the location that may be shown.
  var name: String { isOnServer ? ServerAddress.name(of: place) : place }

  /// The database's directory, for a command that examines files.
  ///
  /// - Throws: status 1 for a server; status 3 if nothing exists there.
  func directory() throws(CommandFailure) -> String {
    if isOnServer {
      throw CommandFailure(.failed, "a database on a server has no files, which this command needs")
    }
    guard FileManager.default.fileExists(atPath: place) else {
      throw CommandFailure(.notFound, "there is no database at \(place)")
    }
    return place
  }

  /// Runs `body` with the database open. A command that writes is not interrupted in the middle.
  ///
  /// Without `writing`, a location without a database is status 3.
  func withDatabase<Result>(
    writing: Bool = false, _ body: (Database) async throws -> Result
  ) async throws -> Result {
    do {
      guard writing else { return try await look(body) }
      guard ShellSession.mayWrite(to: place) else {
        throw CommandFailure(.readOnly, "the shell is for reading; open it with --write to write")
      }
      return try await Interruption.whileWriting {
        try await run(body) { () async throws(CommandFailure) in
          try await Database.open(at: place, writing: true)
        }
      }
    } catch let error as DatabaseError {
      throw CommandFailure(error)
    }
  }

  /// Not optimised: the optimiser of Swift 6.3.1 crashes on the code for some callers.
  @inline(never) @_optimize(none)
  private func look<Result>(_ body: (Database) async throws -> Result) async throws -> Result {
    if !isOnServer { _ = try directory() }
    if let held = ShellSession.held(at: place) { return try await body(held) }
    return try await run(body) { () async throws(CommandFailure) in
      try await Database.open(at: place, writing: false)
    }
  }

  /// Runs `body` with the database that `open` opens.
  func run<Result>(
    _ body: (Database) async throws -> Result,
    open: () async throws(CommandFailure) -> Database
  ) async throws -> Result {
    let database = try await open()
    do {
      let result = try await body(database)
      try await database.close()
      return result
    } catch {
      // The first failure is the one to report.
      try? await database.close()
      throw error
    }
  }
}

extension Database {
  /// Opens a database, or reports the reason in the way of commands. Without `writing` it creates
  /// none, and opens files for reading.
  ///
  /// Not inlined: the optimiser of Swift 6.3.1 crashes on its inlined form in callers.
  @inline(never)
  static func open(
    at place: String, writing: Bool
  ) async throws(CommandFailure) -> Database {
    let key = try DatabaseKey.current()
    let store = try ServerAddress.store(place, creates: writing)
    do throws(DatabaseError) {
      if let store {
        var options = Options()
        options.continuesChanges = true
        return try await open(on: store, options: options)
      }
      let options = Options(access: writing ? .readWrite : .readOnly, encryption: key)
      return try await open(at: place, options: options)
    } catch {
      throw CommandFailure(opening: place, error)
    }
  }
}
