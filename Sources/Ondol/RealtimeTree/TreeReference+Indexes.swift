// Indexes of a node's children. An index is declared for a place and stays declared whatever is
// there; its rows are in front of the node's children, so they go when the node goes, and are made
// by the write that makes the node.

internal import OndolEngine

extension TreeReference {
  /// Makes an index of the node's children by what each has at `path`, for `queryOrdered(byChild:)`
  /// with the same path. It is a matter of speed only: a query with bounds or a limit reads the
  /// children it gives, and no others. Making one that is there does nothing.
  ///
  /// What it costs: one row for each child, which is rewritten when what is at `path` changes.
  ///
  /// - Parameters:
  ///   - path: what the query orders by: one key or several with `/` between.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.invalidArgument` when a path is wrong; `.resourceExhausted` when there are so many
  ///   children that one commit cannot hold their rows, some hundred thousand; otherwise as
  ///   `setValue`.
  /// - Complexity: O(children), all of which are looked at; writes below the node made meanwhile
  ///   wait or make it begin again.
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

  /// Takes an index away. Queries that used it give the same, by looking at all children.
  ///
  /// - Parameters:
  ///   - path: as it was created.
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
  /// Makes the batch fail when the index is declared or dropped, or anything at its node changes.
  fileprivate func guardUnchanged(in batch: inout Batch) {
    batch.guardUnchanged(declarationKey.bytes)
    let range = KeyRange(prefix: node)
    batch.guardUnchanged(from: range.lower.bytes, to: range.upper.bytes)
  }
}
