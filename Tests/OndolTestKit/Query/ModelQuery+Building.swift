// Converts a query of the model to one of the library, with the calls that an app makes.

package import Ondol

extension ModelQuery {
  /// Returns the same query, built with the public calls.
  package func build(in database: Database) -> Query {
    var query: Query
    if let group {
      query = database.collectionGroup(group).query
    } else {
      query = database.collection(CollectionPath(unchecked: collection ?? [])).query
    }
    for filter in filters { query = query.whereFilter(Self.filter(filter)) }
    for order in orders {
      query = query.order(
        by: Self.path(order.field), descending: order.descending, missing: order.missing)
    }
    if let start {
      query = start.isIncluded ? query.start(at: start.values) : query.start(after: start.values)
    }
    if let end {
      query = end.isIncluded ? query.end(at: end.values) : query.end(before: end.values)
    }
    if let limit { query = isLast ? query.limit(toLast: limit) : query.limit(to: limit) }
    return query.offset(offset)
  }

  package static func path(_ field: [String]) -> FieldPath { FieldPath(field) }

  private static func filter(_ filter: ModelFilter) -> Filter {
    switch filter {
    case .all(let filters): return .andFilter(filters.map(Self.filter))
    case .any(let filters): return .orFilter(filters.map(Self.filter))
    case .list(let field, let sign, let operands):
      switch sign {
      case "in": return .whereField(path(field), in: operands)
      case "not in": return .whereField(path(field), notIn: operands)
      default: return .whereField(path(field), arrayContainsAny: operands)
      }
    case .compare(let field, let sign, let operand):
      switch sign {
      case "==": return .whereField(path(field), isEqualTo: operand)
      case "!=": return .whereField(path(field), isNotEqualTo: operand)
      case "<": return .whereField(path(field), isLessThan: operand)
      case "<=": return .whereField(path(field), isLessThanOrEqualTo: operand)
      case ">": return .whereField(path(field), isGreaterThan: operand)
      case ">=": return .whereField(path(field), isGreaterThanOrEqualTo: operand)
      case "prefix": return .whereField(path(field), hasPrefix: operand.string ?? "")
      default: return .whereField(path(field), arrayContains: operand)
      }
    }
  }
}
