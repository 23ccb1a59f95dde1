// The key of an encrypted database: the bytes of the file given with --key-file, the passphrase in
// the file given with --passphrase-file, or ONDOL_KEY, which contains a key as 64 hexadecimal
// digits. Every user who may inspect a process can read its environment, so a file is better. A
// database that a command creates is encrypted with this key.

import ArgumentParser
import Foundation
import Ondol
import OndolEngine
import Synchronization

/// The key that commands open databases with.
enum DatabaseKey {
  private static let read = Mutex<Database.Encryption?>(nil)

  /// Takes the key from a file.
  static func read(_ file: String) throws(ValidationError) {
    let key = try key(in: file)
    read.withLock { $0 = key }
  }

  /// Takes a passphrase from a file's first line.
  static func readPassphrase(_ file: String) throws(ValidationError) {
    let passphrase = try passphrase(in: file)
    read.withLock { $0 = passphrase }
  }

  /// The key in a file.
  static func key(in file: String) throws(ValidationError) -> Database.Encryption {
    guard let bytes = try? Data(contentsOf: URL(filePath: file)) else {
      throw ValidationError("the key file \(file) cannot be read")
    }
    guard bytes.count == Database.Encryption.keyLength else {
      throw ValidationError(
        "a key file has \(Database.Encryption.keyLength) bytes, and \(file) has \(bytes.count)")
    }
    return .key(bytes)
  }

  /// The passphrase in a file's first line.
  static func passphrase(in file: String) throws(ValidationError) -> Database.Encryption {
    guard let text = try? String(contentsOf: URL(filePath: file), encoding: .utf8) else {
      throw ValidationError("the passphrase file \(file) cannot be read as UTF-8")
    }
    let line = String(text.prefix { !$0.isNewline })
    guard !line.isEmpty else { throw ValidationError("the first line of \(file) is empty") }
    return .passphrase(line)
  }

  /// The key, if there is one.
  ///
  /// Not inlined: the optimiser of Swift 6.3.1 crashes on its inlined form in callers.
  ///
  /// - Throws: status 2 if ONDOL_KEY is not a valid key.
  @inline(never)
  static func current() throws(CommandFailure) -> Database.Encryption? {
    if let key = read.withLock({ $0 }) { return key }
    guard let digits = ProcessInfo.processInfo.environment["ONDOL_KEY"], !digits.isEmpty else {
      return nil
    }
    guard let bytes = [UInt8](hexadecimal: digits),
      bytes.count == Database.Encryption.keyLength
    else {
      throw CommandFailure(
        .usage, "ONDOL_KEY must have \(2 * Database.Encryption.keyLength) hexadecimal digits")
    }
    return .key(bytes)
  }

  /// The environment with the key.
  static func environment() throws(CommandFailure) -> Environment {
    Environment.live().opening(with: try current())
  }
}
