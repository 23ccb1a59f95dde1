// Firebase's protocol for accounts: start reading here. A call is read, its project found, its
// caller admitted, and then one of the files beside this one does it with OndolAccounts. The
// accounts are the app's own: who signs up in Swift signs in by Firebase's client, and the reverse.
//
// An ID token is a claim about a session, and a refresh token is the session's token. Of the two
// ways to ask, clients prove who they are with an ID token in the body, and administrators with a
// header.

#if Server
  import Foundation
  import Ondol
  import OndolAccounts
  import OndolMapping

  /// Answers Firebase's clients for accounts.
  struct AccountsFace: HTTPFace {
    let directory: any DatabaseDirectory
    let admission: Admission
    /// The project of requests that name none; nil takes the API key for its name.
    let project: String?

    /// A request, with all that its call needs.
    struct Request: Sendable {
      let call: HTTPCall
      let fields: AccountsFields
      let project: String
      let identity: Identity
      let accounts: Accounts

      /// The client, for the library's limits. All clients on this machine share its address, so it
      /// names none.
      var origin: String? { call.address.flatMap { $0.isLoopback ? nil : "\($0)" } }
    }

    func name(of call: HTTPCall) -> String {
      if call.method == "OPTIONS" { return "preflight" }
      return AccountsRoute(call)?.name ?? "unknown"
    }

    func answer(_ call: HTTPCall) async -> HTTPAnswer {
      var answer: HTTPAnswer
      if call.method == "OPTIONS" {
        answer = .preflight(call, "GET, POST, OPTIONS")
      } else {
        do throws(AccountsFailure) {
          answer = try await serve(call)
        } catch {
          answer = error.answer
        }
      }
      // A page of any origin may ask. Whether it may have an answer, its proof says.
      answer.headers.append(("access-control-allow-origin", "*"))
      answer.headers.append(("cache-control", "no-store"))
      return answer
    }

    func refusal(_ limit: LimitReached) -> HTTPAnswer {
      var answer = AccountsFailure(limit.error).answer
      answer.headers.append(("access-control-allow-origin", "*"))
      answer.headers.append(("retry-after", "\(limit.seconds)"))
      return answer
    }

    private func serve(_ call: HTTPCall) async throws(AccountsFailure) -> HTTPAnswer {
      guard let route = AccountsRoute(call) else { throw .notFound }
      switch route {
      case .administrator(let name, let project):
        guard try isAdministrator(call) else { throw .notAdministrator }
        OpenCall.current?.note(OpenCall.Caller(.admin, in: project))
        let request = try await request(call, of: project)
        return try await answering(request) { () async throws(AccountsFailure) in
          let answer = try await administrate(name, request)
          note(name, request.fields, answer)
          return answer
        }
      case .client(let name):
        let project = try projectName(of: call)
        if name.mayDeriveKeys { try admitSignIn(call) }
        let request = try await request(call, of: project)
        return try await answering(request) { () async throws(AccountsFailure) in
          try await auditing(name, project) { () async throws(AccountsFailure) in
            try await answer(name, request)
          }
        }
      case .token:
        return .json(try await refresh(try await request(call, of: try projectName(of: call))))
      case .keys: return .json(try await keys(of: try projectName(of: call)))
      case .link: return try await follow(try await request(call, of: try projectName(of: call)))
      }
    }

    /// Runs a call, whose mails may need to know of its request.
    private func answering(
      _ request: Request, _ body: () async throws(AccountsFailure) -> Value
    ) async throws(AccountsFailure) -> HTTPAnswer {
      let result = await MailContext.$current.withValue(MailContext(request, admission.scheme)) {
        () async -> Result<Value, AccountsFailure> in
        do throws(AccountsFailure) {
          return .success(try await body())
        } catch {
          return .failure(error)
        }
      }
      return .json(try result.get())
    }

    private func answer(
      _ name: AccountsRoute.Client, _ request: Request
    ) async throws(AccountsFailure) -> Value {
      switch name {
      case .signUp: try await signUp(request)
      case .signInWithPassword: try await signInWithPassword(request)
      case .signInWithCustomToken: try await signInWithCustomToken(request)
      case .signInWithEmailLink: try await signInWithEmailLink(request)
      case .lookup: try await lookup(request)
      case .update: try await update(request)
      case .delete: try await delete(request)
      case .sendOobCode: try await sendCode(request)
      case .resetPassword: try await resetPassword(request)
      case .createAuthUri: try createAuthUri(request)
      }
    }

    private func administrate(
      _ name: AccountsRoute.Administrator, _ request: Request
    ) async throws(AccountsFailure) -> Value {
      switch name {
      case .create: try await create(request)
      case .lookup: try await find(request)
      case .query: try await query(request)
      case .batchGet: try await list(request)
      case .batchCreate: try await importAccounts(request)
      case .batchDelete: try await deleteAccounts(request)
      case .update: try await change(request)
      case .delete: try await deleteAccount(request)
      case .sendOobCode: try await makeCode(request)
      case .createSessionCookie: try await createSessionCookie(request)
      }
    }

    // MARK: - Steps

    private func isAdministrator(_ call: HTTPCall) throws(AccountsFailure) -> Bool {
      do throws(DatabaseError) {
        return try admission.isAdministrator(call)
      } catch {
        admission.audit.note(.refusedToken, reason: error.message)
        throw AccountsFailure(error)
      }
    }

    /// Counts a call that may derive a key from a password or make an account.
    private func admitSignIn(_ call: HTTPCall) throws(AccountsFailure) {
      do throws(LimitReached) {
        try admission.limiter.admit(signInFrom: call.address)
      } catch {
        admission.note(error, of: OpenCall.current)
        throw AccountsFailure(error.error)
      }
    }

    /// The project of a call that does not name one in its path.
    private func projectName(of call: HTTPCall) throws(AccountsFailure) -> String {
      if let project { return project }
      guard let key = call.query["key"] ?? call.query["apiKey"], !key.isEmpty else {
        throw .missingKey
      }
      return key
    }

    private func served(_ project: String) async throws(AccountsFailure) -> ServedDatabase {
      do throws(DatabaseError) {
        return try await directory.database(project: project, id: DatabaseName.usual)
      } catch {
        throw AccountsFailure(error)
      }
    }

    private func request(
      _ call: HTTPCall, of project: String
    ) async throws(AccountsFailure) -> Request {
      let fields = try AccountsFields(of: call, takesForm: AccountsRoute(call) == .token)
      let served = try await served(project)
      let accounts = try await reporting { () async throws(AuthError) in
        try await admission.accounts(of: served)
      }
      return Request(
        call: call, fields: fields, project: project, identity: served.identity,
        accounts: accounts)
    }

    /// The keys that sign tokens, as RFC 7517's set.
    private func keys(of project: String) async throws(AccountsFailure) -> Value {
      let identity = try await served(project).identity
      do throws(DatabaseError) {
        return ["keys": .array(try await identity.keys.published().map(\.webKey))]
      } catch {
        throw AccountsFailure(error)
      }
    }
  }
#endif
