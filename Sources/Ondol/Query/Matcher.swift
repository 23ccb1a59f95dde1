// A query's conditions made ready for one collection, asked of documents as they lie in their rows:
// only the fields in question are read, and most documents of a scan are never decoded. The
// matcher is the meaning of a query: whatever way candidates were found, it looks at each of them.

internal import OndolEngine

/// Asks documents whether they are in a query's result, and what they are sorted by.
struct Matcher: Sendable {
  private indirect enum Node: Sendable {
    /// The path is nil for the document's name.
    case field(FieldFilter.Condition, ResolvedPath?)
    case all([Node])
    case any([Node])
  }

  private let nodes: [Node]
  private let required: [ResolvedPath]
  private let orders: [(order: SortOrder, path: ResolvedPath?)]
  private let start: NormalQuery.Bound?
  private let end: NormalQuery.Bound?
  private let naming: DocumentNaming
  let symbols: SymbolTable
  /// The field that says when documents end, and the moment of the read.
  private var lifetime: (path: ResolvedPath, now: Int64)?

  init(_ query: NormalQuery, _ naming: DocumentNaming, symbols: SymbolTable) {
    self.naming = naming
    self.symbols = symbols
    start = query.start
    end = query.end
    nodes = query.conjuncts.map { Self.node($0, symbols) }
    required = query.required.compactMap { Self.resolve($0, symbols) }
    orders = query.orders.map { ($0, Self.resolve($0.field, symbols)) }
  }

  private static func node(_ tree: FilterTree, _ symbols: SymbolTable) -> Node {
    switch tree {
    case .field(let filter): .field(filter.condition, resolve(filter.field, symbols))
    case .all(let trees): .all(trees.map { node($0, symbols) })
    case .any(let trees): .any(trees.map { node($0, symbols) })
    }
  }

  /// Nil for the document's name.
  static func resolve(_ field: QueryField, _ symbols: SymbolTable) -> ResolvedPath? {
    guard case .field(let names) = field else { return nil }
    return ResolvedPath(names, in: symbols)
  }

  /// Whether the document, whose row is `view`, meets every condition, has every field it is sorted
  /// by and is between the places where the result begins and ends.
  func matches(_ view: borrowing DocumentView, _ key: RawSpan) throws(DatabaseError) -> Bool {
    do throws(MalformedBytes) {
      if try isOver(view) { return false }
      for index in nodes.indices where try !meets(nodes[index], view, key) { return false }
      guard try hasFields(view) else { return false }
      return try isWithinPlaces(view, key)
    } catch {
      throw DatabaseError(error, documentAt: try naming.path(of: key))
    }
  }

  /// Leaves out documents that end at `now` or before, as `field` says.
  mutating func leaveOut(endedBy now: Int64, _ field: FieldNames) {
    lifetime = (ResolvedPath(field, in: symbols), now)
  }

  /// Whether the document's time is over.
  func isOver(
    _ view: borrowing DocumentView, _ key: RawSpan
  ) throws(DatabaseError) -> Bool {
    do throws(MalformedBytes) {
      return try isOver(view)
    } catch {
      throw DatabaseError(error, documentAt: try naming.path(of: key))
    }
  }

  private func isOver(_ view: borrowing DocumentView) throws(MalformedBytes) -> Bool {
    guard let lifetime, let field = try view.field(lifetime.path),
      case .timestamp(let end) = try field.value(symbols)
    else { return false }
    return end.microsecondsSince1970 <= lifetime.now
  }

  private func meets(
    _ node: Node, _ view: borrowing DocumentView, _ key: RawSpan
  ) throws(MalformedBytes) -> Bool {
    switch node {
    case .field(let condition, let path?):
      guard let field = try view.field(path) else { return false }
      if case .equal(let operand) = condition { return try field.compare(operand, symbols) == 0 }
      return condition.matches(try field.value(symbols))
    case .field(let condition, nil):
      return condition.matches(try name(of: key))
    case .all(let nodes):
      for index in nodes.indices where try !meets(nodes[index], view, key) { return false }
      return true
    case .any(let nodes):
      for index in nodes.indices where try meets(nodes[index], view, key) { return true }
      return false
    }
  }

  private func hasFields(_ view: borrowing DocumentView) throws(MalformedBytes) -> Bool {
    for index in required.indices where try view.field(required[index]) == nil { return false }
    return true
  }

  // MARK: - Order

  /// What the document is sorted by; nil where it lacks the field.
  func sortKeys(
    of view: borrowing DocumentView, _ key: RawSpan
  ) throws(DatabaseError) -> [Value?] {
    do throws(MalformedBytes) {
      var keys: [Value?] = []
      keys.reserveCapacity(orders.count)
      for index in orders.indices { keys.append(try sortKey(index, view, key)) }
      return keys
    } catch {
      throw DatabaseError(error, documentAt: try naming.path(of: key))
    }
  }

  private func sortKey(
    _ index: Int, _ view: borrowing DocumentView, _ key: RawSpan
  ) throws(MalformedBytes) -> Value? {
    guard let path = orders[index].path else { return try name(of: key) }
    return try view.field(path)?.value(symbols)
  }

  private func isWithinPlaces(
    _ view: borrowing DocumentView, _ key: RawSpan
  ) throws(MalformedBytes) -> Bool {
    if let start {
      let order = try compare(view, key, start)
      if order < 0 || (order == 0 && !start.isIncluded) { return false }
    }
    if let end {
      let order = try compare(view, key, end)
      if order > 0 || (order == 0 && !end.isIncluded) { return false }
    }
    return true
  }

  /// Where the document stands relative to a place.
  private func compare(
    _ view: borrowing DocumentView, _ key: RawSpan, _ bound: NormalQuery.Bound
  ) throws(MalformedBytes) -> Int {
    for index in 0..<Swift.min(bound.keys.count, orders.count) {
      let own = try sortKey(index, view, key)
      let order = orders[index].order.compare(own, bound.keys[index])
      if order != 0 { return order }
    }
    return 0
  }

  private func name(of key: RawSpan) throws(MalformedBytes) -> Value {
    do throws(DatabaseError) {
      return try naming.name(of: key)
    } catch {
      throw MalformedBytes(at: 0, error.message)
    }
  }
}
