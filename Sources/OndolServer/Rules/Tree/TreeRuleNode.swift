// Checked tree rules: the rules of a place in database.rules.json, and the expressions in them.

#if Server
  import Ondol

  /// A place in the rules.
  struct TreeRuleNode: Sendable {
    var read: TreeRule?
    var write: TreeRule?
    var validate: TreeRule?
    /// The children that index queries of this place.
    var indexes: [String] = []
    var children: [String: TreeRuleNode] = [:]
    /// The rules of children that have no rules of their own. The child's name is in the slot.
    var wildcard: TreeRuleWildcard?
    /// Whether this place or one below it has a `.validate`.
    var hasValidation = false

    /// Returns the rules of a child, and the slot for its name.
    func child(_ name: String) -> (node: TreeRuleNode, slot: Int?)? {
      if let index = children.index(forKey: name), isExactly(children[index].key, name) {
        return (children[index].value, nil)
      }
      return wildcard.map { ($0.node, $0.slot) }
    }
  }

  /// The rules below `$name`.
  final class TreeRuleWildcard: Sendable {
    let name: String
    let slot: Int
    let node: TreeRuleNode

    init(name: String, slot: Int, node: TreeRuleNode) {
      self.name = name
      self.slot = slot
      self.node = node
    }
  }

  /// A `.read`, `.write` or `.validate`.
  struct TreeRule: Sendable {
    let condition: TreeRuleExpression
    let span: RuleSpan
  }

  /// An expression that is ready for evaluation.
  final class TreeRuleExpression: Sendable {
    enum Form: Sendable {
      case constant(RuleValue)
      case variable(TreeRuleVariable)
      /// The name of the child that matches `$name`.
      case capture(Int)
      case member(TreeRuleExpression, String)
      case index(TreeRuleExpression, TreeRuleExpression)
      case call(TreeRuleMethod, TreeRuleExpression, [TreeRuleExpression])
      case hasChildren(TreeRuleExpression, [TreeRuleExpression])
      case matches(TreeRuleExpression, RegularExpression)
      case not(TreeRuleExpression)
      case negated(TreeRuleExpression)
      case binary(RuleOperator, TreeRuleExpression, TreeRuleExpression)
      case all([TreeRuleExpression])
      case any([TreeRuleExpression])
      case choice(TreeRuleExpression, TreeRuleExpression, TreeRuleExpression)
    }

    let form: Form
    let span: RuleSpan
    /// The nesting of expressions from here down.
    let height: Int

    init(_ form: Form, _ span: RuleSpan, height: Int) {
      self.form = form
      self.span = span
      self.height = height
    }
  }

  enum TreeRuleVariable: String, Sendable {
    case auth, data, newData, now, query, root
  }

  enum TreeRuleMethod: String, Sendable {
    case beginsWith, child, contains, endsWith, exists, getPriority, hasChild, hasChildren
    case isBoolean, isNumber, isString, matches, parent, replace, toLowerCase, toUpperCase, val

    var argumentCounts: ClosedRange<Int> {
      switch self {
      case .beginsWith, .child, .contains, .endsWith, .hasChild, .matches: 1...1
      case .hasChildren: 0...1
      case .replace: 2...2
      default: 0...0
      }
    }
  }

  /// The three kinds of rules that are evaluated.
  enum TreeRuleKind: String, Sendable {
    case read = ".read"
    case write = ".write"
    case validate = ".validate"

    /// Whether a rule of this kind has the variable.
    func has(_ variable: TreeRuleVariable) -> Bool {
      switch variable {
      case .newData: self != .read
      case .query: self == .read
      default: true
      }
    }
  }
#endif
