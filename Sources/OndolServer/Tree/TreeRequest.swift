// The messages of a client of the WebSocket protocol, read from JSON. Every message is an object
// `{t, d}`: "c" for the connection itself, "d" for data. Requests have a number, which the answer
// repeats.

#if Server
  import Ondol
  import OndolJSON

  /// A message of a client.
  enum TreeMessage: Sendable {
    case request(number: Int64, TreeRequest)
    /// A request that is wrong: it is answered with an error.
    case wrong(number: Int64, TreeRefusal)
    /// The client asks whether the connection is alive.
    case ping
    /// Nothing to do.
    case other

    /// Reads a message.
    ///
    /// - Throws: when it is no message of the protocol. The connection cannot continue then.
    init(_ bytes: [UInt8]) throws(TreeRefusal) {
      let message: Value
      do throws(JSONError) {
        message = try JSONReader.read(bytes, .plain, numbers: .double)
      } catch {
        throw TreeRefusal(.invalid, "a message is no JSON, at \(error.column): \(error.reason)")
      }
      guard let body = message["d"] else {
        throw TreeRefusal(.invalid, "a message has no \"d\"")
      }
      switch message["t"]?.string {
      case "c": self = body["t"]?.string == "p" ? .ping : .other
      case "d":
        guard let number = body["r"]?.integer else {
          throw TreeRefusal(.invalid, "a request has no number")
        }
        do throws(TreeRefusal) {
          self = .request(
            number: number, try TreeRequest(body["a"]?.string ?? "", body["b"] ?? .null))
        } catch {
          self = .wrong(number: number, error)
        }
      default: throw TreeRefusal(.invalid, "a message is neither of data nor of the connection")
      }
    }
  }

  /// A request of a client.
  enum TreeRequest: Sendable {
    /// Where to listen, and under which of the client's numbers.
    struct Listening: Sendable {
      var place: TreePlace
      var terms: TreeQueryTerms
      /// The query as it came; nil for the default one.
      var query: Value?
      var tag: Int64?
    }

    enum OnDisconnect: Sendable {
      case put(TreeTarget, Value)
      case merge(TreePlace, Value)
      case cancel(TreePlace)
    }

    case listen(Listening, hash: String?)
    case unlisten(Listening)
    case get(TreePlace, TreeQueryTerms)
    case put(TreeTarget, Value, hash: String?)
    case merge(TreePlace, Value, hash: String?)
    case onDisconnect(OnDisconnect)
    /// `acting` is whom an administrator acts as.
    case signIn(credential: String, acting: Value?)
    case signOut
    /// Answered with ok and nothing else: statistics, and proofs of the app's integrity.
    case noted

    init(_ action: String, _ body: Value) throws(TreeRefusal) {
      switch action {
      case "q":
        self = .listen(try Listening(body), hash: body["h"]?.string)
      case "n": self = .unlisten(try Listening(body))
      case "g":
        self = .get(try Self.place(body), try TreeQueryTerms(body["q"]))
      case "p":
        self = .put(try TreeTarget(Self.path(body)), body["d"] ?? .null, hash: body["h"]?.string)
      case "m":
        self = .merge(try Self.place(body), body["d"] ?? .null, hash: body["h"]?.string)
      case "o": self = .onDisconnect(.put(try TreeTarget(Self.path(body)), body["d"] ?? .null))
      case "om": self = .onDisconnect(.merge(try Self.place(body), body["d"] ?? .null))
      case "oc": self = .onDisconnect(.cancel(try Self.place(body)))
      case "auth", "gauth":
        guard let credential = body["cred"]?.string else {
          throw TreeRefusal(.invalidToken, "the credential is missing")
        }
        let isNobody = body["noauth"]?.boolean == true
        self = .signIn(credential: credential, acting: isNobody ? .null : body["authvar"])
      case "unauth": self = .signOut
      case "s", "appcheck", "unappeck": self = .noted
      default: throw TreeRefusal(.invalid, "the server does not know the action \"\(action)\"")
      }
    }

    /// The request's name in the log and in the metrics.
    var name: String {
      switch self {
      case .listen: "listen"
      case .unlisten: "unlisten"
      case .get: "get"
      case .put: "put"
      case .merge: "merge"
      case .onDisconnect: "onDisconnect"
      case .signIn: "auth"
      case .signOut: "unauth"
      case .noted: "stats"
      }
    }

    fileprivate static func path(_ body: Value) throws(TreeRefusal) -> String {
      guard let path = body["p"]?.string else {
        throw TreeRefusal(.invalid, "Invalid path: it is missing")
      }
      return path
    }

    fileprivate static func place(_ body: Value) throws(TreeRefusal) -> TreePlace {
      try TreePlace(path(body))
    }
  }

  extension TreeRequest.Listening {
    init(_ body: Value) throws(TreeRefusal) {
      place = try TreeRequest.place(body)
      terms = try TreeQueryTerms(body["q"])
      query = terms.isDefault ? nil : body["q"]
      tag = body["t"]?.integer
    }
  }
#endif
