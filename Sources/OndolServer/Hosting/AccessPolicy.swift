// Which callers a server lets in, and as whom. A call comes with nothing, with an administrator's
// token, or with a person's. A caller whose token cannot be checked is
// refused, and never becomes nobody.

#if Server
  import GRPCCore
  import Ondol
  import OndolMapping

  /// Decides what calls may do.
  struct AccessPolicy: Sendable {
    /// Finds out who calls, by the header `authorization`.
    typealias Identify =
      @Sendable (_ header: String, _ project: String) async throws(DatabaseError) -> Principal

    /// Whether callers without credentials are administrators, whatever the rules say.
    var isOpen = false
    /// Whether only this machine's programs reach the server. Then everybody is an administrator
    /// until rules are deployed.
    var isLocal = true
    /// Whether lists need a proof, as in Firestore.
    var isStrict = false
    /// Where denials and administrators' changes are recorded.
    var audit = AuditTrail(nil)
    var identify: Identify

    /// Everybody is an administrator.
    static var open: AccessPolicy {
      var policy = AccessPolicy { (_, _) throws(DatabaseError) in .admin }
      policy.isOpen = true
      return policy
    }

    init(identify: @escaping Identify) {
      self.identify = identify
    }

    /// What the present call may do, and as whom.
    func access(
      to served: ServedDatabase, _ name: DatabaseName
    ) async throws(DatabaseError) -> (CallAccess, Principal) {
      let headers = CallCredentials.current
      guard headers.count < 2 else {
        throw DatabaseError(.unauthenticated, "the call has several authorizations")
      }
      var principal: Principal = headers.isEmpty && isOpen ? .admin : .nobody
      if let header = headers.first {
        principal = try await identify(header, name.project)
      } else {
        OpenCall.current?.note(OpenCall.Caller(principal, in: name.project))
      }
      if case .admin = principal { return (.everything, principal) }
      let rules: ServerRules.Current?
      if let loaded = served.rules.loaded {
        rules = loaded
      } else {
        rules = try await served.rules.current()
      }
      if rules == nil, isLocal { return (.everything, principal) }
      return (.ruled(access(for: principal, name, rules)), principal)
    }

    /// What the rules decide about a caller.
    func access(
      for principal: Principal, _ name: DatabaseName, _ rules: ServerRules.Current?
    ) -> RuledAccess {
      RuledAccess(
        rules: rules?.firestore, database: name.id, auth: principal.auth(in: name.id),
        isStrict: isStrict)
    }
  }

  extension VerifiedToken {
    /// Whether it has expired.
    func isOver(at database: Database) -> Bool {
      expirationTime > 0 && expirationTime <= database.wallClock / 1_000_000
    }
  }

  /// The credentials that came with a call.
  enum CallCredentials {
    /// The values of the header `authorization` of the call that the current task answers.
    @TaskLocal static var current: [String] = []
  }

  /// Makes a call's credentials known to its service.
  struct CallCredentialsInterceptor: ServerInterceptor {
    func intercept<Input: Sendable, Output: Sendable>(
      request: StreamingServerRequest<Input>, context: ServerContext,
      next:
        @concurrent @Sendable (StreamingServerRequest<Input>, ServerContext) async throws ->
        StreamingServerResponse<Output>
    ) async throws -> StreamingServerResponse<Output> {
      let credentials = Array(request.metadata[stringValues: "authorization"])
      if credentials.isEmpty { return try await next(request, context) }
      return try await CallCredentials.$current.withValue(credentials) {
        var response = try await next(request, context)
        if case .success(var contents) = response.accepted {
          // The answer is produced after this returns.
          let producer = contents.producer
          contents.producer = { writer in
            try await CallCredentials.$current.withValue(credentials) {
              try await producer(writer)
            }
          }
          response.accepted = .success(contents)
        }
        return response
      }
    }
  }
#endif
