// Where a server is, as an app says it.

#if Sync
  import Foundation
  public import Ondol
  import OndolMapping

  /// A server of Firestore's protocol.
  public struct SyncServer: Sendable, Hashable {
    /// A host's port.
    struct Place: Sendable, Hashable {
      let host: String
      let port: Int
      let isSecure: Bool

      /// - Throws: `.invalidArgument` for another kind of address.
      init(_ url: String) throws(DatabaseError) {
        let parts = URLComponents(string: url)
        guard let parts, let host = parts.host, !host.isEmpty,
          ["http", "https"].contains(parts.scheme),
          parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.user == nil,
          UInt16(exactly: parts.port ?? 443) != nil
        else {
          throw DatabaseError(
            .invalidArgument,
            "\"\(url)\" is no server's address, such as https://shop.example or"
              + " http://127.0.0.1:8080")
        }
        isSecure = parts.scheme == "https"
        self.host = host
        port = parts.port ?? (isSecure ? 443 : 80)
      }
    }

    let place: Place
    let project: String
    let database: String
    /// Where the server's storage is; nil when contents of documents are not exchanged.
    let storage: Place?
    /// Whether the server is one of Google's, which records no names of writes.
    let isGoogles: Bool

    /// A server of Ondol's, as `ondol serve` runs it. Writes count exactly once there, whatever
    /// breaks.
    ///
    /// - Parameters:
    ///   - url: `https://shop.example`, with a port where it is not 443. With `http://`, nothing is
    ///     encrypted: for this machine, or a network of one's own.
    ///   - project: the name of the project, which accounts and rules know.
    ///   - database: the database's name in the project.
    ///   - storage: the address of the server's storage (`--port-storage`). Without it, the
    ///     contents of documents are not exchanged: documents that name some are refused, and those
    ///     of others arrive without the bytes.
    /// - Throws: `.invalidArgument` for another kind of address, and for the storage of a database
    ///   that is not the project's usual one, which has none.
    public static func ondol(
      _ url: String, project: String, database: String = "(default)", storage: String? = nil
    ) throws(DatabaseError) -> SyncServer {
      guard storage == nil || database == DatabaseName.usual else {
        throw DatabaseError(
          .invalidArgument, "only the database \(DatabaseName.usual) of a project has storage")
      }
      return SyncServer(
        place: try Place(url), project: project, database: database,
        storage: try storage.map { (storage) throws(DatabaseError) in try Place(storage) },
        isGoogles: false)
    }

    /// Google's Firestore.
    ///
    /// Google's server does not record which writes a device has sent. When a connection breaks
    /// after a commit and before its answer, the device sends the commit again: so an increment may
    /// count twice there, and a transaction that was committed may become a ``Rejection``. A server
    /// of Ondol's has neither. The contents of documents are not exchanged.
    ///
    /// - Parameters:
    ///   - project: the id of the project.
    ///   - database: the database's name in the project.
    ///   - url: the server's address; another one for an emulator, such as
    ///     `http://127.0.0.1:8080`.
    /// - Throws: `.invalidArgument` for another kind of address.
    public static func firestore(
      project: String, database: String = "(default)",
      at url: String = "https://firestore.googleapis.com"
    ) throws(DatabaseError) -> SyncServer {
      SyncServer(
        place: try Place(url), project: project, database: database, storage: nil,
        isGoogles: true)
    }

    var name: DatabaseName { DatabaseName(project: project, id: database) }

    /// The bucket of a project, as its storage names it.
    static func bucket(of project: String) -> String { "\(project.lowercased()).appspot.com" }
  }
#endif
