// A query's conditions made ready for one collection, asked of documents as they lie in their rows:
// only the fields in question are read, and most documents of a scan are never decoded.

internal import OndolEngine

/// Asks documents whether they are in a query's result.
struct Matcher {
  private struct Step {
    var filter: FieldFilter
    /// Nil for the document's id.
    var path: ResolvedPath?
  }

  private var steps: [Step] = []
  /// Fields a document must have because the result is ordered by them.
  private var required: [ResolvedPath] = []
  private let symbols: SymbolTable

  init(_ shape: QueryShape, symbols: SymbolTable) throws(DatabaseError) {
    self.symbols = symbols
    for filter in shape.filters {
      steps.append(Step(filter: filter, path: try Self.resolve(filter.field, symbols)))
    }
    for order in shape.orders {
      if let path = try Self.resolve(order.field, symbols) { required.append(path) }
    }
  }

  private static func resolve(
    _ field: QueryField, _ symbols: SymbolTable
  ) throws(DatabaseError) -> ResolvedPath? {
    guard case .field(let names) = field else { return nil }
    return try ResolvedPath(FieldPath(names), in: symbols)
  }

  /// Whether the document, whose row is `view`, meets every condition and has every field it is
  /// sorted by. The limit is left aside.
  func matches(
    _ view: borrowing DocumentView, id: String
  ) throws(MalformedBytes) -> Bool {
    for step in steps {
      guard let path = step.path else {
        guard step.filter.matches(.string(id)) else { return false }
        continue
      }
      guard let field = try view.field(path) else { return false }
      if case .equal(let operand) = step.filter.condition {
        guard try field.compare(operand, symbols) == 0 else { return false }
      } else {
        guard step.filter.matches(try field.value(symbols)) else { return false }
      }
    }
    for path in required where try view.field(path) == nil {
      return false
    }
    return true
  }
}
