// The state of a place of the tree at one moment. A value that holds all of it: using it reads
// nothing more.

internal import OndolEngine

/// A node of the tree as it was when it was read, with everything below it.
public struct TreeSnapshot: Sendable {
  /// Where the node is.
  public let reference: TreeReference
  let node: TreeNode
  /// The order of the children. They are sorted on request, so that a listener's snapshot of a
  /// large node costs no more than what changed.
  private let order: TreeOrder

  init(reference: TreeReference, node: TreeNode, order: TreeOrder = .priority) {
    self.reference = reference
    self.node = node
    self.order = order
  }

  /// The last key of the path; nil for the root.
  public var key: String? { reference.key }

  /// The node as JSON: null when it does not exist, a leaf's value, an array when it was written as
  /// one, otherwise a map.
  ///
  /// - Complexity: O(nodes), at each call.
  public var value: Value { node.value }

  /// Like `value`, but nodes with a priority are maps with `.priority`, and `.value` for leaves.
  /// Writing this value produces the same tree.
  ///
  /// - Complexity: O(nodes), at each call.
  public var exportedValue: Value { node.exportedValue }

  /// The node's priority, a number or a text; nil for none.
  public var priority: Value? { node.priority }

  /// Whether the node exists.
  public var exists: Bool { node.exists }

  /// Whether the node has children.
  public var hasChildren: Bool { !node.children.isEmpty }

  /// The number of children.
  public var childrenCount: Int { node.children.count }

  /// Whether a node exists at `path` below this one.
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

  /// The node at `path` below this one: keys with `/` between. One that does not `exist` when there
  /// was none, or when the path is wrong.
  ///
  /// - Parameter path: keys with `/` between.
  /// - Complexity: O(log n) in the children of each node on the way.
  public func childSnapshot(forPath path: String) -> TreeSnapshot {
    let way = try? TreePath.root.appending(path: path)
    let found = way.flatMap { node.descendant(Array($0.rowKey.dropFirst(TreeKey.root.count))) }
    return TreeSnapshot(reference: reference.child(path), node: found ?? .nothing)
  }

  /// The node as a `Decodable` type. `decoder` determines how keys, dates and defaults are read.
  /// Without one, dates are milliseconds since 1970, as `setValue(from:)` writes them.
  ///
  /// - Parameters:
  ///   - type: the type to decode.
  ///   - decoder: how it is decoded.
  /// - Throws: `DatabaseError` with `.notFound` when the node does not exist, unless `type` is
  ///   optional; `DecodingError` with the place and its value; whatever the type's own decoding
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

  /// Hashes the place and the content.
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
  /// An encoder for the tree: dates become milliseconds since 1970, because JSON has no dates.
  public static let tree = DocumentEncoder(dateStrategy: .millisecondsSince1970)
}

extension DocumentDecoder {
  /// Reads values that `DocumentEncoder.tree` wrote.
  public static let tree = DocumentDecoder(dateStrategy: .millisecondsSince1970)
}
