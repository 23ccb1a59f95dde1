// A node of the tree as a value: the content of a snapshot, read in one pass over the rows of its
// range. Children are in the order of their keys.

internal import OndolEngine

/// A node, with everything below it.
struct TreeNode: Sendable, Hashable {
  /// A boolean, a number or a text; nil for a node with children.
  var leaf: Value?
  var priority: Value?
  /// The number of elements when it was written as an array.
  var arrayLength: Int?
  var children = KeyedTree<TreeChild>()

  /// Whether the node exists.
  var exists: Bool { leaf != nil || !children.isEmpty }

  static let nothing = TreeNode()

  /// Equal texts have equal UTF-8, and 1 does not equal 1.0.
  static func == (left: TreeNode, right: TreeNode) -> Bool {
    isSame(left.leaf, right.leaf) && isSame(left.priority, right.priority)
      && left.arrayLength == right.arrayLength && left.children == right.children
  }

  private static func isSame(_ left: Value?, _ right: Value?) -> Bool {
    guard let left, let right else { return left == nil && right == nil }
    return left.isIdentical(to: right)
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(leaf)
    hasher.combine(children)
  }

  /// The child with a key; nil when there is none.
  ///
  /// - Complexity: O(log n) in the children.
  func child(_ component: [UInt8]) -> TreeNode? {
    children.find(component).entry?.node
  }

  /// Takes the contents of the node's own row.
  mutating func take(_ row: TreeRow?) {
    leaf = row?.leaf?.value()
    priority = row?.priority
    arrayLength = row?.arrayLength
  }

  /// The node at the end of these components.
  func descendant(_ way: [UInt8]) -> TreeNode? {
    var node = self
    var offset = 0
    while offset < way.count {
      guard let end = TreeKey.end(of: way.bytes, from: offset),
        let next = node.child(Array(way[offset..<end]))
      else { return nil }
      node = next
      offset = end
    }
    return node
  }
}

/// A child in a node.
struct TreeChild: Sendable, Hashable, KeyedEntry {
  var key: String
  var component: [UInt8]
  var node: TreeNode

  static func == (left: TreeChild, right: TreeChild) -> Bool {
    left.component == right.component && left.node == right.node
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(component)
    hasher.combine(node)
  }

  /// Siblings are kept in the order of their keys.
  var orderedBy: [UInt8] { component }

  /// Its position among its siblings.
  func position(in order: TreeOrder) -> TreePosition {
    switch order {
    case .key: TreePosition(order: [], component: component)
    case .priority: TreePosition(order: TreeOrder.bytes(node.priority), component: component)
    case .value: TreePosition(order: node.orderBytes, component: component)
    case .child(let way):
      TreePosition(
        order: node.descendant(way)?.orderBytes ?? TreeOrder.bytes(nil), component: component)
    }
  }
}

extension TreeChild {
  /// The child whose key is in a component of a row's key.
  init(_ component: [UInt8], _ node: TreeNode) throws(DatabaseError) {
    do throws(MalformedBytes) {
      self.init(key: try TreeKey.key(component.bytes), component: component, node: node)
    } catch {
      throw DatabaseError(tree: error)
    }
  }
}

extension TreeNode {
  /// The bytes that order others by this child's value.
  var orderBytes: [UInt8] { TreeOrder.bytes(leaf, isObject: !children.isEmpty) }
}

// MARK: - As values

extension TreeNode {
  /// The node as JSON: a leaf's value, a map of the children, or the array it was written as; null
  /// when the node does not exist.
  var value: Value {
    if let leaf { return leaf }
    if children.isEmpty { return .null }
    if let count = elementCount {
      var elements = [Value](repeating: .null, count: count)
      for child in children {
        if let index = TreeKey.integer(child.key) { elements[Int(index)] = child.node.value }
      }
      return .array(elements)
    }
    return .map(
      Dictionary(children.lazy.map { ($0.key, $0.node.value) }) { _, last in last })
  }

  /// Like `value`, with priorities, in the form that a write accepts.
  var exportedValue: Value {
    guard let priority else {
      guard leaf == nil, !children.isEmpty else { return value }
      return .map(exportedChildren)
    }
    var fields: [String: Value] = exportedChildren
    if let leaf { fields[".value"] = leaf }
    fields[".priority"] = priority
    return .map(fields)
  }

  private var exportedChildren: [String: Value] {
    Dictionary(children.lazy.map { ($0.key, $0.node.exportedValue) }) { _, last in last }
  }

  /// The number of its elements as an array; nil when it is not an array. It is one when it was
  /// written as an array and every child is one of its elements, or one that follows without a gap.
  private var elementCount: Int? {
    guard var count = arrayLength else { return nil }
    for child in children {
      guard let index = TreeKey.integer(child.key), index >= 0, child.key == String(index) else {
        return nil
      }
      if index == count { count += 1 }
      guard index < count else { return nil }
    }
    return count
  }
}

// MARK: - From rows

/// Assembles nodes from their rows, in the order of their keys.
struct TreeNodeBuilder {
  /// The nodes from the top down to that of the last row.
  private var frames: [Frame] = [Frame(key: "", component: [])]
  /// The last row's key after that of the top, and where its components end.
  private var suffix: [UInt8] = []
  private var ends: [Int] = []

  private struct Frame {
    var key: String
    var component: [UInt8]
    var node = TreeNode()
    var children: [TreeChild] = []

    /// The node with its children.
    var whole: TreeNode {
      var whole = node
      whole.children = KeyedTree(sorted: children)
      // A row without a leaf and without nodes below: the node does not exist.
      return whole.exists ? whole : .nothing
    }
  }

  /// Adds a row, whose key after that of the top is `newSuffix`. If it is not a node's row but one
  /// that orders a node's children, returns the length of that node's key after the top.
  mutating func add(
    _ newSuffix: RawSpan, _ value: RawSpan
  ) throws(MalformedBytes) -> Int? {
    let common = commonLength(with: newSuffix)
    while let end = ends.last, end > common { closeFrame() }
    var offset = ends.last ?? 0
    while offset < newSuffix.byteCount {
      if newSuffix.byte(at: offset) < TreeKey.Tag.integer { return offset }
      guard let end = TreeKey.end(of: newSuffix, from: offset) else {
        throw MalformedBytes(at: offset, "a key of the tree has an unknown form")
      }
      guard ends.count <= TreePath.maximumDepth else {
        throw MalformedBytes(at: offset, "a node of the tree is too deep")
      }
      let component = newSuffix.extracting(offset..<end).array
      frames.append(Frame(key: try TreeKey.key(component.bytes), component: component))
      suffix += component
      ends.append(end)
      offset = end
    }
    frames[frames.count - 1].node.take(try TreeRow(value))
    return nil
  }

  /// The node at the top, when all rows have been added.
  mutating func finish() -> TreeNode {
    while !ends.isEmpty { closeFrame() }
    let node = frames[0].whole
    frames = [Frame(key: "", component: [])]
    return node
  }

  private mutating func closeFrame() {
    let frame = frames.removeLast()
    ends.removeLast()
    suffix.removeSubrange((ends.last ?? 0)...)
    let node = frame.whole
    guard node.exists else { return }
    frames[frames.count - 1].children.append(
      TreeChild(key: frame.key, component: frame.component, node: node))
  }

  private func commonLength(with other: RawSpan) -> Int {
    let limit = min(suffix.count, other.byteCount)
    var length = 0
    while length < limit, suffix[length] == other.byte(at: length) { length += 1 }
    return length
  }
}
