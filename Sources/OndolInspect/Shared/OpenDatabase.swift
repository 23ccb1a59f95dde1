// The one way in which every command opens and closes a database: a command that only looks opens
// it for reading, beside an app that has it open and without creating one, and whatever happens in
// between, the database is closed before the process ends.

import ArgumentParser
import Foundation
import Ondol

/// The database's directory, the first argument of every command.
struct DatabaseArgument: ParsableArguments {
  @Argument(help: "The database's directory.", completion: .directory)
  var directory: String

  /// Runs `body` with the database open.
  ///
  /// Without `writing`, a directory that is not there is status 3.
  func withDatabase<Result>(
    writing: Bool = false, _ body: (Database) async throws -> Result
  ) async throws -> Result {
    if !writing, !FileManager.default.fileExists(atPath: directory) {
      throw CommandFailure(.notFound, "there is no database at \(directory)")
    }
    if writing, !ShellSession.mayWrite(to: directory) {
      throw CommandFailure(.readOnly, "the shell is for reading; open it with --write to write")
    }
    if !writing, let held = ShellSession.held(at: directory) {
      do {
        return try await body(held)
      } catch let error as DatabaseError {
        throw CommandFailure(error)
      }
    }
    let database: Database
    do throws(DatabaseError) {
      database = try await Database.open(
        at: directory, options: Database.Options(access: writing ? .readWrite : .readOnly))
    } catch {
      throw CommandFailure(opening: directory, error)
    }
    do {
      let result =
        try await writing
        ? Interruption.whileWriting { try await body(database) } : body(database)
      try await database.close()
      return result
    } catch {
      // What went wrong first is what to tell.
      try? await database.close()
      if let error = error as? DatabaseError { throw CommandFailure(error) }
      throw error
    }
  }
}
