// Which path is which call. Firebase's services for accounts are several hosts; a client that is
// pointed at an emulator sends the host as the first segment of the path. Each call has one name,
// and older clients know some by another.

#if Server
  import Foundation

  /// A call about accounts.
  enum AccountsRoute: Hashable {
    /// Calls of an app's clients.
    enum Client: String, CaseIterable {
      case signUp, signInWithPassword, signInWithCustomToken, signInWithEmailLink
      case lookup, update, delete, sendOobCode, resetPassword, createAuthUri
    }

    /// Calls of administrators.
    enum Administrator: String, CaseIterable {
      case create, lookup, query, batchGet, batchCreate, batchDelete, update, delete, sendOobCode
      case createSessionCookie
    }

    case client(Client)
    case administrator(Administrator, project: String)
    /// Exchanges a refresh token.
    case token
    /// The keys that sign tokens.
    case keys
    /// The link of a mail.
    case link

    /// What versions 3 of the clients call the calls.
    private static let formerNames: [String: Client] = [
      "signupNewUser": .signUp, "verifyPassword": .signInWithPassword,
      "verifyCustomToken": .signInWithCustomToken, "emailLinkSignin": .signInWithEmailLink,
      "getAccountInfo": .lookup, "setAccountInfo": .update, "deleteAccount": .delete,
      "getOobConfirmationCode": .sendOobCode, "resetPassword": .resetPassword,
      "createAuthUri": .createAuthUri,
    ]
    private static let keysAccount = "securetoken@system.gserviceaccount.com"

    /// Nil for a path that is no call.
    init?(_ call: HTTPCall) {
      let path = call.path
      switch (call.method, path.count) {
      case ("POST", 3) where path[0] == "identitytoolkit.googleapis.com" && path[1] == "v1":
        guard path[2].hasPrefix("accounts:"),
          let name = Client(rawValue: String(path[2].dropFirst("accounts:".count)))
        else { return nil }
        self = .client(name)
      case ("POST", 5) where Array(path[..<4]) == Self.formerPath:
        guard let name = Self.formerNames[path[4]] else { return nil }
        self = .client(name)
      case ("POST", 3) where path == ["securetoken.googleapis.com", "v1", "token"]: self = .token
      case ("GET", 2) where path == [".well-known", "jwks.json"],
        ("GET", 3) where path == Self.cookieKeys,
        ("GET", 4) where path == ["service_accounts", "v1", "jwk", Self.keysAccount]:
        self = .keys
      case ("GET", 2) where path == Self.linkPath: self = .link
      case (_, 4...5) where Array(path[..<3]) == Self.projects:
        guard let call = Self.administration(call.method, Array(path[3...])) else { return nil }
        self = call
      default: return nil
      }
    }

    private static let formerPath = ["www.googleapis.com", "identitytoolkit", "v3", "relyingparty"]
    private static let cookieKeys = [
      "identitytoolkit.googleapis.com", "v1", "sessionCookiePublicKeys",
    ]
    private static let projects = ["identitytoolkit.googleapis.com", "v1", "projects"]
    /// The path of the links in mails.
    static let linkPath = ["emulator", "action"]

    /// `P/accounts:lookup`, `P/accounts` or `P:createSessionCookie`.
    private static func administration(_ method: String, _ rest: [String]) -> AccountsRoute? {
      let parts = rest[rest.count - 1].split(
        separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      let (subject, name) = (String(parts[0]), parts.count > 1 ? String(parts[1]) : "create")
      guard let call = Administrator(rawValue: name), call != .create || parts.count == 1,
        method == (call == .batchGet ? "GET" : "POST")
      else { return nil }
      if call == .createSessionCookie {
        return rest.count == 1 ? .administrator(call, project: subject) : nil
      }
      guard rest.count == 2, subject == "accounts" else { return nil }
      return .administrator(call, project: rest[0])
    }

    /// The call's name in the log and in the metrics.
    var name: String {
      switch self {
      case .client(let call): "accounts:\(call.rawValue)"
      case .administrator(let call, _): "projects.accounts:\(call.rawValue)"
      case .token: "token"
      case .keys: "keys"
      case .link: "link"
      }
    }
  }
#endif
