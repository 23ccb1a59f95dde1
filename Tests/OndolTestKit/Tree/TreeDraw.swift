// Random writes to a tree and to its model, and random queries of both. There are few keys, so that
// writes meet, and they are such that every rule of their order matters.

package import Ondol

/// Draws writes and queries from a seed.
package struct TreeDraw {
  package var random: SeededRandom
  package private(set) var model = ModelTree()
  private let database: Database

  private static let keys = [
    "a", "b", "B", "1", "01", "2", "10", "-3", "x.y@z", "é", "\u{ff5e}", "😀", "name",
  ]

  package init(seed: UInt64, _ database: Database) {
    random = SeededRandom(seed: SeededRandom.derive(seed, 1))
    self.database = database
  }

  // MARK: - Content

  private mutating func scalar() -> Value {
    switch random.below(7) {
    case 0: .boolean(random.chance(1, in: 2))
    case 1: .double(Double(random.below(9)) / 2)
    case 2, 3: .integer(Int64(random.below(6) - 2))
    default: .string(random.pick(["", "a", "b", "é", "\u{ff5e}", "😀", "ab"]))
    }
  }

  private mutating func priority() -> Value? {
    guard random.chance(1, in: 5) else { return nil }
    return random.pick([.integer(1), .integer(2), .double(1.5), .string("p"), .string("q")])
  }

  private mutating func node(depth: Int) -> ModelTree {
    if depth == 0 || random.chance(2, in: 5) {
      return ModelTree(leaf: scalar(), priority: priority())
    }
    var node = ModelTree(priority: priority())
    for _ in 0..<random.below(5) {
      let child = self.node(depth: depth - 1)
      if child.exists { node.children[random.pick(Self.keys)] = child }
    }
    if !node.exists { node.priority = nil }
    return node
  }

  private mutating func path(_ depths: ClosedRange<Int>) -> [String] {
    (0..<(depths.lowerBound + random.below(depths.count))).map { _ in random.pick(Self.keys) }
  }

  private func reference(_ path: [String]) -> TreeReference {
    path.reduce(database.tree) { $0.child(key: $1) }
  }

  // MARK: - Writing

  /// Makes one commit, or none if there was nothing to change.
  package mutating func write() async throws {
    switch random.below(13) {
    case 12: try await refuse()
    case 0...4:
      let path = path(0...3)
      let node = random.chance(1, in: 5) ? ModelTree() : node(depth: 3)
      model.set(path[...], node)
      try await reference(path).setValue(node.exported)
    case 5...7: try await update()
    case 8:
      let path = path(0...2)
      let priority = priority()
      model.prioritize(path[...], priority)
      try await reference(path).setPriority(priority)
    case 9:
      let path = path(1...3)
      model.set(path[...], ModelTree())
      try await reference(path).removeValue()
    case 10: try await transact()
    default: try await changeIndex()
    }
  }

  /// Writes a decimal somewhere in a node. Nothing of that node may enter the tree.
  private mutating func refuse() async throws {
    let place = reference(path(1...2))
    let number = random.decimal()
    let value = random.pick([number, .map(["a": number]), .array([1, .array([number])])])
    do throws(DatabaseError) {
      switch random.below(3) {
      case 0: try await place.setValue(value)
      case 1: try await place.updateChildValues(["a": value])
      default: try await place.setPriority(number)
      }
    } catch {
      guard error.code == .invalidArgument else { throw error }
      return
    }
    throw TreeFault(description: "the tree took \(value)")
  }

  private mutating func update() async throws {
    let base = path(0...1)
    var writes: [[String]: ModelTree] = [:]
    for _ in 0..<(1 + random.below(4)) {
      let way = path(1...2)
      let others = writes.keys.contains { $0.starts(with: way) || way.starts(with: $0) }
      if others { continue }
      writes[way] = random.chance(1, in: 3) ? ModelTree() : node(depth: 1)
    }
    // Removing first and adding later gives the same result: only the final state decides whether a
    // node is empty. In the model, the addition comes first.
    for (way, node) in writes where node.exists { model.set((base + way)[...], node) }
    for (way, node) in writes where !node.exists { model.set((base + way)[...], node) }
    var values: [String: (any FieldContent)?] = [:]
    for (way, node) in writes { values[way.joined(separator: "/")] = node.exported }
    try await reference(base).updateChildValues(values)
  }

  /// Makes several writes and a read in one commit.
  private mutating func transact() async throws {
    var steps: [(path: [String], node: ModelTree)] = []
    for _ in 0..<(1 + random.below(3)) {
      let node = random.chance(1, in: 3) ? ModelTree() : node(depth: 2)
      steps.append((path(1...2), node))
    }
    for step in steps { model.set(step.path[...], step.node) }
    let expected = model.exported
    let database = database
    let writes = steps.map { (reference($0.path), $0.node.exported) }
    try await database.runTransaction { transaction in
      for (reference, value) in writes { try transaction.setValue(value, at: reference) }
      let seen = try transaction.getData(database.tree).exportedValue
      guard seen.description == expected.description else {
        throw TreeFault(description: "a transaction sees \(seen) and not \(expected)")
      }
    }
  }

  private mutating func changeIndex() async throws {
    let place = reference(path(0...1))
    let key = random.pick(["a", "name", "1"])
    if random.chance(2, in: 3) {
      try await place.createIndex(byChild: key)
    } else {
      try? await place.dropIndex(byChild: key)
    }
  }

  // MARK: - Asking

  package mutating func query() -> ModelTreeQuery {
    var query = ModelTreeQuery(path: path(0...2))
    switch random.below(6) {
    case 0: query.order = .key
    case 1: query.order = .value
    case 2: query.order = .child([random.pick(["a", "name", "1"])])
    case 3: query.order = .child(["a", random.pick(Self.keys)])
    default: break
    }
    if random.chance(1, in: 3) { query.start = bound(query.order) }
    if random.chance(1, in: 3) { query.end = bound(query.order) }
    if random.chance(2, in: 5) {
      query.limit = 1 + random.below(4)
      query.isFromEnd = random.chance(1, in: 2)
    }
    return query
  }

  private mutating func bound(_ order: ModelOrder) -> ModelTreeQuery.Bound {
    let isIncluded = random.chance(2, in: 3)
    switch order {
    case .key:
      return .init(value: .string(random.pick(Self.keys)), key: nil, isIncluded: isIncluded)
    case .priority:
      let value: Value = random.pick([.null, .integer(1), .double(1.5), .string("p")])
      return .init(value: value, key: key(), isIncluded: isIncluded)
    case .value, .child:
      let value: Value = random.chance(1, in: 5) ? .null : scalar()
      return .init(value: value, key: key(), isIncluded: isIncluded)
    }
  }

  private mutating func key() -> String? {
    random.chance(1, in: 3) ? random.pick(Self.keys) : nil
  }

  /// Builds the query as an app does.
  package func build(_ model: ModelTreeQuery) -> TreeQuery {
    var query = reference(model.path).treeQuery
    switch model.order {
    case .priority: break
    case .key: query = query.queryOrderedByKey()
    case .value: query = query.queryOrderedByValue()
    case .child(let way): query = query.queryOrdered(byChild: way.joined(separator: "/"))
    }
    if let start = model.start {
      query =
        start.isIncluded
        ? query.queryStarting(atValue: start.value, childKey: start.key)
        : query.queryStarting(afterValue: start.value, childKey: start.key)
    }
    if let end = model.end {
      query =
        end.isIncluded
        ? query.queryEnding(atValue: end.value, childKey: end.key)
        : query.queryEnding(beforeValue: end.value, childKey: end.key)
    }
    if let limit = model.limit {
      query =
        model.isFromEnd ? query.queryLimited(toLast: limit) : query.queryLimited(toFirst: limit)
    }
    return query
  }
}

/// Why a trial failed.
package struct TreeFault: Error, CustomStringConvertible {
  package var description: String
}
