// Administrators' lookups and lists of accounts.

#if Server
  import Ondol
  import OndolAccounts

  extension AccountsFace {
    private static let mostFound = 100
    private static let mostListed = 1_000
    private static let mostQueried = 500
    /// The accounts that a query may skip. Beyond them, pages are the way.
    private static let mostSkipped = 100_000

    /// Finds accounts by uids, addresses, phone numbers and identities.
    func find(_ request: Request) async throws(AccountsFailure) -> Value {
      let fields = request.fields
      var identifiers = try fields.texts("localId").map(AccountIdentifier.uid)
      identifiers += try fields.texts("email").map(AccountIdentifier.email)
      identifiers += try fields.texts("phoneNumber").map(AccountIdentifier.phoneNumber)
      for identity in try fields.objects("federatedUserId") {
        identifiers.append(
          .identity(
            provider: try identity.text("providerId", orMissing: "PROVIDER_ID"),
            uid: try identity.text("rawId", orMissing: "RAW_ID")))
      }
      guard identifiers.count <= Self.mostFound else {
        throw AccountsFailure("INVALID_ARGUMENT : a call finds \(Self.mostFound) accounts at most")
      }
      let found = try await find(identifiers, request)
      var answer: [String: Value] = ["kind": "identitytoolkit#GetAccountInfoResponse"]
      if !found.isEmpty { answer["users"] = .array(found.map(\.user)) }
      return .map(answer)
    }

    private func find(
      _ identifiers: [AccountIdentifier], _ request: Request
    ) async throws(AccountsFailure) -> [Account] {
      var found: [Account] = []
      var seen: Set<String> = []
      for identifier in identifiers {
        guard let account = try await find(identifier, request) else { continue }
        if seen.insert(account.uid).inserted { found.append(account) }
      }
      return found
    }

    /// Lists accounts in pages.
    func list(_ request: Request) async throws(AccountsFailure) -> Value {
      let query = request.call.query
      let limit = query["maxResults"].map { Int($0) ?? 0 } ?? 20
      let token = query["nextPageToken"].flatMap { $0.isEmpty ? nil : $0 }
      guard (1...Self.mostListed).contains(limit) else { throw .wrongType("maxResults") }
      let page = try await reporting { () async throws(AuthError) in
        try await request.accounts.listAccounts(limit: limit, pageToken: token)
      }
      var answer: [String: Value] = [
        "kind": "identitytoolkit#DownloadAccountResponse",
        "users": .array(page.accounts.map(\.user)),
      ]
      answer["nextPageToken"] = page.nextPageToken.map(Value.string)
      return .map(answer)
    }

    /// Counts accounts, or shows some of them in the order of their uids.
    func query(_ request: Request) async throws(AccountsFailure) -> Value {
      let fields = request.fields
      let expressions = try fields.objects("expression")
      guard try fields.flag("returnUserInfo") ?? true else {
        let count = try await reporting { () async throws(AuthError) in
          try await request.accounts.countAccounts()
        }
        return ["recordsCount": .string("\(count)")]
      }
      let shown: [Account]
      if expressions.isEmpty {
        let limit = try fields.integer("limit") ?? Self.mostQueried
        let offset = try fields.integer("offset") ?? 0
        guard (1...Self.mostQueried).contains(limit), (0...Self.mostSkipped).contains(offset)
        else { throw .wrongType("limit") }
        shown = try await accounts(from: offset, limit, request)
      } else {
        guard expressions.count <= Self.mostFound else { throw .wrongType("expression") }
        var identifiers: [AccountIdentifier] = []
        for expression in expressions {
          if let uid = try expression.text("userId") { identifiers.append(.uid(uid)) }
          if let email = try expression.text("email") { identifiers.append(.email(email)) }
          if let number = try expression.text("phoneNumber") {
            identifiers.append(.phoneNumber(number))
          }
        }
        shown = try await find(identifiers, request)
      }
      return [
        "recordsCount": .string("\(shown.count)"), "userInfo": .array(shown.map(\.user)),
      ]
    }

    /// Accounts in the order of their uids, after the first `offset`.
    private func accounts(
      from offset: Int, _ limit: Int, _ request: Request
    ) async throws(AccountsFailure) -> [Account] {
      var (skipped, found, token) = (0, [Account](), String?.none)
      repeat {
        let next = token
        let page = try await reporting { () async throws(AuthError) in
          try await request.accounts.listAccounts(limit: Self.mostListed, pageToken: next)
        }
        let here = page.accounts.dropFirst(max(0, offset - skipped))
        skipped += page.accounts.count - here.count
        found += here.prefix(limit - found.count)
        token = page.nextPageToken
      } while token != nil && found.count < limit
      return found
    }
  }
#endif
