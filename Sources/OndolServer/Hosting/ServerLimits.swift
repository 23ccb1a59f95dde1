// What callers may use of a server. The numbers are for apps whose devices talk to it directly:
// an address is often a household or an office, an account is one person.

#if Server
  package import Ondol

  /// Limits on what callers of a server may use. A caller beyond one is refused with
  /// `RESOURCE_EXHAUSTED`, over HTTP with status 429, and may try again later. Administrators have
  /// only the limits on connections and on the size of requests.
  ///
  /// Calls and bytes are counted in token buckets: a bucket holds the allowance of one minute, and
  /// fills in one. An IPv6 address counts with its whole network of 64 bits. nil is no limit.
  public struct ServerLimits: Sendable, Hashable {
    /// Calls a minute from one network address, before their token is checked. Each message of a
    /// client on a stream or a WebSocket is a call. The default is 6,000.
    public var callsOfAddress: Int? = 6_000
    /// Calls a minute of one account. The default is 6,000.
    public var callsOfAccount: Int? = 6_000
    /// Bytes a minute that calls of one address receive and send. The call that crosses the limit
    /// ends, and the next ones wait for it. The default is 1 GiB.
    public var bytesOfAddress: Int? = 1 << 30
    /// Bytes a minute of one account. The default is 1 GiB.
    public var bytesOfAccount: Int? = 1 << 30
    /// Calls a minute from one address that may derive a key from a password or make an account,
    /// successful or not. The default is 60. Wrong passwords have limits of their own:
    /// `Accounts.Options.maximumTries` and `maximumTriesOfOrigin`.
    public var signInsOfAddress: Int? = 60
    /// Open connections of each port. A connection beyond it is closed at once. The default is
    /// 20,000.
    public var connections: Int? = 20_000
    /// Open connections of one address on each port. Behind a proxy all connections are the
    /// proxy's, and this limit does not apply. The default is 1,000.
    public var connectionsOfAddress: Int? = 1_000

    /// The defaults.
    public init() {}

    /// No limits.
    public static let none: ServerLimits = {
      var limits = ServerLimits()
      for (_, limit) in all { limits[keyPath: limit] = nil }
      return limits
    }()

    /// The limits by the names that `ondol serve --limit` has for them.
    private static var all: [(name: String, limit: WritableKeyPath<ServerLimits, Int?>)] {
      [
        ("calls-of-address", \.callsOfAddress), ("calls-of-account", \.callsOfAccount),
        ("bytes-of-address", \.bytesOfAddress), ("bytes-of-account", \.bytesOfAccount),
        ("sign-ins-of-address", \.signInsOfAddress), ("connections", \.connections),
        ("connections-of-address", \.connectionsOfAddress),
      ]
    }

    /// The names of all limits, in the order of this type's properties.
    package static var names: [String] { all.map(\.name) }

    /// Sets a limit by its name.
    ///
    /// - Throws: `.invalidArgument` for another name, and for a number that is not positive.
    package mutating func set(_ name: String, to number: Int?) throws(DatabaseError) {
      guard let limit = Self.all.first(where: { $0.name == name })?.limit else {
        throw DatabaseError(
          .invalidArgument, "there is no limit \(name)",
          suggestion: "the limits are \(Self.names.joined(separator: ", "))")
      }
      guard number.map({ $0 > 0 }) ?? true else {
        throw DatabaseError(.invalidArgument, "the limit \(name) is 1 or more, or off")
      }
      self[keyPath: limit] = number
    }
  }
#endif
