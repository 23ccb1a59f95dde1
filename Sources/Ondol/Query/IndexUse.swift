// One index, used for conditions that must all be met: which of its fields are fixed, which one has
// a range, and whether a walk over it gives the query's order. Pure; a part of the planner.

internal import OndolEngine

/// How an index serves a part of a query.
struct IndexUse {
  var scan: IndexScan
  /// Whether the field after the fixed ones is bounded.
  private(set) var hasRange = false
  /// The conditions that the ranges guarantee.
  private(set) var answered: [FieldFilter] = []

  private let part: PlannerPart
  private let prefix: [UInt8]
  /// The key prefixes of rows with the fixed values.
  private var prefixes: [[UInt8]]
  /// The first field that is fixed to several values.
  private var sweptFrom: Int?
  private var isNextPresent = false
  /// Whether null is one of the values that a field is fixed to.
  private var isFixedToNull = false

  var fixed: Int { scan.fixed }
  private var index: IndexDefinition { scan.index }

  /// Returns nil when the index cannot serve the part at all.
  init?(of index: IndexDefinition, _ part: PlannerPart) {
    let naming = part.planner.naming
    let isOfGroup = naming.collection == nil
    guard index.kind.isOfGroup == isOfGroup || naming.pattern.ancestorCount == 0 else {
      return nil
    }
    if let condition = index.kind.condition, !part.implies(condition) { return nil }
    self.part = part
    prefix = naming.prefix(ofRowsIn: index)
    prefixes = [prefix]
    scan = IndexScan(index: index, ranges: [], prefixLength: prefix.count)
    fixFields()
    // A document has a row for each element, so the query must ask for one of them.
    if index.fields.dropFirst(fixed).contains(where: \.isOfElements) { return nil }
    if let condition = index.kind.condition { answer(condition) }
    setRanges()
  }

  // MARK: - Fixed fields

  private mutating func fixFields() {
    for field in index.fields {
      guard let (filter, values) = points(for: field) else { break }
      fix(values, field, filter)
    }
  }

  /// The values `field` is fixed to, sorted. For elements, the values of which an array must have
  /// one.
  private func points(for field: IndexField) -> (FieldFilter, [Value])? {
    let filters = part.filters(on: field.field)
    if field.isOfElements {
      for filter in filters {
        if case .arrayContains(let element) = filter.condition { return (filter, [element]) }
      }
      for filter in filters {
        guard case .arrayContainsAny(let elements) = filter.condition,
          sweptFrom == nil || elements.count == 1
        else { continue }
        return (filter, elements)
      }
      return nil
    }
    for filter in filters {
      if case .equal(let operand) = filter.condition { return (filter, [operand]) }
    }
    for filter in filters {
      guard case .isIn(let operands) = filter.condition, sweptFrom == nil || operands.count == 1
      else { continue }
      return (filter, operands)
    }
    return nil
  }

  private mutating func fix(_ values: [Value], _ field: IndexField, _ filter: FieldFilter) {
    if values.count > 1 {
      sweptFrom = fixed
      scan.isRepeating = field.isOfElements
    }
    if values.contains(.null) { isFixedToNull = true }
    let (longer, isCut) = prefixes.appending(values, descending: field.descending)
    prefixes = longer
    if !isCut { answered.append(filter) }
    scan.fixed += 1
  }

  /// Whether all fields are fixed to one value each, so that rows come in the order of documents.
  var isOnePoint: Bool { fixed == index.fields.count && scan.ranges.count == 1 && sweptFrom == nil }

  private mutating func answer(_ condition: FilterTree) {
    switch condition {
    case .all(let trees): for tree in trees { answer(tree) }
    case .field(let filter): answered.append(filter)
    case .any: break
    }
  }

  // MARK: - Ranges

  private mutating func setRanges() {
    let next = fixed < index.fields.count ? index.fields[fixed] : nil
    let filters = next.map { part.filters(on: $0.field) } ?? []
    isNextPresent = next.map { part.needs($0.field) } ?? false
    hasRange = filters.contains(where: \.isRange)
    var inexact: [FieldFilter] = []
    let ranges = prefixes.map { prefix in
      var range = KeyRange(prefix: prefix)
      guard let next, isNextPresent else { return range }
      range = KeyBounds(presentBehind: prefix, descending: next.descending).range
      for filter in filters {
        let bounds = KeyBounds(
          of: filter.condition, behind: prefix, descending: next.descending, isID: false)
        range = range.clamped(to: bounds.range)
        if !bounds.isExact, !inexact.contains(filter) { inexact.append(filter) }
      }
      return range
    }
    answered += filters.filter { !inexact.contains($0) }
    // Values that are cut at the same position share their range.
    scan.ranges = KeyRange.normalized(ranges)
  }

  /// Whether every row in the ranges belongs to a document of the result.
  var isExact: Bool {
    guard !scan.isRepeating else { return false }
    let count = fixed + (isNextPresent ? 1 : 0)
    let present = index.fields.prefix(count).map(\.field)
    return part.isExact(answered: answered, present: present)
  }

  /// Rows in the ranges, as far as earlier queries learned; nil when unknown.
  var rows: Double? {
    if index.kind.isUnique, fixed == index.fields.count {
      // Any number of documents may have null, and the other values do not show how many.
      if index.kind.nullsDistinct, isFixedToNull { return nil }
      return Double(prefixes.count)
    }
    return part.planner.statistics[index.keyspace, fixed].map {
      $0 * Double(max(1, prefixes.count))
    }
  }

  // MARK: - Order

  /// The orders in which rows are walked, after the fields that have one value.
  private var walked: [SortOrder] {
    // Rows of several elements are in no order.
    if scan.isRepeating { return [] }
    var walked: [SortOrder] = []
    for field in index.fields[walkedFrom...] where !field.isOfElements {
      let order = SortOrder(field: field.field, descending: field.descending)
      if !isConstant(order.field) { walked.append(order) }
      // No two documents have the same key, and documents without a text have no other value
      // either.
      if index.kind.isUnique, index.fields.count == 1, field.comparison != nil {
        walked.append(SortOrder(field: order.field.plain, descending: field.descending))
      }
    }
    walked.append(SortOrder(field: .documentID, descending: index.idDescending))
    return walked
  }

  /// Whether all rows in the ranges have the same value in the field.
  private func isConstant(_ field: QueryField) -> Bool {
    guard field != .documentID else { return false }
    if part.isSingleValued(field) { return true }
    return index.fields[..<walkedFrom].contains { fixed in
      !fixed.isOfElements && field == fixed.field
    }
  }

  /// The first of the walked fields: all fields before it have one value, or one element.
  private var walkedFrom: Int { sweptFrom ?? fixed }

  /// Whether walking the index gives the query's order: false forwards, true backwards, nil not at
  /// all.
  func order() -> Bool? {
    let wanted = part.planner.query.orders.filter { !isConstant($0.field) }
    let walked = walked
    guard wanted.count <= walked.count, let first = wanted.first else { return nil }
    let isReversed = walked[0].descending != first.descending
    for (position, (walked, wanted)) in zip(walked, wanted).enumerated() {
      guard walked.field == wanted.field,
        (walked.descending != wanted.descending) == isReversed,
        isPlacedAsWalked(wanted, isFirst: position == 0)
      else { return nil }
    }
    return isReversed
  }

  /// Whether documents without the field come where the order wants them. The mark of a missing
  /// field comes before all values. A document without the index's first field has no row.
  private func isPlacedAsWalked(_ order: SortOrder, isFirst: Bool) -> Bool {
    if order.missing == .excluded || part.needs(order.field) { return true }
    guard order.field != .documentID, !order.field.isOfSameField(as: index.fields[0].field) else {
      return false
    }
    return order.missing == (order.descending ? .last : .first)
  }

  // MARK: - Places

  /// Leaves out the rows before the start of the result and after its end. Only for an index that
  /// gives the query's order.
  mutating func clampToPlaces(isReversed: Bool) {
    let query = part.planner.query
    // With several values before it, the position may be in each of their ranges, or in one of
    // them. In either case, whole keys can clamp the ranges only when one prefix leads to all.
    guard let prefix = commonPrefix else { return }
    for (bound, isStart) in [(query.start, true), (query.end, false)] {
      guard let bound, let (key, isWhole) = key(of: bound, behind: prefix) else { continue }
      var clamp = KeyRange(prefix: prefix)
      if isStart != isReversed {
        clamp.lower = bound.isIncluded || !isWhole ? key : key + [KeyCoding.afterAll]
      } else {
        clamp.upper = bound.isIncluded || !isWhole ? key + [KeyCoding.afterAll] : key
      }
      scan.ranges = scan.ranges.map { $0.clamped(to: clamp) }.filter { !$0.isEmpty }
    }
  }

  /// What all rows begin with, up to the first walked component.
  private var commonPrefix: [UInt8]? {
    var writer = KeyWriter(prefix)
    for field in index.fields[..<walkedFrom] {
      guard let (_, values) = points(for: field), values.count == 1 else { return nil }
      writer.append(values[0], descending: field.descending)
    }
    return writer.bytes
  }

  /// The key of a bound, as far as its values go, and whether no value had to be cut.
  private func key(of bound: NormalQuery.Bound, behind prefix: [UInt8]) -> ([UInt8], Bool)? {
    let query = part.planner.query
    let fields = Dictionary(
      zip(query.orders.map(\.field), bound.keys), uniquingKeysWith: { first, _ in first })
    // The bound must also have the constant values; otherwise the matcher decides.
    var constants = part.singleValues
    for field in index.fields[..<walkedFrom] where !field.isOfElements {
      if let (_, values) = points(for: field), values.count == 1 {
        constants.append((field.field, values[0]))
      }
    }
    for (field, value) in constants {
      if let key = fields[field], key != value { return nil }
    }
    var writer = KeyWriter(prefix)
    for field in index.fields[walkedFrom...] {
      guard !field.isOfElements, let key = fields[field.field] else {
        // A constant field between walked ones. Otherwise the bound gives no more components.
        guard let (_, values) = points(for: field), values.count == 1 else {
          return writer.bytes.count > prefix.count ? (writer.bytes, true) : nil
        }
        writer.append(values[0], descending: field.descending)
        continue
      }
      guard let value = key else {
        writer.append(raw: [
          field.descending ? ~IndexDefinition.missing : IndexDefinition.missing
        ])
        continue
      }
      if writer.append(value, descending: field.descending) { return (writer.bytes, false) }
    }
    guard let name = fields[.documentID] ?? nil else {
      return writer.bytes.count > prefix.count ? (writer.bytes, true) : nil
    }
    // The key of a unique row does not identify its document.
    guard let tail = tail(of: name) else { return (writer.bytes, false) }
    writer.append(raw: tail)
    return (writer.bytes, query.orders.last?.field == .documentID)
  }

  /// The tail of a document's rows; nil for rows without tails.
  private func tail(of name: Value) -> [UInt8]? {
    let naming = part.planner.naming
    guard !index.kind.isUnique, let key = naming.key(of: name) else { return nil }
    let mask: UInt8 = index.idDescending ? 0xff : 0
    return key.dropFirst(naming.prefix.count).map { $0 ^ mask }
  }
}

extension FieldFilter {
  /// Whether the condition bounds the values from above or below.
  fileprivate var isRange: Bool {
    switch condition {
    case .less, .lessOrEqual, .greater, .greaterOrEqual, .hasPrefix: true
    default: false
    }
  }
}

extension [[UInt8]] {
  /// Each of the keys followed by each of the values, and whether a value was too long for a key.
  func appending(_ values: [Value], descending: Bool) -> (keys: [[UInt8]], isCut: Bool) {
    var isCut = false
    let keys = flatMap { key in
      values.map { value in
        var writer = KeyWriter(key)
        if writer.append(value, descending: descending) { isCut = true }
        return writer.bytes
      }
    }
    return (keys, isCut)
  }
}

extension DocumentNaming {
  /// The prefix of the index rows that belong to the queried documents.
  func prefix(ofRowsIn index: IndexDefinition) -> [UInt8] {
    index.keyspace.prefix + prefix.dropFirst(Keyspace.prefixLength)
  }
}
