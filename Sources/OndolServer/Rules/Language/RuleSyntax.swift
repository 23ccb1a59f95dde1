// A rules file in the form of its text, before names are resolved. The parser makes it, and the
// checker turns it into nodes for evaluation. Nothing else uses it.

#if Server
  /// An expression in the form of its text.
  struct RuleSyntax: Sendable {
    indirect enum Form: Sendable {
      case literal(RuleValue)
      case name(String)
      case member(RuleSyntax, String)
      /// A call of a function by its name.
      case call(String, [RuleSyntax])
      case method(RuleSyntax, String, [RuleSyntax])
      case index(RuleSyntax, RuleSyntax)
      case range(RuleSyntax, from: RuleSyntax, to: RuleSyntax)
      case not(RuleSyntax)
      case negated(RuleSyntax)
      case binary(RuleOperator, RuleSyntax, RuleSyntax)
      case all([RuleSyntax])
      case any([RuleSyntax])
      case choice(RuleSyntax, RuleSyntax, RuleSyntax)
      case isType(RuleSyntax, RuleType)
      case list([RuleSyntax])
      case map([(key: RuleSyntax, value: RuleSyntax)])
      case path([RulePathPart<RuleSyntax>])
    }

    let form: Form
    let span: RuleSpan
    /// The nesting of expressions from here down.
    let height: Int
  }

  /// A path segment in an expression.
  enum RulePathPart<Expression: Sendable>: Sendable {
    case segment(String)
    /// `$(expression)`: a text is one segment, and a path is all of its segments.
    case value(Expression)
  }

  enum RuleOperator: Sendable {
    case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, contained
    case add, subtract, multiply, divide, remainder
  }

  /// A function in the form of its text.
  struct RuleFunctionSyntax: Sendable {
    let name: String
    let parameters: [String]
    let lets: [(name: String, value: RuleSyntax)]
    let result: RuleSyntax
    let span: RuleSpan
  }

  /// A `match` block, or a service as the outermost one.
  struct RuleBlockSyntax: Sendable {
    var segments: [RuleMatchSegment] = []
    var functions: [RuleFunctionSyntax] = []
    var allows: [RuleAllowSyntax] = []
    var blocks: [RuleBlockSyntax] = []
  }

  /// A path segment of a `match`.
  enum RuleMatchSegment: Sendable {
    case literal(String)
    /// `{name}`: one segment.
    case single(String)
    /// `{name=**}`: the rest, or the part in between.
    case rest(String)
  }

  struct RuleAllowSyntax: Sendable {
    let methods: RuleMethods
    /// Nil means always.
    let condition: RuleSyntax?
    let span: RuleSpan
  }

  /// The methods of requests, which an `allow` permits.
  struct RuleMethods: OptionSet, Sendable, Hashable {
    let rawValue: UInt8

    static let get = RuleMethods(rawValue: 1)
    static let list = RuleMethods(rawValue: 2)
    static let create = RuleMethods(rawValue: 4)
    static let update = RuleMethods(rawValue: 8)
    static let delete = RuleMethods(rawValue: 16)
    static let read: RuleMethods = [.get, .list]
    static let write: RuleMethods = [.create, .update, .delete]

    static let byName: [String: RuleMethods] = [
      "get": .get, "list": .list, "read": .read, "create": .create, "update": .update,
      "delete": .delete, "write": .write,
    ]
  }
#endif
