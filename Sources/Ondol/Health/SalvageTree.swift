// The tree of a database that is being salvaged. Nodes are kept unchanged. Rows that order children
// are left out and rebuilt from the nodes, because either may be lost. Rows of nodes of which
// nothing else is left are removed.

internal import OndolEngine

/// The part of the tree that is kept.
struct SalvageTree {
  private(set) var losses: [SalvageReport.Loss] = []
  /// Rows of nodes that were kept.
  private(set) var saved = 0
  /// The last leaf.
  private var leaf: [UInt8]?

  static func hasRows(in keyspace: Keyspace) -> Bool {
    keyspace == .tree || keyspace == .closeOperations || keyspace == .connectionOperations
      || keyspace == .treeIndexes
  }

  /// Whether a row is written into the new database; the rows come in the order of their keys.
  mutating func keeps(_ row: SalvagedRow, of keyspace: Keyspace) -> Bool {
    switch keyspace {
    case .tree: return keepsNode(row)
    case .treeIndexes:
      return (try? TreeIndexDefinition(declarationKey: row.key.bytes)) != nil
    default:
      let owner = keyspace == .connectionOperations ? CloseOperations.connectionLength : 0
      return
        (try? CloseOperations.operation(
          at: Array(row.key.dropFirst(Keyspace.prefixLength + owner)), row.value.bytes)) != nil
    }
  }

  private mutating func keepsNode(_ row: SalvagedRow) -> Bool {
    guard TreeKey.isNode(row.key.bytes) else { return false }
    do throws(MalformedBytes) {
      guard let names = try TreeKey.path(of: row.key.bytes), names.count <= TreePath.maximumDepth
      else { throw MalformedBytes(at: 0, "it is too deep") }
      if let leaf, row.key.starts(with: leaf) {
        throw MalformedBytes(at: 0, "it is below a leaf")
      }
      if try TreeRow(row.value.bytes).leaf != nil { leaf = row.key }
      saved += 1
      return true
    } catch {
      let names = (try? TreeKey.path(of: row.key.bytes)) ?? []
      let path = "/" + names.joined(separator: "/")
      losses.append(
        SalvageReport.Loss(
          reason: "a node of the tree is damaged at \(error.offset): \(error.reason)", after: path,
          before: path))
      return false
    }
  }
}

extension Database {
  /// Rows of the tree that are checked for one commit.
  private static let salvageStep = 4_096

  /// Builds the rows that order the children of nodes, and removes rows of nodes that do not exist.
  func orderSalvagedTree() async throws(DatabaseError) {
    var repair = TreeRepair()
    while !repair.isDone {
      let previous = repair
      let (next, batch) = try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
        var next = previous
        let batch = try next.step(atMost: Self.salvageStep, in: rows)
        return (next, batch)
      }
      repair = next
      try await commit(repairing: batch)
    }
    let indexes = try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try TreeIndexDefinition.all(in: rows)
    }
    for index in indexes { try await build(index) }
  }

  private func build(_ index: TreeIndexDefinition) async throws(DatabaseError) {
    let batch = try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      var batch = Batch()
      var cursor = TreeCursor(rows, node: index.node)
      for position in try ChildOrder.list(.child(index.way), &cursor) {
        batch.put((index.prefix + position.bytes).bytes, [UInt8]().bytes)
      }
      return batch
    }
    try await commit(repairing: batch)
  }

  private func commit(repairing batch: Batch) async throws(DatabaseError) {
    guard !batch.isEmpty else { return }
    try await rethrowing { () async throws(EngineError) in
      _ = try await engine.commit(batch, durability: .process)
    }
  }
}

/// A walk over all nodes of a salvaged tree.
private struct TreeRepair: Sendable {
  private var last: [UInt8]?
  private(set) var isDone = false
  /// Rows without a leaf above the last row, the rows that order them, and whether a leaf was found
  /// below each.
  private var open: [(key: [UInt8], order: [UInt8]?, isProven: Bool)] = []

  mutating func step(atMost count: Int, in rows: Rows) throws(DatabaseError) -> Batch {
    var batch = Batch()
    var seen: [(key: [UInt8], row: TreeRow)] = []
    let lower = last.map { $0 + [0] } ?? TreeKey.root
    var walked = 0
    try rows.forEachRow(in: KeyRange(lower: lower, upper: TreeKey.root + [0xff])) {
      (key, value) throws(DatabaseError) in
      walked += 1
      last = key.array
      if TreeKey.isNode(key) { seen.append((key.array, try TreePreparation.row(value.array))) }
      return walked < count
    }
    for (key, row) in seen {
      close(before: key, &batch)
      let order = try row.priority.flatMap { (priority) throws(DatabaseError) in
        try Self.orderKey(key, priority)
      }
      if row.leaf == nil {
        open.append((key, order, false))
      } else {
        if let order { batch.put(order.bytes, [UInt8]().bytes) }
        for index in open.indices { open[index].isProven = true }
      }
    }
    if walked < count {
      isDone = true
      close(before: [], &batch)
    }
    return batch
  }

  private mutating func close(before key: [UInt8], _ batch: inout Batch) {
    while let node = open.last, !key.starts(with: node.key) {
      if !node.isProven {
        batch.delete(node.key.bytes)
      } else if let order = node.order {
        batch.put(order.bytes, [UInt8]().bytes)
      }
      open.removeLast()
    }
  }

  private static func orderKey(
    _ key: [UInt8], _ priority: Value
  ) throws(DatabaseError) -> [UInt8]? {
    do throws(MalformedBytes) {
      guard let name = try TreeKey.path(of: key.bytes)?.last else { return nil }
      let component = TreeKey.component(name)
      return TreeOrder.priorityKey(
        priority, of: component, in: Array(key.dropLast(component.count)))
    } catch {
      throw DatabaseError(tree: error)
    }
  }
}
