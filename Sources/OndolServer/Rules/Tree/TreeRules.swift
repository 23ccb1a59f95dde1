// Rules of a tree, in the form of database.rules.json of Firebase's Realtime Database. A .read or
// .write that holds somewhere on the way to a place grants access to that place and everything
// below it. A .validate holds for its own place. Each one must hold wherever the write leaves data:
// on the way to the written place, at it, and below it.

#if Server
  /// A tree that rules read, as of one moment.
  protocol RuleTree {
    /// Returns the content at a path; nil if there is none.
    func content(at path: [String]) throws -> RuleTreeContent?
    /// Returns the priority at a path: a number, a text or null.
    func priority(at path: [String]) throws -> RuleValue
    /// Returns the names of the children at a path.
    func childNames(at path: [String]) throws -> [String]
  }

  /// The content of a place in a tree.
  enum RuleTreeContent: Sendable {
    /// A text, a number or a truth value.
    case leaf(RuleValue)
    /// Children.
    case branch
  }

  /// A tree without content.
  struct NoRuleTree: RuleTree {
    func content(at path: [String]) throws -> RuleTreeContent? { nil }
    func priority(at path: [String]) throws -> RuleValue { .null }
    func childNames(at path: [String]) throws -> [String] { [] }
  }

  /// A parsed and checked rules file of a tree.
  struct TreeRules: Sendable {
    /// Firebase's limit for a place's depth. Access below it is denied.
    static let mostDepth = 32

    let source: RuleSource
    private let root: TreeRuleNode

    /// Reads a file.
    ///
    /// Throws the first mistake in it.
    init(parsing text: String) throws(RuleError) {
      var reader = try TreeRuleReader(text)
      root = try reader.rules()
      source = reader.source
    }

    /// The children that can order a place's queries, from `.indexOn`.
    func indexes(at path: [String]) -> [String] {
      var node = root
      for name in path {
        guard let child = node.child(name) else { return [] }
        node = child.node
      }
      return node.indexes
    }

    /// Decides a read.
    ///
    /// - Parameters:
    ///   - query: `query`, as a map of `orderByChild`, `limitToFirst` and so on.
    ///   - explain: whether the verdict lists the values from the evaluation.
    func read(
      at path: [String], of tree: some RuleTree, auth: RuleValue, now: RuleTimestamp,
      query: RuleValue = .null, explain: Bool = false
    ) -> RuleVerdict {
      let recorder = explain ? RuleRecorder(source: source) : nil
      var walk = TreeRuleWalk(
        source: source,
        evaluation: TreeRuleEvaluation(
          before: tree, after: nil, auth: auth, now: now, query: query, recorder: recorder))
      guard path.count <= Self.mostDepth else { return walk.verdict(isAllowed: false) }
      let isAllowed = walk.grants(\.read, from: root, to: path)
      return walk.verdict(isAllowed: isAllowed)
    }

    /// Decides a write of one place. The write may leave nothing there.
    ///
    /// - Parameters:
    ///   - before: the tree without the write.
    ///   - after: the tree with the write. An update of several places writes all of them, and is
    ///     decided for each.
    func write(
      at path: [String], before: some RuleTree, after: some RuleTree, auth: RuleValue,
      now: RuleTimestamp, explain: Bool = false
    ) -> RuleVerdict {
      let recorder = explain ? RuleRecorder(source: source) : nil
      var walk = TreeRuleWalk(
        source: source,
        evaluation: TreeRuleEvaluation(
          before: before, after: after, auth: auth, now: now, query: .null, recorder: recorder))
      guard path.count <= Self.mostDepth, walk.grants(\.write, from: root, to: path) else {
        return walk.verdict(isAllowed: false)
      }
      let isValid = walk.validates(from: root, to: path)
      return walk.verdict(isAllowed: isValid)
    }
  }

  /// The walk from the root of the rules to a place, and below it.
  struct TreeRuleWalk {
    let source: RuleSource
    var evaluation: TreeRuleEvaluation
    private var considered: [RuleVerdict.Considered] = []
    private var decision: Int?

    init(source: RuleSource, evaluation: TreeRuleEvaluation) {
      self.source = source
      self.evaluation = evaluation
    }

    func verdict(isAllowed: Bool) -> RuleVerdict {
      RuleVerdict(
        isAllowed: isAllowed, considered: considered, decision: decision,
        steps: evaluation.recorder?.steps ?? [])
    }

    /// Whether a rule on the way to the path holds.
    mutating func grants(
      _ kind: KeyPath<TreeRuleNode, TreeRule?>, from root: TreeRuleNode, to path: [String]
    ) -> Bool {
      evaluation.captures.removeAll()
      var node = root
      var depth = 0
      while true {
        if let rule = node[keyPath: kind], asks(rule, at: Array(path.prefix(depth))) {
          decision = considered.count - 1
          return true
        }
        guard depth < path.count, let child = node.child(path[depth]) else { return false }
        if child.slot != nil { evaluation.captures.append(path[depth]) }
        node = child.node
        depth += 1
      }
    }

    /// Whether each `.validate` holds where the write leaves data.
    mutating func validates(from root: TreeRuleNode, to path: [String]) -> Bool {
      evaluation.captures.removeAll()
      do throws(RuleFailure) {
        var node = root
        for depth in 0..<path.count {
          guard node.hasValidation else { return true }
          guard try isValid(node, at: Array(path.prefix(depth))) else { return false }
          guard let child = node.child(path[depth]) else { return true }
          if child.slot != nil { evaluation.captures.append(path[depth]) }
          node = child.node
        }
        return try isValidBelow(node, at: path)
      } catch {
        return false
      }
    }

    private mutating func isValid(
      _ node: TreeRuleNode, at path: [String]
    ) throws(RuleFailure) -> Bool {
      guard let rule = node.validate, try evaluation.hasContent(at: path) else { return true }
      if asks(rule, at: path) { return true }
      decision = considered.count - 1
      return false
    }

    /// Its depth is that of the rules, which is limited.
    private mutating func isValidBelow(
      _ node: TreeRuleNode, at path: [String]
    ) throws(RuleFailure) -> Bool {
      guard node.hasValidation, try evaluation.hasContent(at: path) else { return true }
      guard try isValid(node, at: path) else { return false }
      for name in node.children.keys.sorted() {
        guard let child = node.child(name), child.node.hasValidation else { continue }
        guard try isValidBelow(child.node, at: path + [name]) else { return false }
      }
      guard let wildcard = node.wildcard, wildcard.node.hasValidation else { return true }
      for name in try evaluation.childNames(at: path) where node.child(name)?.slot != nil {
        evaluation.captures.append(name)
        defer { evaluation.captures.removeLast() }
        guard try isValidBelow(wildcard.node, at: path + [name]) else { return false }
      }
      return true
    }

    private mutating func asks(_ rule: TreeRule, at path: [String]) -> Bool {
      var outcome = RuleVerdict.Considered.Outcome.didNotHold
      do throws(RuleFailure) {
        if try evaluation.holds(rule.condition, at: path) { outcome = .held }
      } catch {
        outcome = .failed(error)
      }
      considered.append(RuleVerdict.Considered(span: rule.span, source: source, outcome: outcome))
      return outcome == .held
    }
  }
#endif
