// Caches plans. Apps repeat a few queries with other values, and planning one takes longer than
// looking up its result. The cache keeps not a plan but its decisions: which index, walked in which
// direction. Each query makes the ranges from its own values.
//
// The cache holds the plans of point queries: `==`, or `in` once, on the first fields of one index,
// in one collection, in any order with nothing after the document's id, and without a start. It
// holds only plans that had no alternative. When two indexes can serve, the results of earlier
// queries decide between them, and later ones may decide otherwise. A cached plan belongs to one
// generation of the family's row in the catalog. Every change of an index, a field's name or a
// declaration raises that generation.

internal import OndolEngine

/// The comparisons of a point query, without the values.
struct PointComparison: Sendable, Hashable {
  var field: QueryField
  /// Whether the field is compared with several values.
  var isList: Bool
}

extension [PointComparison] {
  /// Returns nil when one of the conditions is not `==`, or `in` with several values, on a field.
  init?(_ conditions: [FilterTree]) {
    self.init()
    reserveCapacity(conditions.count)
    for tree in conditions {
      guard case .field(let filter) = tree, filter.field != .documentID else { return nil }
      switch filter.condition {
      case .equal: append(PointComparison(field: filter.field, isList: false))
      case .isIn(let values) where values.count > 1:
        append(PointComparison(field: filter.field, isList: true))
      default: return nil
      }
    }
  }
}

/// The form of a point query.
private struct PointForm: Sendable, Hashable {
  var keyspace: Keyspace
  var comparisons: [PointComparison]
  var orders: [SortOrder]

  /// Returns nil when the query has another form.
  init?(_ query: NormalQuery, _ keyspace: Keyspace) {
    // A field that must exist and is in no order makes another plan, and is not in the form.
    guard case .collection = query.source, query.start == nil, query.end == nil, query.limit > 0,
      query.required.allSatisfy(query.orders.orders(by:)),
      let comparisons = [PointComparison](query.conjuncts), !comparisons.isEmpty,
      comparisons.count(where: \.isList) <= 1
    else { return nil }
    self.keyspace = keyspace
    self.comparisons = comparisons
    orders = query.orders
  }
}

/// The decisions for a point query.
struct PointPlan: Sendable {
  /// The index, and how it is walked. Its ranges and their prefix are those of one query.
  private let scan: IndexScan
  /// For each of the first fields of the index, the place of the comparison that fixes it.
  private var comparisons: [Int]
  /// Whether documents must have the field after those.
  private let needsNext: Bool
  /// Whether the rows come in the query's order.
  let isInOrder: Bool

  /// Returns nil when the plan is of another kind.
  fileprivate init?(_ plan: Plan, _ form: PointForm, required: [QueryField]) {
    guard plan.isExact, plan.ways.count == 1, case .index(let scan) = plan.ways[0] else {
      return nil
    }
    let fields = scan.index.fields
    guard scan.fixed == form.comparisons.count, !scan.index.kind.isOfElements,
      scan.index.kind.condition == nil
    else { return nil }
    comparisons = []
    for field in fields.prefix(scan.fixed) {
      guard let place = form.comparisons.firstIndex(where: { $0.field == field.field }),
        !comparisons.contains(place)
      else { return nil }
      comparisons.append(place)
    }
    self.scan = scan
    let next = fields.dropFirst(scan.fixed).first
    needsNext = next.map { required.contains(fieldOf: $0.field) } ?? false
    isInOrder = plan.isInOrder
  }

  /// Whether a result in these orders can begin at values of the first `count` of them. It can when
  /// each query is one range whose rows are in the order of those values.
  func mayBegin(atValuesOf count: Int, _ orders: [SortOrder]) -> Bool {
    let fields = scan.index.fields.dropFirst(scan.fixed).prefix(count)
    return isInOrder && count > 0 && fields.count == count && count <= orders.count
      && zip(fields, orders).allSatisfy { $0.field == $1.field }
  }

  /// The plan for the values of a query; nil when one of them is too long for a key.
  fileprivate func plan(for query: NormalQuery, _ naming: DocumentNaming) -> Plan? {
    scan(for: query.conjuncts, naming).map {
      Plan(ways: [.index($0)], isInOrder: isInOrder, isExact: true)
    }
  }

  /// The rows of the index for the values in `conditions`, which must have the cached form; nil
  /// when one of the values is too long for a key.
  ///
  /// - Parameter start: the values at or after which the result begins, if it has a start.
  func scan(
    for conditions: [FilterTree], _ naming: DocumentNaming,
    from start: (values: [Value], isIncluded: Bool)? = nil
  ) -> IndexScan? {
    // Collections of one pattern share the form, and have ids of other lengths above them.
    let prefix = naming.prefix(ofRowsIn: scan.index)
    var keys = [KeyWriter(prefix)]
    for (field, place) in zip(scan.index.fields, comparisons) {
      guard case .field(let filter) = conditions[place] else { return nil }
      if case .equal(let operand) = filter.condition {
        for index in keys.indices
        where keys[index].append(operand, descending: field.descending) {
          return nil
        }
        continue
      }
      var longer: [KeyWriter] = []
      for key in keys {
        for operand in filter.condition.operands {
          var key = key
          if key.append(operand, descending: field.descending) { return nil }
          longer.append(key)
        }
      }
      keys = longer
    }
    var scan = scan
    scan.ranges =
      keys.count == 1
      ? [range(behind: keys[0].bytes)]
      : KeyRange.normalized(keys.map { range(behind: $0.bytes) })
    scan.prefixLength = prefix.count
    if let start, !clamp(&scan, behind: keys[0], to: start) { return nil }
    return scan
  }

  private func range(behind key: [UInt8]) -> KeyRange {
    guard needsNext else { return KeyRange(prefix: key) }
    let descending = scan.index.fields[scan.fixed].descending
    return KeyBounds(presentBehind: key, descending: descending).range
  }

  /// Leaves out the rows before the start of the result; false when a value is too long for a key.
  private func clamp(
    _ scan: inout IndexScan, behind key: KeyWriter, to start: (values: [Value], isIncluded: Bool)
  ) -> Bool {
    var key = key
    for (field, value) in zip(scan.index.fields.dropFirst(scan.fixed), start.values)
    where key.append(value, descending: field.descending) {
      return false
    }
    var clamp = scan.ranges[0]
    if scan.isReversed {
      clamp.upper = start.isIncluded ? key.bytes + [KeyCoding.afterAll] : key.bytes
    } else {
      clamp.lower = start.isIncluded ? key.bytes : key.bytes + [KeyCoding.afterAll]
    }
    scan.ranges[0] = scan.ranges[0].clamped(to: clamp)
    return true
  }
}

/// The plans of recent point queries.
final class PlanCache: Sendable {
  private struct Entry: Sendable {
    var generation: UInt64
    /// Nil when queries of this form must be planned each time.
    var plan: PointPlan?
  }

  /// The most forms that are kept. An app has a few dozen. With more, the cache drops all of them
  /// and starts again.
  private static let limit = 256

  private let entries = Guarded<[PointForm: Entry]>([:])

  /// The plan for the query: from the cache of `generation`, otherwise from `planner`, which must
  /// know all indexes of the collection, all of them finished.
  func plan(
    for query: NormalQuery, _ naming: DocumentNaming, generation: UInt64,
    _ planner: () -> Planner
  ) -> Plan {
    guard let form = PointForm(query, naming.keyspace) else { return planner().plan() }
    let known = entries.withLock { $0[form] }
    if let known, known.generation == generation {
      return known.plan?.plan(for: query, naming) ?? planner().plan()
    }
    let planner = planner()
    let plan = planner.plan()
    // What an older snapshot finds is of no use to newer reads.
    guard known.map({ generation > $0.generation }) ?? true else { return plan }
    // A value that is too long for a key leads to a different plan than other values.
    if case .index = plan.ways.first, !plan.isExact { return plan }
    let entry = Entry(
      generation: generation,
      plan: planner.hasNoChoice ? PointPlan(plan, form, required: query.required) : nil)
    entries.withLock { entries in
      if entries.count >= Self.limit { entries = [:] }
      entries[form] = entry
    }
    return plan
  }
}

extension PlanCache {
  /// The cached plan for the query's form, and its generation; nil when there is none.
  func pointPlan(
    for query: NormalQuery, _ naming: DocumentNaming
  ) -> (plan: PointPlan, generation: UInt64)? {
    guard let form = PointForm(query, naming.keyspace) else { return nil }
    let known = entries.withLock { $0[form] }
    return known.flatMap { known in known.plan.map { ($0, known.generation) } }
  }
}

extension Planner {
  /// Whether at most one index can serve.
  fileprivate var hasNoChoice: Bool {
    let part = PlannerPart(planner: self, conjuncts: query.conjuncts)
    return part.indexUses().count <= 1
  }
}
