// A node as a server reads it, child by child, to write it as JSON, to hash it and to find out what
// has changed in it. A map of values cannot serve: a Swift dictionary takes two keys that are
// canonically equivalent for one, and the tree does not.

/// A node with everything below it.
package struct TreeData: Sendable, Equatable {
  let node: TreeNode

  /// A node that does not exist.
  package static let nothing = TreeData(node: .nothing)

  /// A boolean, a number or a text; nil for a node with children.
  package var leaf: Value? { node.leaf }
  package var priority: Value? { node.priority }
  package var exists: Bool { node.exists }
  package var childCount: Int { node.children.count }

  /// Calls `body` with each child, in the order of the keys.
  package func forEachChild<Failure: Error>(
    _ body: (_ key: String, _ child: TreeData) throws(Failure) -> Void
  ) throws(Failure) {
    for child in node.children { try body(child.key, TreeData(node: child.node)) }
  }

  /// The children in the order of their priorities, then of their keys.
  ///
  /// - Complexity: O(n) in the children when none has a priority, otherwise O(n log n).
  package var childrenByPriority: [(key: String, data: TreeData)] {
    var children = Array(node.children)
    if children.contains(where: { $0.node.priority != nil }) {
      var placed = children.map { (child: $0, bytes: $0.position(in: .priority).bytes) }
      placed.sort { TreeKey.compare($0.bytes, $1.bytes) < 0 }
      children = placed.map(\.child)
    }
    return children.map { ($0.key, TreeData(node: $0.node)) }
  }
}

extension TreeSnapshot {
  /// The node, to be read child by child.
  package var nodeData: TreeData { TreeData(node: node) }
}

// MARK: - Changes

/// A place below a node that changed, and its new state.
package struct TreeDataChange: Sendable, Equatable {
  package enum Content: Sendable, Equatable {
    /// The node with everything below it, which does not exist when it was removed.
    case data(TreeData)
    /// Only the node's priority; nil when it has none any more.
    case priority(Value?)
  }

  /// The keys below the node.
  package var path: [String]
  package var content: Content
}

extension TreeData {
  /// The places that differ from an earlier state of the same node, in the order of keys. None is
  /// inside another, except that a changed priority does not include what is below.
  ///
  /// They can be applied in any order: a node of which nothing stays is one change as a whole.
  /// Otherwise it could lose its last child, and with that its priority, before it gets another.
  ///
  /// - Complexity: O(c log n) when c changes led from that state to this one and both share the
  ///   rest, otherwise O(nodes).
  package func changes(since earlier: TreeData) -> [TreeDataChange] {
    var changes: [TreeDataChange] = []
    Self.compare(earlier.node, node, at: [], &changes)
    return changes
  }

  /// Returns whether the node exists all the time, in whatever order the changes are applied. The
  /// depth of the recursion is that of the tree, which is limited.
  @discardableResult
  private static func compare(
    _ old: TreeNode, _ new: TreeNode, at path: [String], _ changes: inout [TreeDataChange]
  ) -> Bool {
    let bothHaveChildren =
      old.leaf == nil && new.leaf == nil && !old.children.isEmpty && !new.children.isEmpty
    guard bothHaveChildren else {
      if !isSame(old.leaf, new.leaf) || !isSame(old.priority, new.priority)
        || old.children.isEmpty != new.children.isEmpty
      {
        changes.append(TreeDataChange(path: path, content: .data(TreeData(node: new))))
      }
      return old.exists && new.exists
    }
    let start = changes.count
    if !isSame(old.priority, new.priority) {
      changes.append(TreeDataChange(path: path, content: .priority(new.priority)))
    }
    let (left, right) = old.children.unshared(with: new.children)
    var stays = right.count < new.children.count
    var (ofOld, ofNew) = (left[...], right[...])
    while let next = [ofOld.first, ofNew.first].compactMap(\.self).min(by: isBefore) {
      let before = take(next, from: &ofOld)
      let after = take(next, from: &ofNew)
      if compare(before, after, at: path + [next.key], &changes) { stays = true }
    }
    if !stays {
      changes.removeSubrange(start...)
      changes.append(TreeDataChange(path: path, content: .data(TreeData(node: new))))
    }
    return true
  }

  /// The node of a child if it is the next of a list, which then loses it.
  private static func take(_ child: TreeChild, from list: inout ArraySlice<TreeChild>) -> TreeNode {
    guard let first = list.first, first.component == child.component else { return .nothing }
    list.removeFirst()
    return first.node
  }

  private static func isBefore(_ left: TreeChild, _ right: TreeChild) -> Bool {
    TreeKey.compare(left.component, right.component) < 0
  }

  private static func isSame(_ left: Value?, _ right: Value?) -> Bool {
    guard let left, let right else { return left == nil && right == nil }
    return left.isIdentical(to: right)
  }
}
