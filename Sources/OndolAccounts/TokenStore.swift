// Where a device keeps the token of its session: outside the database, which has digests only. On
// Apple's systems an app gives a store that puts it into the keychain.

internal import Foundation
internal import OndolEngine

/// Keeps the token of the one session of an `Auth`, over restarts.
public protocol TokenStore: Sendable {
  /// The token that was saved last; nil where there is none.
  func load() throws -> String?

  /// Keeps a token in the place of the one before; nil forgets it.
  ///
  /// - Parameter token: the token.
  func save(_ token: String?) throws
}

/// Keeps the token in memory: a restart signs out.
public final class MemoryTokenStore: TokenStore {
  private let token = Guarded<String?>(nil)

  /// A store with nothing in it.
  public init() {}

  /// The token that was saved last; nil where there is none.
  public func load() -> String? { token.withLock { $0 } }

  /// Keeps a token; nil forgets it.
  ///
  /// - Parameter token: the token.
  public func save(_ token: String?) { self.token.withLock { $0 = token } }
}

/// Keeps the token in a file that its owner alone can read.
public struct FileTokenStore: TokenStore {
  /// The file's path.
  public let path: String

  /// A store in a file, which is made when there is a token to keep.
  ///
  /// - Parameter path: the file's path, in a directory that is there. Not inside the database's.
  public init(path: String) {
    self.path = path
  }

  /// The token in the file; nil where there is no file.
  public func load() throws -> String? {
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    return try String(contentsOf: URL(filePath: path), encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Writes the file, or removes it.
  ///
  /// - Parameter token: the token.
  public func save(_ token: String?) throws {
    let files = FileManager.default
    guard let token else {
      do {
        try files.removeItem(atPath: path)
      } catch {
        // There is none, or another store of the same file was faster.
        guard !files.fileExists(atPath: path) else { throw error }
      }
      return
    }
    // Made with its mode, never open to others even for a moment. A crash between removing the old
    // one and naming the new one signs out, no more.
    let draft = "\(path).new"
    if files.fileExists(atPath: draft) { try files.removeItem(atPath: draft) }
    let isMade = files.createFile(
      atPath: draft, contents: Data(token.utf8), attributes: [.posixPermissions: 0o600])
    guard isMade else { throw CocoaError(.fileWriteUnknown) }
    if files.fileExists(atPath: path) { try files.removeItem(atPath: path) }
    try files.moveItem(atPath: draft, toPath: path)
  }
}
