// The location of a database: the address of a server as libpq reads it, and in its query the name
// of one of the Ondol databases that share its tables. The displayed form contains no passwords.
// Neither does an error about an unreadable address.

internal import Ondol
internal import OndolEngine

/// The address of a database on PostgreSQL.
struct PostgresAddress: Sendable {
  /// The name of the database in the tables; `ondol=` in the address.
  let database: String
  /// The part of the address that may be shown.
  let name: String
  /// The settings for the library, in its order.
  let settings: [(name: String, value: String)]
  /// Texts that no message may contain.
  let secrets: [String]

  private static let parameter = "ondol"
  /// The settings in the query that `name` includes.
  private static let shown: Set<String> = ["host", "port", "dbname"]
  private static let secret: Set<String> = ["password", "sslpassword"]

  /// - Parameter text: `postgresql://user:password@host:port/database?ondol=name`, with further
  ///   parameters of libpq after `?`.
  /// - Throws: `.invalid`.
  init(_ text: String) throws(EngineError) {
    guard let scheme = ["postgresql://", "postgres://"].first(where: { text.hasPrefix($0) }) else {
      throw Self.refusal("does not begin with postgresql://")
    }
    let rest = text.dropFirst(scheme.count)
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    let path = rest.dropFirst(authority.count).prefix { $0 != "?" }
    let query = rest.dropFirst(authority.count + path.count).dropFirst()
    let parts = authority.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count <= 2, !path.contains("@"), !query.contains("@"), !text.contains("\0") else {
      throw Self.refusal("has a character in its password that must be percent-encoded")
    }
    let user = parts.count == 2 ? parts[0].split(separator: ":", maxSplits: 1) : []
    var secrets = user.count == 2 ? [String(user[1])] : []
    var database = "default"
    var (kept, visible): ([Substring], [Substring]) = ([], [])
    for item in query.split(separator: "&") {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let (key, value) = (String(pair[0]), pair.count == 2 ? String(pair[1]) : "")
      if key == Self.parameter {
        guard let decoded = PercentCoding.decoded(value) else {
          throw Self.refusal("has a name behind \(Self.parameter)= that is not UTF-8")
        }
        database = decoded
        continue
      }
      kept.append(item)
      if Self.secret.contains(key) { secrets.append(value) }
      if Self.shown.contains(key) { visible.append(item) }
    }
    guard (1...255).contains(database.utf8.count), !database.contains("\0") else {
      throw Self.refusal("has a name behind \(Self.parameter)= that is empty or too long")
    }
    let server = "postgresql://\(authority)\(path)"
    let address = kept.isEmpty ? server : "\(server)?\(kept.joined(separator: "&"))"
    guard Library.canRead(address) else { throw Self.refusal("is none that libpq can read") }

    self.database = database
    let login = user.isEmpty ? "" : "\(user[0])@"
    let known = (visible + ["\(Self.parameter)=\(database)"]).joined(separator: "&")
    name = "postgresql://\(login)\(parts.last ?? "")\(path)?\(known)"
    self.secrets = secrets.flatMap { [$0, PercentCoding.decoded($0) ?? $0] }.filter { !$0.isEmpty }
    settings = [
      // A client of a server that vanished silently waits until the failure is detected. The
      // address may override these settings.
      ("application_name", "ondol"), ("connect_timeout", "5"), ("keepalives", "1"),
      ("keepalives_idle", "10"), ("keepalives_interval", "5"), ("keepalives_count", "3"),
      ("tcp_user_timeout", "15000"),
      ("target_session_attrs", "read-write"),
      ("dbname", address),
      ("client_encoding", "UTF8"),
    ]
  }

  private static func refusal(_ reason: String) -> EngineError {
    .invalid(reason: "the address of a PostgreSQL server \(reason)")
  }
}
