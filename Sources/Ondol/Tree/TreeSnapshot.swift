// What was at a place of the tree at one moment. A value that holds all of it: nothing is read any
// more when it is asked.

internal import OndolEngine

/// A node of the tree as it was when it was read, with everything below it.
public struct TreeSnapshot: Sendable {
  /// Where the node is.
  public let reference: TreeReference
  let node: TreeNode
  /// What the children are given in. They are sorted when they are asked for, so that a listener's
  /// snapshot of a large node costs no more than what changed.
  private let order: TreeOrder

  init(reference: TreeReference, node: TreeNode, order: TreeOrder = .priority) {
    self.reference = reference
    self.node = node
    self.order = order
  }

  /// The last key of the path; nil for the root.
  public var key: String? { reference.key }

  /// The node as JSON has it: null when there is nothing, a leaf's value, an array where one was
  /// written, otherwise a map.
  ///
  /// - Complexity: O(nodes), at each call.
  public var value: Value { node.value }

  /// As `value`, but nodes with a priority are maps with `.priority`, and `.value` for leaves:
  /// written again, it gives the same tree.
  ///
  /// - Complexity: O(nodes), at each call.
  public var exportedValue: Value { node.exportedValue }

  /// The node's priority, a number or a text; nil for none.
  public var priority: Value? { node.priority }

  /// Whether there is something.
  public var exists: Bool { node.exists }

  /// Whether the node has children.
  public var hasChildren: Bool { !node.children.isEmpty }

  /// How many children there are.
  public var childrenCount: Int { node.children.count }

  /// Whether there is something at `path` below the node.
  ///
  /// - Parameter path: keys with `/` between.
  /// - Complexity: as `childSnapshot(forPath:)`.
  public func hasChild(_ path: String) -> Bool { childSnapshot(forPath: path).exists }

  /// The children, in the order of the query they were read with.
  ///
  /// - Complexity: O(n) in the order of keys, otherwise O(n log n), at each call.
  public var children: [TreeSnapshot] {
    let isByKey =
      order == .key
      || order == .priority
        && node.children.allSatisfy { $0.node.priority == nil }
    if isByKey { return node.children.map { snapshot(of: $0) } }
    var placed = node.children.map { (child: $0, bytes: $0.position(in: order).bytes) }
    placed.sort { TreeKey.compare($0.bytes, $1.bytes) < 0 }
    return placed.map { snapshot(of: $0.child) }
  }

  private func snapshot(of child: TreeChild) -> TreeSnapshot {
    TreeSnapshot(reference: reference.child(child), node: child.node)
  }

  /// What was at `path` below the node: keys with `/` between. One that does not `exist` when there
  /// was nothing, or the path is wrong.
  ///
  /// - Parameter path: keys with `/` between.
  /// - Complexity: O(log n) in the children of each node on the way.
  public func childSnapshot(forPath path: String) -> TreeSnapshot {
    let way = try? TreePath.root.appending(path: path)
    let found = way.flatMap { node.descendant(Array($0.rowKey.dropFirst(TreeKey.root.count))) }
    return TreeSnapshot(reference: reference.child(path), node: found ?? .nothing)
  }

  /// The node as a `Decodable` type. Keys, dates and defaults are read as `decoder` says; without
  /// one, dates are milliseconds since 1970, as `setValue(from:)` writes them.
  ///
  /// - Parameters:
  ///   - type: what the node is.
  ///   - decoder: how it is decoded.
  /// - Throws: `DatabaseError` with `.notFound` when there is nothing, unless `type` is optional;
  ///   `DecodingError` with the place and what stands there; whatever the type's own decoding
  ///   throws.
  /// - Complexity: O(nodes).
  public func data<Content: Decodable>(
    as type: Content.Type, decoder: DocumentDecoder = .tree
  ) throws -> Content {
    guard exists || type is any ExpressibleByNilLiteral.Type else {
      throw DatabaseError(
        .notFound, "there is nothing to decode as \(type)", path: reference.path)
    }
    return try decoder.decode(type, from: .value(value), of: nil)
  }
}

extension TreeSnapshot: Hashable {
  /// Whether both are the same place with the same content.
  public static func == (left: TreeSnapshot, right: TreeSnapshot) -> Bool {
    left.reference == right.reference && left.node == right.node
  }

  /// Feeds the place and the content.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(reference)
    hasher.combine(node)
  }
}

extension TreeSnapshot: Identifiable {
  /// The place.
  public var id: String { reference.path }
}

extension TreeSnapshot: CustomStringConvertible {
  /// The place and the value.
  public var description: String { "\(reference) \(value)" }
}

extension DocumentEncoder {
  /// As the tree needs it: dates become milliseconds since 1970, because JSON has none.
  public static let tree = DocumentEncoder(dateStrategy: .millisecondsSince1970)
}

extension DocumentDecoder {
  /// Reads what `DocumentEncoder.tree` writes.
  public static let tree = DocumentDecoder(dateStrategy: .millisecondsSince1970)
}
