// Who asks, and the rules that decide what they may do. A face is given an authentication, which
// turns a client's credential into a principal, and the rules, which an administrator can replace.

#if Server
  import Ondol
  import Synchronization

  /// The one who asks.
  struct TreePrincipal: Sendable {
    /// An administrator may do everything.
    var isAdministrator = false
    /// What rules see as `auth`; null for nobody.
    var auth = RuleValue.null
    /// When the credential ends, in microseconds since 1970; nil for never.
    var expiry: Int64?

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
    let rules: TreeRuleBook
    /// Whether everybody may read and write as long as there are no rules.
    let isOpenWithoutRules: Bool

    init(
      _ authentication: any TreeAuthentication, rules: TreeRuleBook = TreeRuleBook(),
      isOpenWithoutRules: Bool
    ) {
      self.authentication = authentication
      self.rules = rules
      self.isOpenWithoutRules = isOpenWithoutRules
    }
  }

  /// The rules of a served tree. An administrator's rules hold until the server ends.
  final class TreeRuleBook: Sendable {
    private let state: Mutex<(text: String, rules: TreeRules)?>

    /// No rules.
    init() {
      state = Mutex(nil)
    }

    /// - Throws: the first error in the file.
    init(_ text: String) throws(RuleError) {
      state = Mutex((text, try TreeRules(parsing: text)))
    }

    var rules: TreeRules? { state.withLock { $0?.rules } }

    /// The file as it was given; nil without rules.
    var text: String? { state.withLock { $0?.text } }

    /// Takes rules that are in force for the database.
    func adopt(_ rules: TreeRules, _ text: String) {
      state.withLock { $0 = (text, rules) }
    }

    /// - Throws: the first error in the file. The earlier rules hold then.
    func replace(by text: String) throws(RuleError) {
      let rules = try TreeRules(parsing: text)
      state.withLock { $0 = (text, rules) }
    }
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
