// A query prepared for one collection, which checks documents in their encoded rows. It reads only
// the fields in question, so most documents of a scan are never decoded. Stage 4 of the read path:
// the matcher decides, however candidates were found.

internal import OndolEngine

/// Checks whether documents are in a query's result, and reads their sort keys.
struct Matcher: Sendable {
  /// The conditions.
  private let program: RowProgram
  private let orders: [(order: SortOrder, path: ResolvedPath?)]
  /// Whether texts of one of the orders are compared other than by their bytes.
  private let hasComparisons: Bool
  private let start: NormalQuery.Bound?
  private let end: NormalQuery.Bound?
  private let naming: DocumentNaming
  let symbols: SymbolTable
  /// The field that holds when documents expire, and the time of the read.
  private let lifetime: (path: ResolvedPath, now: Int64)?

  /// - Parameters:
  ///   - lifetime: the field that holds when documents expire.
  ///   - moment: documents that expire then or earlier are left out.
  init(
    _ query: NormalQuery, _ naming: DocumentNaming, symbols: SymbolTable,
    _ lifetime: FieldNames? = nil, endingAfter moment: Int64 = 0
  ) {
    self.naming = naming
    self.symbols = symbols
    start = query.start
    end = query.end
    program = RowProgram(
      query.conjuncts, required: query.required, lifetime, endingAfter: moment, naming, symbols)
    hasComparisons = query.orders.contains { $0.field.comparison != nil }
    orders = query.orders.map { ($0, Self.resolve($0.field, symbols)) }
    self.lifetime = lifetime.map { (ResolvedPath($0, in: symbols), moment) }
  }

  /// Nil for the document's name.
  static func resolve(_ field: QueryField, _ symbols: SymbolTable) -> ResolvedPath? {
    field == .documentID ? nil : ResolvedPath(field.names, in: symbols)
  }

  /// Whether documents can be checked without their keys.
  var needsNoKeys: Bool { !program.needsKeys && start == nil && end == nil }

  /// Whether the document of `row` surely does not match. False also when its key must decide or
  /// its bytes are damaged.
  @inline(__always)
  func refuses(_ row: RawSpan) -> Bool {
    guard !program.needsKeys else { return false }
    do throws(MalformedBytes) {
      return try !program.accepts(DocumentView(row), RawSpan())
    } catch {
      return false
    }
  }

  /// Whether a document matches, without its key. Requires `needsNoKeys`.
  @inline(__always)
  func accepts(_ view: borrowing DocumentView) throws(MalformedBytes) -> Bool {
    try program.accepts(view, RawSpan())
  }

  /// Whether the document of `view` meets every condition, has every field of the orders, and is
  /// between the start and the end of the result.
  func matches(_ view: borrowing DocumentView, _ key: RawSpan) throws(DatabaseError) -> Bool {
    do throws(MalformedBytes) {
      guard try program.accepts(view, key) else { return false }
      return try isWithinPlaces(view, key)
    } catch {
      throw DatabaseError(error, documentAt: try naming.path(of: key))
    }
  }

  /// Whether the document has expired.
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
    guard let lifetime, let field = try view.field(lifetime.path) else { return false }
    let order = try field.order(toTimestamp: lifetime.now)
    return order == .below || order == .same
  }

  // MARK: - Order

  /// The document's sort keys; nil for a field that it lacks.
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
    guard let path = orders[index].path else { return try naming.name(in: key) }
    let value = try view.field(path)?.value(symbols)
    return hasComparisons ? value.map(orders[index].order.field.compared) : value
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

  /// The order of the document relative to a bound.
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
}
