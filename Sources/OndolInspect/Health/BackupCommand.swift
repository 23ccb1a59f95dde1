// `ondol backup`: a copy of a database while other processes may have it open; `ondol restore`: the
// way back. `ondol verify-backup` is `check` at full depth under a name that is easy to find.

import ArgumentParser
import Foundation
import Ondol

struct BackupCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copies the current database into a new directory, or as a tar archive to -.",
    discussion: """
      Works beside an app that has the database open. Every byte is checked on the way: damage is \
      status 4, and then nothing is copied.

      Collections with keys of their own are copied as they are, sealed, and their keys are not: \
      dropping such a collection erases it from copies, too. A copy with keys opens them for good.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "A new or empty directory, or - for an archive on standard output.")
  var target: String

  @Flag(help: "Also the keys of collections that have their own, the file KEYS.")
  var withKeys = false

  @OptionGroup var globals: GlobalOptions

  func run(in database: Database) async throws {
    guard target == "-" else {
      return try await database.backup(to: target, withKeys: withKeys, globals)
    }
    guard !Output.isTerminal else {
      throw CommandFailure(.usage, "an archive is for a file or a pipe, not for a terminal")
    }
    try await globals.showing(.bytes) { bar in
      try await database.backup(into: { try Output.write(Data($0)) }, withKeys: withKeys) {
        progress in
        bar.show(progress.completedBytes, of: progress.totalBytes)
      }
    }
  }
}

extension Database {
  /// Copies the database into a new or empty directory, with visible progress.
  fileprivate func backup(
    to target: String, withKeys: Bool, _ globals: GlobalOptions
  ) async throws {
    try await globals.showing(.bytes) { bar in
      do throws(DatabaseError) {
        try await backup(to: target, withKeys: withKeys) {
          bar.show($0.completedBytes, of: $0.totalBytes)
        }
      } catch {
        // This is not a conflict here: the directory is simply not empty.
        guard error.code == .alreadyExists else { throw error }
        throw CommandFailure(.failed, error.message)
      }
    }
  }
}

struct RestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Makes a database from a backup, and verifies every byte.",
    discussion: """
      A backup is a database, too: it can also be opened where it is. Keys of collections that the \
      backup has come along.
      """)

  @Argument(help: "The backup's directory.", completion: .directory)
  var backup: String

  @Argument(help: "A new or empty directory.")
  var target: String

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await DatabaseArgument(at: backup).withDatabase { database in
      try await database.backup(to: target, withKeys: true, globals)
    }
  }
}

struct VerifyBackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify-backup",
    abstract: "Checks a backup: all files, all documents and all indexes, as check --full does.")

  @OptionGroup var database: DatabaseArgument

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    var check = CheckCommand()
    check.database = database
    check.quick = false
    check.full = true
    check.blobs = false
    check.indexes = false
    check.json = false
    check.globals = globals
    try await check.run()
  }
}
