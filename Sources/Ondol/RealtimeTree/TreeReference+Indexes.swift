// Indexes of a node's children. An index is declared for a place and stays declared, whatever
// happens to the node. Its rows come before the node's children, so removing the node removes them,
// and the write that makes the node makes them.

internal import OndolEngine

extension TreeReference {
  /// Creates an index of the node's children by the value at `path`, for `queryOrdered(byChild:)`
  /// with the same path. An index only affects speed: a query with bounds or a limit then reads
  /// only the children it returns. Creating an existing index does nothing.
  ///
  /// An index costs one row for each child, which is rewritten when the value at `path` changes.
  ///
  /// - Parameters:
  ///   - path: the path that the query orders by: one key or several with `/` between.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.invalidArgument` when a path is wrong; `.resourceExhausted` when there are so many
  ///   children that one commit cannot hold their rows, a few hundred thousand; otherwise as
  ///   `setValue`.
  /// - Complexity: O(children), all of which are looked at; concurrent writes below the node wait
  ///   or make it start again.
  public func createIndex(
    byChild path: String, durability: Durability? = nil
  ) async throws(DatabaseError) {
    let index = try index(byChild: path)
    try database.refuseInTransaction("createIndex", self.path)
    _ = try await database.commitTree(durability) { (rows, batch) throws(DatabaseError) in
      guard try rows.row(index.declarationKey) == nil else { return }
      index.guardUnchanged(in: &batch)
      batch.put(index.declarationKey.bytes, [UInt8]().bytes)
      var order = try ChildOrder(.child(index.way), of: index.node, in: rows)
      for position in try order.positions(TreeSelection(order: .child(index.way))) {
        batch.put((index.prefix + position.bytes).bytes, [UInt8]().bytes)
      }
    }
  }

  /// Removes an index. Queries that used it return the same results, by looking at all children.
  ///
  /// - Parameters:
  ///   - path: the path that it was created with.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.notFound` when there is none; otherwise as `createIndex(byChild:durability:)`.
  /// - Complexity: O(children).
  public func dropIndex(
    byChild path: String, durability: Durability? = nil
  ) async throws(DatabaseError) {
    let index = try index(byChild: path)
    let place = self.path
    try database.refuseInTransaction("dropIndex", place)
    _ = try await database.commitTree(durability) { (rows, batch) throws(DatabaseError) in
      guard try rows.row(index.declarationKey) != nil else {
        throw DatabaseError(
          .notFound, "there is no index by \(path) of the children of /\(place)", path: place)
      }
      index.guardUnchanged(in: &batch)
      batch.delete(index.declarationKey.bytes)
      try rows.forEachRow(in: KeyRange(prefix: index.prefix)) { (key, _) throws(DatabaseError) in
        batch.delete(key)
        return true
      }
    }
  }

  private func index(byChild path: String) throws(DatabaseError) -> TreeIndexDefinition {
    let node = try place.get()
    let way = try TreePath.root.appending(path: path)
    guard way.depth > 0 else {
      throw DatabaseError(.invalidArgument, "the path to order by is empty", path: self.path)
    }
    return TreeIndexDefinition(
      node: node.rowKey, way: Array(way.rowKey.dropFirst(TreeKey.root.count)))
  }
}

extension TreeIndexDefinition {
  /// Makes the batch fail when the index is created or dropped, or anything at its node changes.
  fileprivate func guardUnchanged(in batch: inout Batch) {
    batch.guardUnchanged(declarationKey.bytes)
    let range = KeyRange(prefix: node)
    batch.guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
  }
}
