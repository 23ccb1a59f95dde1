// Codes by mail, and the links that they go out in. The library makes and checks the codes; here
// each becomes a link that Firebase's clients understand. The server sends no mail: its program
// gets address, code and link, and delivers them.

#if Server
  import Foundation
  import Ondol
  public import OndolAccounts

  /// A mail to send to a person; see `Server.Options.sendMail`.
  public struct AccountMail: Sendable, Hashable {
    /// What its code does.
    public let operation: ActionCodeOperation
    /// Where it goes.
    public let address: String
    /// The code.
    public let code: String
    /// A link with the code, which Firebase's clients understand.
    public let link: String
  }

  /// What a request says about the links in its mails.
  struct MailContext: Sendable {
    @TaskLocal static var current: MailContext?

    /// Scheme, host and port of the server, as the client reached it.
    let base: String
    let key: String
    /// Where the person goes afterwards; nil if the request does not say.
    let continueURL: String?

    init(_ request: AccountsFace.Request, _ scheme: String) {
      base = "\(scheme)://\(request.call.headers["host"] ?? "localhost")"
      key = request.call.query["key"] ?? request.project
      let url = try? request.fields.text("continueUrl")
      continueURL = url ?? nil
    }

    /// The link for a code.
    func link(_ operation: ActionCodeOperation, _ code: String) -> String {
      var parameters = [
        ("mode", operation.mode), ("lang", "en"), ("oobCode", code), ("apiKey", key),
      ]
      if let continueURL { parameters.append(("continueUrl", continueURL)) }
      let query = parameters.map { "\($0)=\(Self.encode($1))" }.joined(separator: "&")
      return "\(base)/\(AccountsRoute.linkPath.joined(separator: "/"))?\(query)"
    }

    /// The text as a value in a URL: all but RFC 3986's unreserved characters as numbers.
    static func encode(_ text: String) -> String {
      text.utf8.map { byte in
        unreserved.contains(byte)
          ? String(UnicodeScalar(byte))
          : (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
      }.joined()
    }

    private static let unreserved = Set(
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
  }

  extension ActionCodeOperation {
    /// The purpose as links have it.
    fileprivate var mode: String {
      switch self {
      case .verifyEmail: "verifyEmail"
      case .passwordReset: "resetPassword"
      case .emailSignIn: "signIn"
      case .verifyAndChangeEmail: "verifyAndChangeEmail"
      }
    }

    /// The purpose as requests have it.
    fileprivate var requestType: String {
      switch self {
      case .verifyEmail: "VERIFY_EMAIL"
      case .passwordReset: "PASSWORD_RESET"
      case .emailSignIn: "EMAIL_SIGNIN"
      case .verifyAndChangeEmail: "VERIFY_AND_CHANGE_EMAIL"
      }
    }

    fileprivate static func named(_ type: String) throws(AccountsFailure) -> ActionCodeOperation {
      guard let operation = allCases.first(where: { $0.requestType == type }) else {
        throw AccountsFailure("INVALID_REQ_TYPE")
      }
      return operation
    }
  }

  extension AccountsFace {
    private static let codeKind: Value = "identitytoolkit#GetOobConfirmationCodeResponse"

    /// Sends a code, for the person who asks.
    func sendCode(_ request: Request) async throws(AccountsFailure) -> Value {
      let (fields, accounts) = (request.fields, request.accounts)
      let type = try fields.text("requestType", orMissing: "REQ_TYPE")
      try checkLinkDomain(fields)
      let address: String
      switch try ActionCodeOperation.named(type) {
      case .passwordReset:
        address = try fields.text("email", orMissing: "EMAIL")
        try await reporting { () async throws(AuthError) in
          try await accounts.sendPasswordReset(withEmail: address, origin: request.origin)
        }
      case .emailSignIn:
        address = try fields.text("email", orMissing: "EMAIL")
        try await reporting { () async throws(AuthError) in
          try await accounts.sendSignInCode(toEmail: address, origin: request.origin)
        }
      case .verifyEmail:
        let account = try await request.owner().account
        address = account.email ?? ""
        try await reporting { () async throws(AuthError) in
          try await accounts.sendEmailVerification(to: account.uid)
        }
      case .verifyAndChangeEmail:
        address = try fields.text("newEmail", orMissing: "NEW_EMAIL")
        let account = try await request.recentOwner().account
        try await reporting { () async throws(AuthError) in
          try await accounts.sendEmailVerification(
            to: account.uid, beforeUpdatingEmailTo: address)
        }
      }
      return ["kind": Self.codeKind, "email": .string(address)]
    }

    /// Makes a code and gives the link to the administrator, who delivers it.
    func makeCode(_ request: Request) async throws(AccountsFailure) -> Value {
      let fields = request.fields
      let type = try fields.text("requestType", orMissing: "REQ_TYPE")
      let operation = try ActionCodeOperation.named(type)
      let email = try fields.text("email", orMissing: "EMAIL")
      let newEmail = try fields.text("newEmail")
      try checkLinkDomain(fields)
      guard try fields.flag("returnOobLink") == true else { return try await sendCode(request) }
      let code: String
      do throws(AuthError) {
        code = try await request.accounts.makeActionCode(
          operation, forEmail: email, newEmail: newEmail)
      } catch  where error.code == .userNotFound {
        throw AccountsFailure("EMAIL_NOT_FOUND")
      } catch {
        throw AccountsFailure(error)
      }
      return [
        "kind": Self.codeKind, "email": .string(email), "oobCode": .string(code),
        "oobLink": .string(MailContext(request, admission.scheme).link(operation, code)),
      ]
    }

    /// Links have this server's address. It has no other domains.
    private func checkLinkDomain(_ fields: AccountsFields) throws(AccountsFailure) {
      if fields.has("linkDomain") {
        throw AccountsFailure(
          "INVALID_HOSTING_LINK_DOMAIN : The provided hosting link domain is not configured in"
            + " Firebase Hosting or is not owned by the current project. This cannot be a default"
            + " hosting domain (web.app or firebaseapp.com).")
      }
      if fields.has("dynamicLinkDomain") { throw AccountsFailure("INVALID_DYNAMIC_LINK_DOMAIN") }
    }

    /// Says what a code is for; or resets the password, when the request has a new one.
    func resetPassword(_ request: Request) async throws(AccountsFailure) -> Value {
      let accounts = request.accounts
      let code = try request.fields.text("oobCode", orMissing: "OOB_CODE")
      let newPassword = try request.fields.text("newPassword")
      let kind: Value = "identitytoolkit#ResetPasswordResponse"
      guard let newPassword else {
        let info = try await reporting { () async throws(AuthError) in
          try await accounts.checkActionCode(code, origin: request.origin)
        }
        var answer: [String: Value] = [
          "kind": kind, "requestType": .string(info.operation.requestType),
        ]
        answer["email"] = (info.previousEmail ?? info.email).map(Value.string)
        if info.previousEmail != nil { answer["newEmail"] = info.email.map(Value.string) }
        return .map(answer)
      }
      let email = try await reporting { () async throws(AuthError) in
        let session = try await accounts.confirmPasswordReset(
          withCode: code, newPassword: newPassword, origin: request.origin)
        // The person signs in with the new password.
        try await accounts.signOut(token: session.token)
        return session.account.email ?? ""
      }
      return ["kind": kind, "email": .string(email), "requestType": "PASSWORD_RESET"]
    }

    // MARK: - Links

    /// Follows the link of a mail. A code for signing in goes on to the app, which has the address;
    /// one for a password needs the new one as `newPassword`.
    func follow(_ request: Request) async throws(AccountsFailure) -> HTTPAnswer {
      let query = request.call.query
      guard let code = query["oobCode"] else { throw .missing("OOB_CODE") }
      switch query["mode"] {
      case "verifyEmail", "verifyAndChangeEmail":
        _ = try await reporting { () async throws(AuthError) in
          try await request.accounts.applyActionCode(code, origin: request.origin)
        }
      case "resetPassword":
        guard let password = query["newPassword"] else {
          return .json(["mode": "resetPassword", "needs": "newPassword"])
        }
        try await reporting { () async throws(AuthError) in
          let session = try await request.accounts.confirmPasswordReset(
            withCode: code, newPassword: password, origin: request.origin)
          try await request.accounts.signOut(token: session.token)
        }
      case "signIn":
        guard let url = query["continueUrl"] else { throw .missing("CONTINUE_URL") }
        let rest = ["mode", "lang", "oobCode", "apiKey"].compactMap { name in
          query[name].map { "\(name)=\(MailContext.encode($0))" }
        }
        return try redirect(to: url, rest)
      default: throw AccountsFailure("INVALID_REQ_TYPE")
      }
      guard let url = query["continueUrl"] else { return .json(["done": true]) }
      return try redirect(to: url, [])
    }

    /// Sends a browser on, to a page of http or https.
    private func redirect(
      to text: String, _ parameters: [String]
    ) throws(AccountsFailure) -> HTTPAnswer {
      guard var url = URLComponents(string: text),
        ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false
      else { throw AccountsFailure("INVALID_CONTINUE_URI") }
      if !parameters.isEmpty {
        let present = url.percentEncodedQuery.map { [$0] } ?? []
        url.percentEncodedQuery = (present + parameters).joined(separator: "&")
      }
      return HTTPAnswer(status: 302, headers: [("location", url.string ?? "")])
    }
  }
#endif
