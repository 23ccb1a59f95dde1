// The meaning of a query, implemented a second time without any of the code under test: documents
// are dictionaries, conditions examine values, everything is sorted. It is slow and simple on
// purpose, and shares only the values themselves with the library.

internal import Foundation
package import Ondol

/// A document of a test's model.
package struct ModelDocument: Sendable {
  package var path: [String]
  package var fields: [String: Value]

  package init(path: [String], fields: [String: Value]) {
    self.path = path
    self.fields = fields
  }

  var id: String { path[path.count - 1] }
}

/// Random conditions of a test.
package indirect enum ModelFilter: Sendable {
  case compare(field: [String], sign: String, operand: Value)
  case list(field: [String], sign: String, operands: [Value])
  case all([ModelFilter])
  case any([ModelFilter])
}

/// A random query of a test.
package struct ModelQuery: Sendable {
  package var collection: [String]?
  package var group: String?
  package var filters: [ModelFilter] = []
  package var orders: [(field: [String], descending: Bool, missing: MissingPlacement)] = []
  package var start: (values: [Value], isIncluded: Bool)?
  package var end: (values: [Value], isIncluded: Bool)?
  package var limit: Int?
  package var isLast = false
  package var offset = 0

  package static let name = ["__name__"]

  package init() {}
}

/// Evaluates queries by reading everything.
package struct NaiveEvaluator: Sendable {
  package var documents: [ModelDocument]

  package init(documents: [ModelDocument]) {
    self.documents = documents
  }

  package func paths(_ query: ModelQuery) -> [String] {
    var found: [(document: ModelDocument, keys: [Value?])] = []
    let orders = totalOrders(query)
    for document in documents where isAsked(document, query) {
      guard query.filters.allSatisfy({ meets($0, document, query) }) else { continue }
      let keys = orders.map { value($0.field, document, query) }
      let lacks = zip(keys, orders).contains { $0 == nil && $1.missing == .excluded }
      if !lacks { found.append((document, keys)) }
    }
    found.sort { precedes($0.keys, $1.keys, orders) < 0 }
    if let start = query.start {
      found.removeAll { row in
        let order = precedes(row.keys, start.values.map { $0 }, orders)
        return order < 0 || (order == 0 && !start.isIncluded)
      }
    }
    if let end = query.end {
      found.removeAll { row in
        let order = precedes(row.keys, end.values.map { $0 }, orders)
        return order > 0 || (order == 0 && !end.isIncluded)
      }
    }
    var rows = query.isLast ? found.reversed() : found
    rows = Array(rows.dropFirst(query.offset).prefix(query.limit ?? .max))
    if query.isLast { rows.reverse() }
    return rows.map { $0.document.path.joined(separator: "/") }
  }

  private func isAsked(_ document: ModelDocument, _ query: ModelQuery) -> Bool {
    let collection = Array(document.path.dropLast())
    if let group = query.group { return collection.last?.utf8.elementsEqual(group.utf8) ?? false }
    return collection.count == query.collection?.count
      && zip(collection, query.collection ?? []).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
  }

  private func value(_ field: [String], _ document: ModelDocument, _ query: ModelQuery) -> Value? {
    if isSame(field, ModelQuery.name) {
      return query.group == nil
        ? .string(document.id) : .reference(DocumentPath(unchecked: document.path))
    }
    var value = Value.map(document.fields)
    for name in field {
      // Not by subscript, because a dictionary treats two spellings of a name as equal.
      guard case .map(let fields) = value,
        let next = fields.first(where: { $0.key.utf8.elementsEqual(name.utf8) })
      else { return nil }
      value = next.value
    }
    return value
  }

  private func isSame(_ left: [String], _ right: [String]) -> Bool {
    left.count == right.count && zip(left, right).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
  }

  // MARK: - Conditions

  private func meets(
    _ filter: ModelFilter, _ document: ModelDocument, _ query: ModelQuery
  ) -> Bool {
    switch filter {
    case .all(let filters): return filters.allSatisfy { meets($0, document, query) }
    case .any(let filters): return filters.contains { meets($0, document, query) }
    case .compare(let field, let sign, let operand):
      guard let value = value(field, document, query) else { return false }
      let isSameType = kind(value) == kind(operand)
      switch sign {
      case "==": return order(value, operand) == 0
      case "!=": return kind(value) != 0 && order(value, operand) != 0
      case "<": return isSameType && order(value, operand) < 0
      case "<=": return isSameType && order(value, operand) <= 0
      case ">": return isSameType && order(value, operand) > 0
      case ">=": return isSameType && order(value, operand) >= 0
      case "prefix":
        guard case .string(let text) = value, case .string(let prefix) = operand else {
          return false
        }
        return Array(text.utf8.prefix(prefix.utf8.count)) == Array(prefix.utf8)
      default:
        guard case .array(let elements) = value else { return false }
        return elements.contains { order($0, operand) == 0 }
      }
    case .list(let field, let sign, let operands):
      guard let value = value(field, document, query) else { return false }
      func isAmong(_ value: Value) -> Bool { operands.contains { order($0, value) == 0 } }
      switch sign {
      case "in": return isAmong(value)
      case "not in": return kind(value) != 0 && !isAmong(.null) && !isAmong(value)
      default:
        guard case .array(let elements) = value else { return false }
        return elements.contains(where: isAmong)
      }
    }
  }

  // MARK: - Order

  private func totalOrders(
    _ query: ModelQuery
  ) -> [(field: [String], descending: Bool, missing: MissingPlacement)] {
    var orders: [(field: [String], descending: Bool, missing: MissingPlacement)] = []
    for order in query.orders where !orders.contains(where: { isSame($0.field, order.field) }) {
      orders.append(order)
    }
    let descending = query.orders.last?.descending ?? false
    let ranged = query.filters.flatMap(rangedFields).filter { !isSame($0, ModelQuery.name) }
    for field in ranged.sorted(by: { order(.string(written($0)), .string(written($1))) < 0 })
      + [ModelQuery.name]
    where !orders.contains(where: { isSame($0.field, field) }) {
      orders.append((field, descending, .excluded))
    }
    return orders
  }

  /// The path in the library's form, which orders fields with ranges.
  private func written(_ field: [String]) -> String {
    field.map { $0.utf8.allSatisfy { $0 < 0x80 } ? $0 : "`\($0)`" }.joined(separator: ".")
  }

  private func rangedFields(_ filter: ModelFilter) -> [[String]] {
    switch filter {
    case .compare(let field, let sign, _):
      ["!=", "<", "<=", ">", ">=", "prefix"].contains(sign) ? [field] : []
    case .list(let field, let sign, _): sign == "not in" ? [field] : []
    case .all(let filters), .any(let filters): filters.flatMap(rangedFields)
    }
  }

  private func precedes(
    _ left: [Value?], _ right: [Value?],
    _ orders: [(field: [String], descending: Bool, missing: MissingPlacement)]
  ) -> Int {
    for index in 0..<min(left.count, right.count, orders.count) {
      let missing = orders[index].missing == .first ? -1 : 1
      switch (left[index], right[index]) {
      case (nil, nil): continue
      case (nil, _): return missing
      case (_, nil): return -missing
      case (let left?, let right?):
        let comparison = order(left, right)
        if comparison != 0 { return orders[index].descending ? -comparison : comparison }
      }
    }
    return 0
  }

  /// The position of a type among the types.
  private func kind(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .boolean: 1
    case .integer, .double, .decimal: 2
    case .timestamp: 3
    case .string: 4
    case .bytes: 5
    case .reference: 6
    case .geoPoint: 7
    case .array: 8
    case .vector: 9
    case .map: 10
    case .blob: 11
    }
  }

  /// Which value comes first.
  package func order(_ left: Value, _ right: Value) -> Int {
    if kind(left) != kind(right) { return kind(left) - kind(right) }
    switch (left, right) {
    case (.boolean(let left), .boolean(let right)): return (left ? 1 : 0) - (right ? 1 : 0)
    case (.timestamp(let left), .timestamp(let right)):
      return sign(left.microsecondsSince1970, right.microsecondsSince1970)
    case (.string(let left), .string(let right)):
      return sequence(Array(left.utf8), Array(right.utf8), sign)
    case (.reference(let left), .reference(let right)):
      return sequence(left.segments, right.segments) {
        sequence(Array($0.utf8), Array($1.utf8), sign)
      }
    case (.array(let left), .array(let right)): return sequence(left, right, order)
    case (.blob(let left), .blob(let right)):
      return sequence(left.digest.bytes, right.digest.bytes, sign)
    case (.map(let left), .map(let right)):
      func entries(_ map: [String: Value]) -> [Value] {
        map.sorted { Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8)) }
          .flatMap { [.string($0.key), $0.value] }
      }
      return sequence(entries(left), entries(right), order)
    default:
      if case (.integer(let left), .integer(let right)) = (left, right) { return sign(left, right) }
      if case .decimal(let left) = left { return compare(left.decimal, right) }
      if case .decimal(let right) = right { return -compare(right.decimal, left) }
      if case .integer(let left) = left, let right = right.double { return compare(left, right) }
      if let left = left.double, case .integer(let right) = right { return -compare(right, left) }
      let (left, right) = (left.double ?? 0, right.double ?? 0)
      if left.isNaN || right.isNaN { return (left.isNaN ? 0 : 1) - (right.isNaN ? 0 : 1) }
      return sign(left, right)
    }
  }

  /// Exact: from 2^53 on a double is whole, and below that an integer is a double.
  private func compare(_ left: Int64, _ right: Double) -> Int {
    if right.isNaN { return 1 }
    if right.magnitude < 0x1p53, left.magnitude < 1 << 53 { return sign(Double(left), right) }
    if right.magnitude < 0x1p53 { return left < 0 ? -1 : 1 }
    return Int64(exactly: right).map { sign(left, $0) } ?? (right > 0 ? -1 : 1)
  }

  /// Exact: a double is written with all its digits.
  private func compare(_ left: Decimal, _ right: Value) -> Int {
    switch right {
    case .integer(let right): return sign(left, Decimal(right))
    case .decimal(let right): return sign(left, right.decimal)
    default: break
    }
    guard let right = right.double, !right.isNaN else { return 1 }
    if right.magnitude >= 1e100 { return right > 0 ? -1 : 1 }
    return compare("\(left)", String(format: "%.1074f", right))
  }

  /// Compares numbers that are written without exponents.
  private func compare(_ left: String, _ right: String) -> Int {
    func parts(_ text: String) -> (isNegative: Bool, whole: String, fraction: String) {
      let digits = text.drop { $0 == "-" }
      let whole = digits.prefix { $0 != "." }
      let fraction = digits.dropFirst(whole.count + 1)
      return (
        text.hasPrefix("-") && digits.contains { $0 != "0" && $0 != "." },
        String(whole.drop { $0 == "0" }),
        String(fraction) + String(repeating: "0", count: 1_100 - fraction.count)
      )
    }
    let (left, right) = (parts(left), parts(right))
    if left.isNegative != right.isNegative { return left.isNegative ? -1 : 1 }
    let order =
      left.whole.count != right.whole.count
      ? sign(left.whole.count, right.whole.count)
      : sign(left.whole + left.fraction, right.whole + right.fraction)
    return left.isNegative ? -order : order
  }

  private func sign<Number: Comparable>(_ left: Number, _ right: Number) -> Int {
    left < right ? -1 : left == right ? 0 : 1
  }

  private func sequence<Element>(
    _ left: [Element], _ right: [Element], _ order: (Element, Element) -> Int
  ) -> Int {
    for (left, right) in zip(left, right) {
      let comparison = order(left, right)
      if comparison != 0 { return comparison }
    }
    return left.count - right.count
  }
}
