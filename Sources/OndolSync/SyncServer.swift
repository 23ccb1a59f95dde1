// Where a server is, as an app says it.

#if Sync
  import Foundation
  public import Ondol
  import OndolMapping

  /// A server of Firestore's protocol.
  public struct SyncServer: Sendable, Hashable {
    let host: String
    let port: Int
    let isSecure: Bool
    let project: String
    let database: String

    /// A server of Ondol's, as `ondol serve` runs it. Writes count exactly once there, whatever
    /// breaks.
    ///
    /// - Parameters:
    ///   - url: `https://shop.example`, with a port where it is not 443. With `http://`, nothing is
    ///     encrypted: for this machine, or a network of one's own.
    ///   - project: the name of the project, which accounts and rules know.
    ///   - database: the database's name in the project.
    /// - Throws: `.invalidArgument` for another kind of address.
    public static func ondol(
      _ url: String, project: String, database: String = "(default)"
    ) throws(DatabaseError) -> SyncServer {
      let parts = URLComponents(string: url)
      guard let parts, let host = parts.host, !host.isEmpty,
        ["http", "https"].contains(parts.scheme),
        parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.user == nil,
        UInt16(exactly: parts.port ?? 443) != nil
      else {
        throw DatabaseError(
          .invalidArgument,
          "\"\(url)\" is no server's address, such as https://shop.example or http://127.0.0.1:8080"
        )
      }
      let isSecure = parts.scheme == "https"
      return SyncServer(
        host: host, port: parts.port ?? (isSecure ? 443 : 80), isSecure: isSecure,
        project: project, database: database)
    }

    var name: DatabaseName { DatabaseName(project: project, id: database) }
  }
#endif
