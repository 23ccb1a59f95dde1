// What a pipeline means, written a second time and without any of the code it is to judge: rows are
// dictionaries in an array, and each stage makes another array. Only the order of values is shared
// with the other naive evaluator.

package import Ondol

/// An expression as a test draws it.
package indirect enum ModelExpression: Sendable {
  case constant(Value)
  case field([String])
  case call(String, [ModelExpression])
}

/// A stage as a test draws it. Names and functions are the protocol's.
package indirect enum ModelStage: Sendable {
  case filter(ModelExpression)
  case select([(name: String, expression: ModelExpression)])
  case add([(name: String, expression: ModelExpression)])
  case remove([String])
  case sort([(expression: ModelExpression, descending: Bool)])
  case offset(Int)
  case limit(Int)
  case aggregate(
    [(name: String, function: String, argument: ModelExpression?)],
    groups: [(name: String, expression: ModelExpression)])
  case unnest(field: String, alias: String, index: String?)
  /// All documents again, through these stages.
  case union([ModelStage])
  /// All documents whose field equals a value.
  case lookup(field: String, equals: ModelExpression, name: String)
}

/// Evaluates pipelines over all documents of one collection.
package struct NaivePipeline: Sendable {
  /// A value that cannot be computed.
  package struct Failure: Error {}

  package typealias Row = [String: Value]

  private let documents: [Row]
  private let values = NaiveEvaluator(documents: [])

  package init(_ documents: [Row]) {
    self.documents = documents
  }

  package func rows(_ stages: [ModelStage]) throws -> [Row] {
    try stages.reduce(documents) { rows, stage in try apply(stage, to: rows) }
  }

  private func apply(_ stage: ModelStage, to rows: [Row]) throws -> [Row] {
    switch stage {
    case .filter(let condition):
      return rows.filter { row in (try? value(condition, row)) == .some(.boolean(true)) }
    case .select(let columns):
      return try rows.map { row in
        var selected: Row = [:]
        for column in columns { selected[column.name] = try value(column.expression, row) }
        return selected
      }
    case .add(let columns):
      return try rows.map { row in
        var more = row
        for column in columns { more[column.name] = try value(column.expression, row) }
        return more
      }
    case .remove(let names): return rows.map { row in row.filter { !names.contains($0.key) } }
    case .sort(let orders): return try sorted(rows, orders)
    case .offset(let count): return Array(rows.dropFirst(count))
    case .limit(let count): return Array(rows.prefix(count))
    case .aggregate(let aggregates, let groups): return try grouped(rows, aggregates, groups)
    case .unnest(let field, let alias, let index):
      return rows.flatMap { row in unnested(row, field, alias, index) }
    case .union(let stages): return rows + (try self.rows(stages))
    case .lookup(let field, let expression, let name):
      return try rows.map { row in
        let sought = try value(expression, row)
        let found = documents.filter { document in
          guard let sought, let own = document[field] else { return false }
          return values.order(own, sought) == 0
        }
        return row.merging([name: .array(found.map { .map($0) })]) { $1 }
      }
    }
  }

  private func unnested(_ row: Row, _ field: String, _ alias: String, _ index: String?) -> [Row] {
    func made(with element: Value?, at place: Value) -> Row {
      var made = row
      made[alias] = element
      if let index { made[index] = place }
      return made
    }
    guard case .array(let elements)? = row[field] else {
      return [made(with: row[field], at: .null)]
    }
    var all: [Row] = []
    for (place, element) in elements.enumerated() {
      all.append(made(with: element, at: .integer(Int64(place))))
    }
    return all
  }

  private func compare(_ left: Value?, _ right: Value?) -> Int {
    guard let left else { return right == nil ? 0 : -1 }
    guard let right else { return 1 }
    return values.order(left, right)
  }

  private func sorted(
    _ rows: [Row], _ orders: [(expression: ModelExpression, descending: Bool)]
  ) throws -> [Row] {
    let keyed = try rows.map { row in (row, try orders.map { try value($0.expression, row) }) }
    return keyed.enumerated().sorted { left, right in
      for (place, order) in orders.enumerated() {
        let comparison = compare(left.element.1[place], right.element.1[place])
        if comparison != 0 { return order.descending ? comparison > 0 : comparison < 0 }
      }
      return left.offset < right.offset
    }.map(\.element.0)
  }

  // MARK: - Groups

  private func grouped(
    _ rows: [Row], _ aggregates: [(name: String, function: String, argument: ModelExpression?)],
    _ groups: [(name: String, expression: ModelExpression)]
  ) throws -> [Row] {
    var found: [(key: [Value], rows: [Row])] = groups.isEmpty ? [([], [])] : []
    for row in rows {
      let key = try groups.map { try value($0.expression, row) ?? .null }
      let place = found.firstIndex { known in
        zip(known.key, key).allSatisfy { values.order($0, $1) == 0 }
      }
      if let place { found[place].rows.append(row) } else { found.append((key, [row])) }
    }
    return found.map { group in
      var made: Row = [:]
      for (group, value) in zip(groups, group.key) { made[group.name] = value }
      for aggregate in aggregates {
        let all = group.rows.map { row in
          aggregate.argument.flatMap { argument in (try? value(argument, row)) ?? nil }
        }
        made[aggregate.name] = result(
          aggregate.function, all.compactMap { $0 }.filter { $0 != .null },
          rows: aggregate.argument == nil ? all.count : nil)
      }
      return made
    }
  }

  /// - Parameter rows: the number of rows, for a count of them.
  private func result(_ function: String, _ present: [Value], rows: Int?) -> Value {
    switch function {
    case "count": return .integer(Int64(rows ?? present.count))
    case "count_if": return .integer(Int64(present.filter { $0 == .boolean(true) }.count))
    case "count_distinct":
      var known: [Value] = []
      for value in present where !known.contains(where: { values.order($0, value) == 0 }) {
        known.append(value)
      }
      return .integer(Int64(known.count))
    case "minimum": return present.min { values.order($0, $1) < 0 } ?? .null
    case "maximum": return present.max { values.order($0, $1) < 0 } ?? .null
    default:
      let numbers = present.compactMap { $0.double ?? $0.integer.map(Double.init) }
      let sum = numbers.reduce(0, +)
      if function == "average" {
        return numbers.isEmpty ? .null : .double(sum / Double(numbers.count))
      }
      return present.contains { $0.double != nil } ? .double(sum) : .integer(Int64(sum))
    }
  }

  // MARK: - Expressions

  package func value(_ expression: ModelExpression, _ row: Row) throws -> Value? {
    switch expression {
    case .constant(let value): return value
    case .field(let names):
      return names.dropFirst().reduce(row[names[0]]) { value, name in value?[name] }
    case .call(let name, let arguments): return try call(name, arguments, row)
    }
  }

  private func call(_ name: String, _ arguments: [ModelExpression], _ row: Row) throws -> Value? {
    func argument(_ place: Int) throws -> Value? { try value(arguments[place], row) }
    switch name {
    case "and", "or": return try connected(arguments, row, decides: name == "or")
    case "not": return try truth(try argument(0)).map { .boolean(!$0) } ?? .null
    case "conditional":
      return try argument(try truth(try argument(0)) == true ? 1 : 2)
    case "exists": return .boolean(try argument(0) != nil)
    case "is_absent": return .boolean(try argument(0) == nil)
    case "if_absent": return try argument(0) ?? argument(1)
    case "is_error": return .boolean((try? argument(0)) == nil && fails(arguments[0], row))
    case "if_error": return fails(arguments[0], row) ? try argument(1) : try argument(0)
    default: return try call(name, arguments.map { try value($0, row) })
    }
  }

  private func fails(_ expression: ModelExpression, _ row: Row) -> Bool {
    do {
      _ = try value(expression, row)
      return false
    } catch {
      return true
    }
  }

  private func truth(_ value: Value?) throws -> Bool? {
    guard let value, value != .null else { return nil }
    guard let truth = value.boolean else { throw Failure() }
    return truth
  }

  private func connected(
    _ arguments: [ModelExpression], _ row: Row, decides: Bool
  ) throws -> Value? {
    var (failed, unknown) = (false, false)
    for argument in arguments {
      do {
        guard let truth = try truth(value(argument, row)) else {
          unknown = true
          continue
        }
        if truth == decides { return .boolean(decides) }
      } catch {
        failed = true
      }
    }
    if failed { throw Failure() }
    return unknown ? .null : .boolean(!decides)
  }

  private func call(_ name: String, _ values: [Value?]) throws -> Value? {
    func isNaN(_ value: Value) -> Bool { value.double?.isNaN ?? false }
    /// The order of two values that can be compared; nil for all others.
    func order() -> Int? {
      guard let left = values[0], let right = values[1], left != .null, right != .null,
        !isNaN(left), !isNaN(right), sameType(left, right)
      else { return nil }
      return self.values.order(left, right)
    }
    let isEqual =
      values.count == 2
      && values[0].flatMap { left in
        values[1].map { self.values.order(left, $0) == 0 }
      } ?? false
    switch name {
    case "equal": return .boolean(isEqual)
    case "not_equal": return .boolean(!isEqual)
    case "less_than": return .boolean(order().map { $0 < 0 } ?? false)
    case "greater_than": return .boolean(order().map { $0 > 0 } ?? false)
    case "less_than_or_equal", "greater_than_or_equal":
      // What is equal without an order: null and null, NaN and NaN.
      guard let order = order() else {
        return .boolean(isEqual)
      }
      return .boolean(name == "less_than_or_equal" ? order <= 0 : order >= 0)
    case "equal_any":
      return .boolean(
        values[1]?.array?.contains { element in
          values[0].map { self.values.order($0, element) == 0 } ?? false
        } ?? false)
    case "maximum", "minimum":
      let present = values.compactMap { $0 }.filter { $0 != .null }
      let sorted = present.sorted { self.values.order($0, $1) < 0 }
      return (name == "maximum" ? sorted.last : sorted.first) ?? .null
    case "array_contains":
      guard let list = values[0], list != .null, let sought = values[1] else { return .null }
      guard let elements = list.array else { throw Failure() }
      return .boolean(elements.contains { self.values.order($0, sought) == 0 })
    default: break
    }
    let present = values.compactMap { $0 }.filter { $0 != .null }
    return present.count < values.count ? .null : try plain(name, present)
  }

  private func sameType(_ left: Value, _ right: Value) -> Bool {
    func isNumber(_ value: Value) -> Bool { value.integer != nil || value.double != nil }
    if isNumber(left) || isNumber(right) { return isNumber(left) && isNumber(right) }
    switch (left, right) {
    case (.boolean, .boolean), (.string, .string), (.array, .array), (.map, .map): return true
    default: return false
    }
  }

  /// Functions of values that are all there.
  private func plain(_ name: String, _ values: [Value]) throws -> Value {
    switch name {
    case "array_length":
      guard let elements = values[0].array else { throw Failure() }
      return .integer(Int64(elements.count))
    case "char_length":
      guard let text = values[0].string else { throw Failure() }
      return .integer(Int64(text.unicodeScalars.count))
    case "string_concat":
      let texts = values.compactMap(\.string)
      guard texts.count == values.count else { throw Failure() }
      return .string(texts.reduce("", +))
    default: return try arithmetic(name, values)
    }
  }

  private func arithmetic(_ name: String, _ values: [Value]) throws -> Value {
    if case (.integer(let left), .integer(let right)) = (values[0], values[1]) {
      switch name {
      case "add": return .integer(left + right)
      case "subtract": return .integer(left - right)
      case "multiply": return .integer(left * right)
      default:
        guard right != 0 else { throw Failure() }
        return .integer(left / right)
      }
    }
    let numbers = values.compactMap { $0.double ?? $0.integer.map(Double.init) }
    guard numbers.count == 2 else { throw Failure() }
    switch name {
    case "add": return .double(numbers[0] + numbers[1])
    case "subtract": return .double(numbers[0] - numbers[1])
    case "multiply": return .double(numbers[0] * numbers[1])
    default: return .double(numbers[0] / numbers[1])
    }
  }
}
