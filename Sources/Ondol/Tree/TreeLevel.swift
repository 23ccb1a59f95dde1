// One level of the tree, for a view from above: a node and some of its children, each with the
// contents of its own row and its number of children, but nothing of what is below.

internal import OndolEngine

/// A node without the nodes below it.
package struct TreeOutline: Sendable {
  package var key: String
  /// A boolean, a number or a text; nil for a node with children.
  package var leaf: Value?
  package var priority: Value?
  /// The number of children, as far as they were counted.
  package var childCount: Int
  /// Whether there are more than were counted.
  package var hasMoreChildren: Bool

  package var exists: Bool { leaf != nil || childCount > 0 }
}

extension TreeReference {
  /// The node and its children in the order of their keys, after a given key.
  ///
  /// - Parameters:
  ///   - after: the key after which children are read; nil for all.
  ///   - limit: the most children to return. There are fewer if their texts take up several
  ///     megabytes.
  ///   - counted: the most children to count for each child; for the node ten times as many.
  /// - Complexity: O(limit · counted) seeks, however much is below.
  @concurrent
  package func outline(
    after: String?, atMost limit: Int, counting counted: Int
  ) async throws(DatabaseError) -> (node: TreeOutline, children: [TreeOutline], isMore: Bool) {
    let (path, _) = try queryOrderedByKey().resolved()
    try database.refuseReadInTransaction(self.path)
    let name = key ?? ""
    return try await database.read(try database.engineSnapshot(), canBeCancelled: true) {
      (rows) throws(DatabaseError) in
      var cursor = TreeCursor(rows, node: path.rowKey)
      let node = try cursor.outline(of: [], named: name, counting: counted * 10)
      var children: [TreeOutline] = []
      var bytes = 0
      var bound = after.map { TreeKey.component($0) + [KeyCoding.afterAll] } ?? []
      while let component = try cursor.component(atOrAfter: bound) {
        bound = component + [KeyCoding.afterAll]
        guard try cursor.hasNode(component) else { continue }
        if children.count == limit || bytes > Self.longestOutline {
          return (node, children, true)
        }
        let name = try TreeChild(component, .nothing).key
        let child = try cursor.outline(of: component, named: name, counting: counted)
        if case .string(let text)? = child.leaf { bytes += text.utf8.count }
        children.append(child)
      }
      return (node, children, false)
    }
  }

  /// Bytes of texts after which no further child is read.
  private static let longestOutline = 4 << 20
}

extension TreeCursor {
  /// A node without the nodes below it, and the number of its children up to a limit.
  mutating func outline(
    of suffix: [UInt8], named name: String, counting counted: Int
  ) throws(DatabaseError) -> TreeOutline {
    let row = try row(suffix)
    let count = try childCount(suffix, atMost: counted + 1)
    return TreeOutline(
      key: name, leaf: count == 0 ? row?.leaf?.value() : nil, priority: row?.priority,
      childCount: min(count, counted), hasMoreChildren: count > counted)
  }
}
