// What a server's rules read of the tree within a transaction: nodes without the nodes below them,
// both as they were before the transaction's writes and with them. As of one moment, and as part of
// the footprint, so a write that rules allowed is committed only if they would still allow it.

internal import OndolEngine

extension Transaction {
  /// A node without the nodes below it.
  ///
  /// - Parameter beforeWrites: whether as of before the transaction's own writes.
  /// - Throws: as `getData(_:)`.
  package func outline(
    of reference: TreeReference, beforeWrites: Bool
  ) throws(DatabaseError) -> TreeOutline {
    try read(reference, beforeWrites) { (cursor) throws(DatabaseError) in
      try cursor.outline(of: [], named: reference.key ?? "", counting: 1)
    }
  }

  /// The keys of a node's children, in order.
  ///
  /// - Parameter beforeWrites: whether as of before the transaction's own writes.
  /// - Throws: as `getData(_:)`.
  /// - Complexity: O(children) seeks.
  package func childKeys(
    of reference: TreeReference, beforeWrites: Bool
  ) throws(DatabaseError) -> [String] {
    try read(reference, beforeWrites) { (cursor) throws(DatabaseError) in
      var keys: [String] = []
      var bound: [UInt8] = []
      while let component = try cursor.component(atOrAfter: bound) {
        bound = component + [KeyCoding.afterAll]
        guard try cursor.hasNode(component) else { continue }
        keys.append(try TreeChild(component, .nothing).key)
      }
      return keys
    }
  }

  private func read<Result>(
    _ reference: TreeReference, _ beforeWrites: Bool,
    _ body: @escaping @Sendable (inout TreeCursor) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try check(reference.database, reference.path)
    let path = try reference.place.get()
    noteTreeRead(of: path)
    do throws(DatabaseError) {
      var cursor = TreeCursor(beforeWrites ? base : try currentRows(), node: path.rowKey)
      return try body(&cursor)
    } catch {
      throw noting(error) { (rows) throws(DatabaseError) in
        var cursor = TreeCursor(rows, node: path.rowKey)
        _ = try body(&cursor)
      }
    }
  }
}
