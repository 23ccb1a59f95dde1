// The tree within a transaction: its reads are recorded in the footprint as ranges, its writes
// become rows of the same batch as those of documents.

internal import OndolEngine

extension Transaction {
  /// The state of a place of the tree, or the children that a query selects, including the
  /// transaction's own writes. If another commit changes it before this one, the transaction runs
  /// again.
  ///
  /// - Parameter source: a place in the tree, or a query of its children.
  /// - Throws: as `TreeQuerySource.getData()`; `.failedPrecondition` when the transaction is over.
  /// - Complexity: as `TreeQuerySource.getData()`; after a write, also O(n log n) in the writes so
  ///   far.
  public func getData(_ source: some TreeQuerySource) throws(DatabaseError) -> TreeSnapshot {
    let query = source.treeQuery
    try check(query.database, query.reference.path)
    let (path, selection) = try query.resolved()
    noteTreeRead(of: path)
    do throws(DatabaseError) {
      let node = try currentRows().node(at: path, selection)
      return TreeSnapshot(reference: query.reference, node: node, order: selection.order)
    } catch {
      throw noting(error) { (rows) throws(DatabaseError) in
        _ = try rows.node(at: path, selection)
      }
    }
  }

  /// Replaces the node at a place of the tree.
  ///
  /// - Parameters:
  ///   - value: the node's new value: null, a boolean, a number, a text, a map or an array.
  ///   - reference: the place.
  ///   - priority: a number or a text; nil for none.
  /// - Throws: as `TreeReference.setValue(_:andPriority:durability:)`.
  @_disfavoredOverload
  public func setValue(
    _ value: (any FieldContent)?, at reference: TreeReference,
    andPriority priority: (any FieldContent)? = nil
  ) throws(DatabaseError) {
    try apply([TreeCompiler.set(reference, value, priority)], reference)
  }

  /// Replaces the node at a place of the tree by a map whose values are of several types.
  ///
  /// - Parameters:
  ///   - value: the node's new value.
  ///   - reference: the place.
  ///   - priority: a number or a text; nil for none.
  /// - Throws: as `TreeReference.setValue(_:andPriority:durability:)`.
  public func setValue(
    _ value: [String: (any FieldContent)?], at reference: TreeReference,
    andPriority priority: (any FieldContent)? = nil
  ) throws(DatabaseError) {
    try apply([TreeCompiler.set(reference, value, priority)], reference)
  }

  /// Replaces the node at a place of the tree by the encoded `content`.
  ///
  /// - Parameters:
  ///   - content: the node's new value.
  ///   - reference: the place.
  ///   - priority: a number or a text; nil for none.
  ///   - encoder: how it is encoded; without one, dates become milliseconds since 1970.
  /// - Throws: as `TreeReference.setValue(_:andPriority:durability:)`.
  public func setValue<Content: Encodable>(
    from content: Content, at reference: TreeReference,
    andPriority priority: (any FieldContent)? = nil, encoder: DocumentEncoder = .tree
  ) throws(DatabaseError) {
    try apply([TreeCompiler.set(reference, from: content, priority, encoder)], reference)
  }

  /// Replaces several places below a node of the tree.
  ///
  /// - Parameters:
  ///   - values: the new values by path below the node; nil removes.
  ///   - reference: the node.
  /// - Throws: as `TreeReference.updateChildValues(_:durability:)`.
  public func updateChildValues(
    _ values: [String: (any FieldContent)?], at reference: TreeReference
  ) throws(DatabaseError) {
    try apply(TreeCompiler.update(reference, values), reference)
  }

  /// Changes the priority of a node of the tree.
  ///
  /// - Parameters:
  ///   - priority: a number or a text; nil for none.
  ///   - reference: the node.
  /// - Throws: as `TreeReference.setPriority(_:durability:)`.
  public func setPriority(
    _ priority: (any FieldContent)?, at reference: TreeReference
  ) throws(DatabaseError) {
    try apply([TreeCompiler.prioritize(reference, priority)], reference)
  }

  /// Removes a node of the tree and everything below it; no error when it does not exist.
  ///
  /// - Parameter reference: the node.
  /// - Throws: as `TreeReference.setValue(_:andPriority:durability:)`.
  public func removeValue(at reference: TreeReference) throws(DatabaseError) {
    let change = TreeChange(path: try reference.place.get(), content: .replace(.nothing))
    try apply([change], reference)
  }

  private func apply(
    _ changes: [TreeChange], _ reference: TreeReference
  ) throws(DatabaseError) {
    try check(reference.database, reference.path)
    try addTree(changes)
  }
}

/// The result of a transaction at one place of the tree.
public struct TreeTransactionResult: Sendable, Hashable {
  /// Whether it was committed, and not ended by its body.
  public let committed: Bool
  /// The state of the place afterwards.
  public let snapshot: TreeSnapshot
}

extension TreeReference {
  /// Computes the new value of the node from the current one: `body` receives the current value
  /// (null when there is no node) and returns its replacement, or nil to keep everything. When
  /// another commit changes the place meanwhile, `body` runs again.
  ///
  ///     try await counter.runTransaction { value in .integer((value.integer ?? 0) + 1) }
  ///
  /// The node keeps its priority. Replacing it removes the priorities below it. For several places,
  /// or documents beside them, see `Database.runTransaction`.
  ///
  /// - Parameters:
  ///   - attempts: how often `body` may run, at least once; 25 as in the Realtime Database.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - body: returns the new value for the current one, or nil.
  /// - Throws: what `body` throws; `.aborted` when other commits came first `attempts` times;
  ///   otherwise as `setValue`.
  /// - Complexity: reading and replacing the node, for each attempt.
  @discardableResult
  public func runTransaction(
    attempts: Int = 25, durability: Durability? = nil,
    _ body: (Value) async throws -> Value?
  ) async throws -> TreeTransactionResult {
    try await database.runTransaction(attempts: attempts, durability: durability) { transaction in
      let before = try transaction.getData(self)
      guard let value = try await body(before.value) else {
        return TreeTransactionResult(committed: false, snapshot: before)
      }
      try transaction.setValue(value, at: self, andPriority: before.priority)
      return TreeTransactionResult(committed: true, snapshot: try transaction.getData(self))
    }
  }
}

extension DatabaseSnapshot {
  /// The state of a place of the tree, or the children that a query selects.
  ///
  /// Blocks the thread while it reads blocks from disk.
  ///
  /// - Parameter source: a place in the tree, or a query of its children.
  /// - Throws: as `TreeQuerySource.getData()`.
  /// - Complexity: as `TreeQuerySource.getData()`.
  public func getData(_ source: some TreeQuerySource) throws(DatabaseError) -> TreeSnapshot {
    let query = source.treeQuery
    let rows = try rows(for: query.database, query.reference.path)
    let (path, selection) = try query.resolved()
    return TreeSnapshot(
      reference: query.reference, node: try rows.node(at: path, selection), order: selection.order)
  }
}
