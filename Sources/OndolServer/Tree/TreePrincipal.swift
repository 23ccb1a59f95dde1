// Who asks, and the rules that decide what they may do. A face is given an authentication, which
// turns a client's credential into a principal, and the rules of the database.

#if Server
  import Ondol

  /// The one who asks.
  struct TreePrincipal: Sendable {
    /// An administrator may do everything.
    var isAdministrator = false
    /// What rules see as `auth`; null for nobody.
    var auth = RuleValue.null
    /// When the credential ends, in microseconds since 1970; nil for never.
    var expiry: Int64?
    /// The account, for limits and the audit.
    var account: CallerAccount?

    /// The caller of the server's calls; nil for nobody.
    var caller: OpenCall.Caller? {
      if isAdministrator { return OpenCall.Caller(kind: .admin) }
      return account.map { OpenCall.Caller(kind: .user, account: $0, project: $0.project) }
    }

    static let nobody = TreePrincipal()
    static let administrator = TreePrincipal(isAdministrator: true)

    /// An administrator who acts as somebody else, or as nobody with null, to be judged by rules.
    func acting(as auth: Value) -> TreePrincipal {
      guard isAdministrator else { return self }
      return TreePrincipal(auth: RuleValue(json: auth), expiry: expiry)
    }
  }

  /// Finds out who a credential is for.
  protocol TreeAuthentication: Sendable {
    /// The principal of a credential.
    ///
    /// - Throws: `TreeRefusal` with `.invalidToken` or `.expiredToken`.
    func principal(ofCredential credential: String) async throws -> TreePrincipal
  }

  /// What every client may do.
  struct TreeAccess: Sendable {
    let authentication: any TreeAuthentication
    /// The rules of the database. Their first read precedes the first call.
    let deployments: ServerRules
    /// Whether everybody may read and write as long as there are no rules.
    let isOpenWithoutRules: Bool
    /// Limits, counts and records requests; nil for none of it.
    var gate: CallGate?

    init(
      _ authentication: any TreeAuthentication, _ deployments: ServerRules,
      isOpenWithoutRules: Bool, _ gate: CallGate? = nil
    ) {
      self.authentication = authentication
      self.deployments = deployments
      self.isOpenWithoutRules = isOpenWithoutRules
      self.gate = gate
    }

    /// The rules in force; nil without rules for the tree.
    var rules: TreeRules? { deployments.loaded??.tree }

    /// The deployment's number; nil without one.
    var rulesNumber: Int64? { deployments.loaded??.number }
  }

  extension RuleValue {
    /// JSON as rules have it.
    init(json: Value) {
      switch json {
      case .array(let elements): self = .list(elements.map { RuleValue(json: $0) })
      case .map(let fields): self = .map(fields.mapValues { RuleValue(json: $0) })
      default: self.init(leaf: json)
      }
    }
  }
#endif
