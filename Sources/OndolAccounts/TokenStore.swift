// Storage for the token of a device's session: outside the database, which keeps only digests. On
// Apple's systems an app provides a store that uses the keychain.

internal import Foundation
internal import OndolEngine

/// Keeps the token of an `Auth`'s session across restarts.
public protocol TokenStore: Sendable {
  /// The last saved token; nil if there is none.
  func load() throws -> String?

  /// Saves a token, which replaces the previous one; nil deletes it.
  ///
  /// - Parameter token: the token.
  func save(_ token: String?) throws
}

/// Keeps the token in memory. A restart signs out.
public final class MemoryTokenStore: TokenStore {
  private let token = Guarded<String?>(nil)

  /// A store with nothing in it.
  public init() {}

  /// The last saved token; nil if there is none.
  public func load() -> String? { token.withLock { $0 } }

  /// Saves a token; nil deletes it.
  ///
  /// - Parameter token: the token.
  public func save(_ token: String?) { self.token.withLock { $0 = token } }
}

/// Keeps the token in a file that only its owner can read.
public struct FileTokenStore: TokenStore {
  /// The file's path.
  public let path: String

  /// A store in a file. The store creates the file when it first saves a token.
  ///
  /// - Parameter path: the file's path, in an existing directory outside the database's directory.
  public init(path: String) {
    self.path = path
  }

  /// The token in the file; nil if there is no file.
  public func load() throws -> String? {
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    return try String(contentsOf: URL(filePath: path), encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Writes the file, or deletes it.
  ///
  /// - Parameter token: the token.
  public func save(_ token: String?) throws {
    let files = FileManager.default
    guard let token else {
      do {
        try files.removeItem(atPath: path)
      } catch {
        // There is no file, or another store deleted it first.
        guard !files.fileExists(atPath: path) else { throw error }
      }
      return
    }
    // The file has its mode from its creation, so it is never open to others. A crash between
    // deleting the old file and renaming the new one only signs out.
    let draft = "\(path).new"
    if files.fileExists(atPath: draft) { try files.removeItem(atPath: draft) }
    let isMade = files.createFile(
      atPath: draft, contents: Data(token.utf8), attributes: [.posixPermissions: 0o600])
    guard isMade else { throw CocoaError(.fileWriteUnknown) }
    if files.fileExists(atPath: path) { try files.removeItem(atPath: path) }
    try files.moveItem(atPath: draft, toPath: path)
  }
}
