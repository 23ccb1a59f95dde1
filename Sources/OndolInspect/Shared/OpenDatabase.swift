// The one way in which every command opens and closes a database: a command that only looks opens
// it for reading, beside an app that has it open and without creating one, and whatever happens in
// between, the database is closed before the process ends.

import ArgumentParser
import Foundation
import Ondol

/// A command that does its work in one open database.
protocol DatabaseCommand: AsyncParsableCommand {
  var database: DatabaseArgument { get }

  /// Whether it writes; most look.
  var isWriting: Bool { get }

  func run(in database: Database) async throws
}

extension DatabaseCommand {
  var isWriting: Bool { false }

  func run() async throws {
    try await database.withDatabase(writing: isWriting) { try await run(in: $0) }
  }
}

/// The database's directory, the first argument of every command.
struct DatabaseArgument: ParsableArguments {
  @Argument(help: "The database's directory.", completion: .directory)
  var directory: String

  /// The database there, for a command that has it from somewhere else.
  init(at directory: String) {
    self.init()
    self.directory = directory
  }

  init() {}

  /// Throws status 3 when nothing is there.
  func check() throws(CommandFailure) {
    guard FileManager.default.fileExists(atPath: directory) else {
      throw CommandFailure(.notFound, "there is no database at \(directory)")
    }
  }

  /// Runs `body` with the database open. One that writes is not interrupted in its middle.
  ///
  /// Without `writing`, a directory that is not there is status 3.
  func withDatabase<Result>(
    writing: Bool = false, _ body: (Database) async throws -> Result
  ) async throws -> Result {
    do {
      guard writing else { return try await look(body) }
      guard ShellSession.mayWrite(to: directory) else {
        throw CommandFailure(.readOnly, "the shell is for reading; open it with --write to write")
      }
      return try await Interruption.whileWriting { try await run(.readWrite, body) }
    } catch let error as DatabaseError {
      throw CommandFailure(error)
    }
  }

  /// Not optimised: the optimiser of Swift 6.3.1 crashes on what it makes of it for some callers.
  @inline(never) @_optimize(none)
  private func look<Result>(_ body: (Database) async throws -> Result) async throws -> Result {
    try check()
    if let held = ShellSession.held(at: directory) { return try await body(held) }
    return try await run(.readOnly, body)
  }

  private func run<Result>(
    _ access: Database.Access, _ body: (Database) async throws -> Result
  ) async throws -> Result {
    let database = try await Database.open(at: directory, for: access)
    do {
      let result = try await body(database)
      try await database.close()
      return result
    } catch {
      // What went wrong first is what to tell.
      try? await database.close()
      throw error
    }
  }
}

extension Database {
  /// Opens a database, or says why not as commands say it.
  ///
  /// Not inlined: the optimiser of Swift 6.3.1 crashes on what it makes of it within its callers.
  @inline(never)
  static func open(
    at directory: String, for access: Access
  ) async throws(CommandFailure) -> Database {
    let key = try DatabaseKey.current()
    do throws(DatabaseError) {
      return try await open(at: directory, options: Options(access: access, encryption: key))
    } catch {
      throw CommandFailure(opening: directory, error)
    }
  }
}
