// `ondol encrypt`, `ondol decrypt` and `ondol rekey`: change a database's key, or remove it. Each
// can be stopped and started again, and continues where it stopped.

import ArgumentParser
import Foundation
import Ondol

/// The new keys of a database.
struct NewKeys: ParsableArguments {
  @Option(
    name: .customLong("new-key-file"),
    help: "A file with the 32 bytes of a key that opens it from now on; up to four keys in all.",
    completion: .file())
  var keyFiles: [String] = []

  @Option(
    name: .customLong("new-passphrase-file"),
    help: "A file whose first line is a passphrase that opens it from now on.", completion: .file())
  var passphraseFiles: [String] = []

  /// The named keys, or the one that opens databases if none were named.
  ///
  /// - Throws: status 2 if there is none.
  func keys() throws -> [Database.Encryption] {
    let new =
      try keyFiles.map { try DatabaseKey.key(in: $0) }
      + passphraseFiles.map { try DatabaseKey.passphrase(in: $0) }
    if !new.isEmpty { return new }
    guard let current = try DatabaseKey.current() else {
      throw CommandFailure(
        .usage, "name a key: --new-key-file, --new-passphrase-file, --key-file or ONDOL_KEY")
    }
    return [current]
  }
}

extension GlobalOptions {
  /// Shows the progress of a key change, and reports its result.
  fileprivate func showChange(
    _ schema: String, of database: Database,
    _ change: (_ progress: (EncryptionProgress) -> Void) async throws -> Void
  ) async throws {
    var bytes = 0
    try await showing(.bytes) { bar in
      try await change { progress in
        bytes = Int(clamping: progress.totalBytes)
        bar.show(progress.completedBytes, of: progress.totalBytes)
      }
    }
    try report(
      schema, [("isEncrypted", .boolean(database.isEncrypted)), ("bytesWritten", .number(bytes))])
  }
}

struct EncryptCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "encrypt", abstract: "Encrypts a plain database.",
    discussion: """
      Everything is written anew, and nothing that is stored can be read in its files afterwards. \
      Ended in the middle it goes on when the database is opened the next time, with the key, or \
      with this command again. Copies made before stay in the clear.
      """)

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var new: NewKeys
  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    _ = try database.directory()
    let keys = try new.keys()
    try await database.withDatabase(openingWith: [nil] + keys) { database in
      try await globals.showChange("encrypt/1", of: database) { progress in
        try await database.encrypt(with: keys, progress: progress)
      }
    }
  }
}

struct DecryptCommand: DatabaseCommand {
  static let configuration = CommandConfiguration(
    commandName: "decrypt", abstract: "Decrypts a database.",
    discussion: """
      Everything is written anew. When this is done the database opens without a key, and with \
      one no more; up to then it opens with the key only. Ended in the middle it goes on as \
      encrypt does.
      """)

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var globals: GlobalOptions

  var isWriting: Bool { true }

  func run(in database: Database) async throws {
    try await globals.showChange("decrypt/1", of: database) { progress in
      try await database.decrypt(progress: progress)
    }
  }
}

struct RekeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Rewrites an encrypted database with another key.",
    discussion: """
      Exchanges the key that the files are sealed with, so that nobody who had the old one can \
      read what is there afterwards. It opens with the keys that are named, and with no others, \
      from the beginning of this on; with the one it was opened with when none is named. Ended in \
      the middle it goes on as encrypt does.
      """)

  @OptionGroup var database: DatabaseArgument
  @OptionGroup var new: NewKeys
  @OptionGroup var globals: GlobalOptions

  func run() async throws {
    _ = try database.directory()
    let keys = try new.keys()
    // If a change has begun, the database already opens with the new keys.
    let current = try DatabaseKey.current().map { [$0] } ?? []
    try await database.withDatabase(openingWith: current + keys) { database in
      try await globals.showChange("rekey/1", of: database) { progress in
        try await database.rekey(with: keys, progress: progress)
      }
    }
  }
}

extension DatabaseArgument {
  /// Runs `body` with the database open for writing, with the first of these keys that opens it. A
  /// nil key stands for none.
  fileprivate func withDatabase(
    openingWith keys: [Database.Encryption?], _ body: (Database) async throws -> Void
  ) async throws {
    guard ShellSession.mayWrite(to: place) else {
      throw CommandFailure(.readOnly, "the shell is for reading; open it with --write to write")
    }
    do {
      try await Interruption.whileWriting {
        try await run(body) { () async throws(CommandFailure) in
          var failure: CommandFailure?
          for key in keys {
            do throws(DatabaseError) {
              return try await Database.open(
                at: place, options: Database.Options(encryption: key))
            } catch {
              failure = CommandFailure(opening: place, error)
              // A different key, or a key for an unencrypted database.
              guard error.code == .permissionDenied || error.code == .invalidArgument else {
                break
              }
            }
          }
          throw failure ?? CommandFailure(.usage, "name a key")
        }
      }
    } catch let error as DatabaseError {
      throw CommandFailure(error)
    }
  }
}
