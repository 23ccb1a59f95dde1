// The file that a server and its administrators' tools share: one token, which nobody else may
// know.

import Foundation
import OndolTerminal

enum AdminTokenFile {
  private static let leastBytes = 16

  /// The token in a file.
  ///
  /// Throws status 3 when the file cannot be read, and status 1 when it has no good token.
  static func read(_ path: String) throws(CommandFailure) -> String {
    guard let data = FileManager.default.contents(atPath: path),
      let text = String(data: data, encoding: .utf8)
    else { throw CommandFailure(.notFound, "\(path) cannot be read") }
    let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard token.utf8.count >= leastBytes, !token.contains(where: \.isWhitespace) else {
      throw CommandFailure(
        .failed, "\(path) has no token: one word of \(leastBytes) bytes or more")
    }
    return token
  }
}
