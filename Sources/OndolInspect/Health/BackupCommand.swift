// `ondol backup`: a copy of a database, beside whoever has it open. `ondol verify-backup` is
// `check` at full depth by a name that one finds.

import ArgumentParser
import Foundation
import Ondol

struct BackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copies a database as it is now into a new directory, or as a tar archive to -.",
    discussion: """
      Works beside an app that has the database open. Every byte is checked on the way: damage is \
      status 4, and then nothing is copied.
      """)

  @OptionGroup var database: DatabaseArgument

  @Argument(help: "A new or empty directory, or - for an archive on standard output.")
  var target: String

  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    try await database.withDatabase { database in
      var bar: SharedProgressBar?
      let progress = { (progress: BackupProgress) in
        let total = Int64(clamping: progress.totalBytes)
        bar = bar ?? SharedProgressBar(.bytes, of: total, globals)
        bar?.show(Int64(clamping: progress.completedBytes))
      }
      if target == "-" {
        try await database.backup(into: write, progress: progress)
      } else {
        do throws(DatabaseError) {
          try await database.backup(to: target, progress: progress)
        } catch {
          // Here nothing is in conflict: the directory is just not empty.
          guard error.code == .alreadyExists else { throw error }
          throw CommandFailure(.failed, error.message)
        }
      }
      bar?.clear()
    }
  }

  private func write(_ bytes: [UInt8]) throws(CommandFailure) {
    try Output.write(Data(bytes))
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
