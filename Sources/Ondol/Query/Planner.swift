// Chooses how a query finds its documents: stage 2 of the read path. Pure: a shape and the indexes
// that are complete go in, a plan comes out, and `explain` prints it. A plan only ever promises
// candidates; the executor asks the shape of each of them, so a wide range costs time and never a
// wrong result.
//
// What serves a query, best first:
// 1. ids that are named: one lookup each;
// 2. an index whose first fields are compared with `==` (or one of them with `in`: one range a
//    value), then at most one field with a range, then fields the result is ordered by;
// 3. the collection's documents in the order of their ids, from the first to the last id asked for.
//
// An index holds every document that has its first field, with a mark where a later one is missing.
// So an index serves a query that needs a prefix of its fields, and no index serves one that does
// not need the first.

internal import OndolEngine

/// A range of keys, without its upper end.
struct KeyRange: Sendable, Hashable {
  var lower: [UInt8]
  var upper: [UInt8]
}

/// How a query finds its documents.
struct Plan: Sendable {
  enum Access: Sendable {
    /// No document can match.
    case nothing
    /// Lookups by id, ids sorted.
    case lookups([String])
    /// The documents whose keys are in the range.
    case scan(KeyRange, reversed: Bool)
    /// The index rows in the ranges, which are sorted and do not overlap.
    case index(IndexDefinition, [KeyRange], reversed: Bool)
  }

  var access: Access
  /// Whether the candidates come in the order the query wants.
  var isInOrder: Bool
  /// Fields an index should have to serve the query, when none does.
  var suggestion: [IndexField]?
}

/// Makes plans.
struct Planner {
  let shape: QueryShape
  /// What the keys of the collection's documents begin with.
  let documentPrefix: [UInt8]
  /// The indexes of the pattern that are complete.
  let indexes: [IndexDefinition]

  func plan() -> Plan {
    if shape.limit == 0 || shape.filters.contains(where: \.matchesNothing) {
      return Plan(access: .nothing, isInOrder: true)
    }
    if let ids = namedIDs() {
      return Plan(
        access: .lookups(ids), isInOrder: shape.completeOrders.first?.isAscendingID ?? false)
    }
    if let best = indexes.compactMap(candidate).max(by: { $0.score < $1.score }) {
      return best.plan
    }
    return scan()
  }

  /// The ids the query names, sorted, when it names some.
  private func namedIDs() -> [String]? {
    for filter in shape.filters where filter.field == .documentID {
      switch filter.condition {
      case .equal(let id): return id.string.map { [$0] }
      case .isIn(let ids): return ids.compactMap(\.string)
      default: continue
      }
    }
    return nil
  }

  private func scan() -> Plan {
    var range = KeyRange(lower: documentPrefix, upper: documentPrefix + [KeyCoding.afterAll])
    for filter in shape.filters where filter.field == .documentID {
      let bounds = Bounds(of: filter, below: documentPrefix, descending: false)
      range.lower = later(range.lower, bounds.lower)
      range.upper = earlier(range.upper, bounds.upper)
    }
    let first = shape.completeOrders.first
    let isInOrder = first?.field == .documentID
    return Plan(
      access: .scan(range, reversed: isInOrder && first?.descending == true), isInOrder: isInOrder,
      suggestion: suggestion())
  }

  /// Equalities, one range or the orders: what an index for this query would need.
  private func suggestion() -> [IndexField]? {
    var fields: [IndexField] = []
    for filter in shape.filters {
      guard case .field(let names) = filter.field else { continue }
      switch filter.condition {
      case .equal, .isIn: fields.append(IndexField(names))
      default: continue
      }
    }
    let orders = shape.completeOrders.filter { order in
      !fields.contains { order.field == .field($0.names) }
    }
    for order in orders {
      guard case .field(let names) = order.field else { break }
      fields.append(IndexField(names, descending: order.descending))
    }
    return fields.isEmpty ? nil : fields
  }
}

// MARK: - Indexes

extension Planner {
  private struct Candidate {
    var plan: Plan
    /// Fields fixed by equalities count most, then a range, then not having to sort.
    var score: Int
  }

  /// What `index` can do for the query; nil when nothing.
  private func candidate(_ index: IndexDefinition) -> Candidate? {
    var prefixes = [indexPrefix(index)]
    var fixed = 0
    var sweptFrom: Int?
    for field in index.fields {
      guard let points = points(for: field, allowMany: sweptFrom == nil) else { break }
      if points.count > 1 { sweptFrom = fixed }
      prefixes = prefixes.flatMap { prefix in
        points.map { value in
          var writer = KeyWriter(prefix)
          writer.append(value, descending: field.descending)
          return writer.bytes
        }
      }
      fixed += 1
    }
    let order = order(of: index, fixed: fixed, sweptFrom: sweptFrom)
    let next = fixed < index.fields.count ? index.fields[fixed] : nil
    let hasRange =
      next.map { field in filters(on: field.names).contains(where: \.isRange) } ?? false
    guard fixed > 0 || hasRange || (order != nil && needsFirstField(of: index)) else { return nil }

    // The values are sorted, but their keys are not when the component is a descending one.
    var ranges = prefixes.map { range(behind: $0, next: next) }
    ranges.sort { $0.lower.bytes.compare($1.lower.bytes) < 0 }
    var distinct: [KeyRange] = []
    for range in ranges where range.lower.bytes.compare(range.upper.bytes) < 0 {
      // Values that are cut at the same place share their range.
      if distinct.last != range { distinct.append(range) }
    }
    let plan = Plan(
      access: .index(index, distinct, reversed: order ?? false), isInOrder: order != nil)
    let score = fixed * 8 + (hasRange ? 4 : 0) + (order != nil ? 2 : 0)
    return Candidate(plan: plan, score: score)
  }

  private func indexPrefix(_ index: IndexDefinition) -> [UInt8] {
    index.keyspace.prefix + documentPrefix.dropFirst(4)
  }

  private func filters(on names: FieldNames) -> [FieldFilter] {
    shape.filters.filter { $0.field == .field(names) }
  }

  /// Whether a document must have the index's first field to be in the result.
  private func needsFirstField(of index: IndexDefinition) -> Bool {
    guard let first = index.fields.first else { return false }
    return !filters(on: first.names).isEmpty
      || shape.orders.contains { $0.field == .field(first.names) }
  }

  /// The values `field` is fixed to, sorted.
  private func points(for field: IndexField, allowMany: Bool) -> [Value]? {
    for filter in filters(on: field.names) {
      switch filter.condition {
      case .equal(let operand): return [operand]
      case .isIn(let operands) where allowMany || operands.count == 1: return operands
      default: continue
      }
    }
    return nil
  }

  /// Whether walking the index gives the query's order: false forwards, true backwards, nil not at
  /// all.
  ///
  /// The first `fixed` fields have one value each, except that the field at `sweptFrom` has
  /// several, which are walked in order.
  private func order(of index: IndexDefinition, fixed: Int, sweptFrom: Int?) -> Bool? {
    let walkFrom = sweptFrom ?? fixed
    let constant = index.fields[..<walkFrom].map(\.names) + singleValued
    func isConstant(_ field: QueryField) -> Bool {
      constant.contains { field == .field($0) }
    }
    let walked =
      index.fields[walkFrom...].map {
        SortOrder(field: .field($0.names), descending: $0.descending)
      }.filter { !isConstant($0.field) }
      + [SortOrder(field: .documentID, descending: index.idDescending)]
    let wanted = shape.completeOrders.filter { !isConstant($0.field) }
    guard wanted.count <= walked.count, let first = wanted.first else { return nil }
    let reversed = walked[0].descending != first.descending
    for (walked, wanted) in zip(walked, wanted) {
      guard walked.field == wanted.field, (walked.descending != wanted.descending) == reversed
      else {
        return nil
      }
    }
    return reversed
  }

  /// Fields that have one value in all results, so that ordering by them changes nothing.
  private var singleValued: [FieldNames] {
    shape.filters.compactMap { filter in
      guard case .equal = filter.condition, case .field(let names) = filter.field else {
        return nil
      }
      return names
    }
  }

  /// The rows behind `prefix` that can match what is asked of the `next` field.
  private func range(behind prefix: [UInt8], next: IndexField?) -> KeyRange {
    var range = KeyRange(lower: prefix, upper: prefix + [KeyCoding.afterAll])
    guard let next else { return range }
    for filter in filters(on: next.names) {
      let bounds = Bounds(of: filter, below: prefix, descending: next.descending)
      range.lower = later(range.lower, bounds.lower)
      range.upper = earlier(range.upper, bounds.upper)
    }
    return range
  }
}

private func later(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
  left.bytes.compare(right.bytes) >= 0 ? left : right
}

private func earlier(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
  left.bytes.compare(right.bytes) <= 0 ? left : right
}

/// The keys, behind a prefix, of the values one condition lets through, perhaps with some more.
private struct Bounds {
  var lower: [UInt8]
  var upper: [UInt8]

  private let isID: Bool

  init(of filter: FieldFilter, below prefix: [UInt8], descending: Bool) {
    isID = filter.field == .documentID
    lower = prefix
    upper = prefix + [KeyCoding.afterAll]
    switch filter.condition {
    case .equal(let operand): set(operand, operand, prefix, descending)
    case .less(let operand), .lessOrEqual(let operand): set(nil, operand, prefix, descending)
    case .greater(let operand), .greaterOrEqual(let operand): set(operand, nil, prefix, descending)
    case .isIn(let operands):
      if let first = operands.first, let last = operands.last {
        setSpan(from: first, to: last, prefix, descending)
      }
    case .notEqual, .notIn, .arrayContains, .arrayContainsAny: break
    }
  }

  /// From `low` to `high`, both included: the rows at an open end are few, and the executor looks
  /// again. Where one is nil, the other's type is the end.
  private mutating func set(
    _ low: Value?, _ high: Value?, _ prefix: [UInt8], _ descending: Bool
  ) {
    guard let operand = low ?? high else { return }
    let tags = KeyCoding.tags(ofTypeOf: operand)
    let mask: UInt8 = descending ? 0xff : 0
    // The complement turns the ends around.
    let first = descending ? high : low
    let last = descending ? low : high
    let firstTag = (descending ? tags.upperBound : tags.lowerBound) ^ mask
    let lastTag = (descending ? tags.lowerBound : tags.upperBound) ^ mask
    lower = first.map { component($0, prefix, descending) } ?? (prefix + [firstTag])
    upper =
      last.map { component($0, prefix, descending) + [KeyCoding.afterAll] }
      ?? (prefix + [lastTag + 1])
  }

  /// From `low` to `high` of possibly different types.
  private mutating func setSpan(
    from low: Value, to high: Value, _ prefix: [UInt8], _ descending: Bool
  ) {
    let ends = [component(low, prefix, descending), component(high, prefix, descending)]
    lower = descending ? ends[1] : ends[0]
    upper = (descending ? ends[0] : ends[1]) + [KeyCoding.afterAll]
  }

  private func component(_ value: Value, _ prefix: [UInt8], _ descending: Bool) -> [UInt8] {
    var writer = KeyWriter(prefix)
    if isID, let id = value.string {
      writer.append(id: id, descending: descending)
    } else {
      writer.append(value, descending: descending)
    }
    return writer.bytes
  }
}

extension FieldFilter {
  /// Whether no document at all can meet the condition.
  var matchesNothing: Bool {
    switch condition {
    case .isIn(let operands), .arrayContainsAny(let operands): operands.isEmpty
    case .notIn(let operands): operands.containsSorted(.null)
    default: false
    }
  }

  /// Whether the condition bounds the values from above or below.
  fileprivate var isRange: Bool {
    switch condition {
    case .less, .lessOrEqual, .greater, .greaterOrEqual: true
    default: false
    }
  }
}

extension SortOrder {
  fileprivate var isAscendingID: Bool { field == .documentID && !descending }
}
