// Checked rules of a tree: what a place of database.rules.json says, and the expressions in it.

#if Server
  /// A place of the rules.
  struct TreeRuleNode: Sendable {
    var read: TreeRule?
    var write: TreeRule?
    var validate: TreeRule?
    /// The children that queries of this place are indexed by.
    var indexes: [String] = []
    var children: [String: TreeRuleNode] = [:]
    /// The rules of children without rules of their own. The child's name is in the slot.
    var wildcard: TreeRuleWildcard?
    /// Whether a `.validate` is here or below.
    var hasValidation = false

    /// The rules of a child, and the slot that its name goes to.
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

  /// An expression, ready to be evaluated.
  final class TreeRuleExpression: Sendable {
    enum Form: Sendable {
      case constant(RuleValue)
      case variable(TreeRuleVariable)
      /// The name of a child that `$name` is for.
      case capture(Int)
      case member(TreeRuleExpression, String)
      case index(TreeRuleExpression, TreeRuleExpression)
      case call(TreeRuleMethod, TreeRuleExpression, [TreeRuleExpression])
      case hasChildren(TreeRuleExpression, [TreeRuleExpression])
      case matches(TreeRuleExpression, RulePattern)
      case not(TreeRuleExpression)
      case negated(TreeRuleExpression)
      case binary(RuleOperator, TreeRuleExpression, TreeRuleExpression)
      case all([TreeRuleExpression])
      case any([TreeRuleExpression])
      case choice(TreeRuleExpression, TreeRuleExpression, TreeRuleExpression)
    }

    let form: Form
    let span: RuleSpan
    /// Expressions within each other, from here down.
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
