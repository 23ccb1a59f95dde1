// Chooses how a query finds its documents: stage 2 of the read path. Pure: the input is a query,
// the finished indexes and what is known about their sizes, the output is a plan, and `explain`
// prints it. A plan promises only candidates, and the matcher checks each of them. So a wide range
// costs time but never gives a wrong result.
//
// What serves a query, best first:
// 1. documents that are named: one lookup each;
// 2. an index whose first fields are compared with `==` (or one of them with `in`: one range for
//   each value), then at most one field with a range, then fields the result is ordered by;
// 3. several such indexes, when each fixes all its fields and none alone is narrow;
// 4. for an "or": one of the above for each of its parts;
// 5. the documents in the order of their ids, from the first to the last id asked for.
//
// An "or" beside an "or" multiplies the ways to look at, so the planning budget is proportional to
// the size of the query. When it is used up, the planner takes the best plan it has looked at.
//
// An index holds every document that has its first field, with a mark for a later field that is
// missing. So an index serves a query that needs a prefix of its fields, and no index serves a
// query that does not need the first. A partial index serves queries whose conditions imply its
// own.

internal import OndolEngine

/// Makes plans for one pattern.
struct Planner: Sendable {
  let query: NormalQuery
  let naming: DocumentNaming
  /// The finished indexes of the pattern. With unfinished ones among them, the plan shows what it
  /// will be and must not be carried out.
  var indexes: [IndexDefinition]
  let statistics: IndexStatistics

  /// The most ways that an "or" may be split into. With more, a scan is not slower.
  private static let maximumWays = 1_024
  /// The most rows of one index for which reading the documents is better than using another index.
  private static let narrowRows = 4.0

  func plan() -> Plan {
    guard query.limit > 0, !query.conjuncts.contains(where: \.matchesNothing) else {
      return .nothing
    }
    var budget = PlanningBudget(for: query)
    var plan = choose(query.conjuncts, depth: 0, &budget) ?? scan()
    // Several ways may lead to one document, which counts once.
    plan.isExact = plan.isExact && plan.ways.count <= 1
    plan.isCutShort = budget.isUsedUp
    return plan
  }

  /// The best way that narrows, or orders, the documents to look at; nil when there is none.
  ///
  /// - Parameter mustNarrow: whether ordering alone is not enough.
  private func choose(
    _ conjuncts: [FilterTree], depth: Int, _ budget: inout PlanningBudget, mustNarrow: Bool = false
  ) -> Plan? {
    guard budget.allows(conjuncts) else { return nil }
    let part = PlannerPart(planner: self, conjuncts: conjuncts)
    if let keys = part.namedKeys() {
      let isInOrder = query.orders.first?.isAscendingID ?? false
      return Plan(ways: [.lookups(keys)], isInOrder: isInOrder)
    }
    let uses = part.indexUses()
    let best = part.best(of: uses)
    if let best, best.narrows {
      if part.mayFixMore, let union = union(conjuncts, depth: depth, &budget),
        union.fixed > best.fixed
      {
        return union
      }
      return intersection(part, uses, best) ?? best.plan
    }
    return union(conjuncts, depth: depth, &budget) ?? (mustNarrow ? nil : best?.plan)
  }

  /// All indexes that are fixed as a whole, when no single one is known to be narrow.
  private func intersection(
    _ part: PlannerPart, _ uses: [IndexUse], _ best: PlannerPart.Candidate
  ) -> Plan? {
    guard uses.count > 1, best.rows ?? .infinity > Self.narrowRows else { return nil }
    let points = part.points(of: uses)
    guard points.count > 1, points.count > best.fixed else { return nil }
    let isReversed = query.orders.first { $0.field == .documentID }?.descending ?? false
    let directed = points.map { use in
      var scan = use.scan
      scan.isReversed = scan.index.idDescending != isReversed
      return scan
    }
    return Plan(
      ways: [.intersection(directed)], isInOrder: part.isOrderedByName,
      isExact: part.isExact(considering: points))
  }

  /// A way for each part of an "or", when each part has one that narrows.
  private func union(
    _ conjuncts: [FilterTree], depth: Int, _ budget: inout PlanningBudget
  ) -> Plan? {
    guard depth < 8 else { return nil }
    for (position, tree) in conjuncts.enumerated() {
      guard case .any(let parts) = tree, parts.count <= Self.maximumWays else { continue }
      var others = conjuncts
      others.remove(at: position)
      if let plan = union(of: parts, with: others, depth: depth, &budget) { return plan }
    }
    return nil
  }

  /// The ways of all parts of an "or" together; nil when one of them has none.
  private func union(
    of parts: [FilterTree], with others: [FilterTree], depth: Int, _ budget: inout PlanningBudget
  ) -> Plan? {
    var plan = Plan(ways: [], isInOrder: true, isExact: true)
    for part in parts where !part.matchesNothing {
      guard
        let choice = choose(others + part.conjuncts, depth: depth + 1, &budget, mustNarrow: true)
      else { return nil }
      plan.ways += choice.ways
      plan.isInOrder = plan.isInOrder && choice.isInOrder
      plan.isExact = plan.isExact && choice.isExact
      guard plan.ways.count <= Self.maximumWays else { return nil }
    }
    return plan
  }

  private func scan() -> Plan {
    var range = KeyRange(prefix: naming.prefix)
    var isExact = true
    for tree in query.conjuncts {
      guard case .field(let filter) = tree, filter.field == .documentID, naming.collection != nil
      else {
        isExact = false
        continue
      }
      let bounds = KeyBounds(
        of: filter.condition, behind: naming.prefix, descending: false, isID: true)
      range = range.clamped(to: bounds.range)
      isExact = isExact && bounds.isExact
    }
    let first = query.orders.first
    let isInOrder = first?.field == .documentID
    let isReversed = isInOrder && first?.descending == true
    if isInOrder { range = clamped(range, isReversed: isReversed) }
    return Plan(
      ways: range.isEmpty ? [] : [.scan(range, reversed: isReversed)], isInOrder: isInOrder,
      isExact: isExact && query.start == nil && query.end == nil && query.required == [.documentID],
      suggestion: suggestion())
  }

  /// The range between the start and the end of the result, which are names here.
  private func clamped(_ range: KeyRange, isReversed: Bool) -> KeyRange {
    var range = range
    for (bound, isStart) in [(query.start, true), (query.end, false)] {
      guard let bound, let name = bound.keys.first ?? nil, let key = naming.key(of: name) else {
        continue
      }
      var clamp = range
      // With more keys, the document itself may be on either side.
      let isIncluded = bound.isIncluded || bound.keys.count > 1
      if isStart != isReversed {
        clamp.lower = isIncluded ? key : key + [KeyCoding.afterAll]
      } else {
        clamp.upper = isIncluded ? key + [KeyCoding.afterAll] : key
      }
      range = range.clamped(to: clamp)
    }
    return range
  }

  /// The fields that an index for this query would need: equalities, elements of one array, then
  /// one range or the orders.
  private func suggestion() -> [IndexField]? {
    var fields: [IndexField] = []
    for case .field(let filter) in query.conjuncts {
      guard filter.field != .documentID else { continue }
      let isOfElements: Bool
      switch filter.condition {
      case .equal, .isIn: isOfElements = false
      case .arrayContains, .arrayContainsAny: isOfElements = true
      default: continue
      }
      let isCovered = fields.contains { field in
        filter.field.isOfSameField(as: field.field) || isOfElements && field.isOfElements
      }
      if !isCovered {
        fields.append(
          IndexField(
            filter.field.names, isOfElements: isOfElements, comparing: filter.field.comparison))
      }
    }
    let isReversed = query.isReversed
    let orders = query.orders.filter { order in
      !fields.contains { order.field.isOfSameField(as: $0.field) }
    }
    for order in orders {
      // An index on a field lacks the documents without it.
      guard order.field != .documentID, order.missing == .excluded || !fields.isEmpty
      else { break }
      fields.append(
        IndexField(
          order.field.names, descending: order.descending != isReversed,
          comparing: order.field.comparison))
    }
    return fields.isEmpty ? nil : fields.withoutTies
  }
}

extension SortOrder {
  fileprivate var isAscendingID: Bool { field == .documentID && !descending }
}

/// The remaining budget for planning a query: the number of operands of conditions to look at. They
/// are counted again for each way in which alternatives combine.
struct PlanningBudget: Sendable {
  private var left: Int
  /// Whether the planner would have looked at more.
  private(set) var isUsedUp = false

  /// Enough for each alternative of an "or" beside a few dozen other conditions.
  init(for query: NormalQuery) {
    left = 256 + 32 * query.conjuncts.reduce(query.orders.count) { $0 + $1.weight }
  }

  /// Subtracts the cost of looking at the conditions together; false when the budget does not cover
  /// it.
  mutating func allows(_ conjuncts: [FilterTree]) -> Bool {
    let cost = conjuncts.reduce(1) { sum, tree in
      if case .field(let filter) = tree { sum + filter.condition.weight } else { sum + 1 }
    }
    if cost > left { isUsedUp = true }
    guard !isUsedUp else { return false }
    left -= cost
    return true
  }
}

extension QueryShape {
  /// The operands of a query that takes a few microseconds to plan.
  private static let shortWeight = 64

  /// Whether the query may take only some dozen microseconds, judging by its shape alone.
  var mayBeShort: Bool {
    var weight = 0
    for tree in filters { weight += tree.weight }
    return weight <= Self.shortWeight
  }
}

extension FilterTree {
  /// The number of operands in all its conditions.
  fileprivate var weight: Int {
    switch self {
    case .field(let filter): filter.condition.weight
    case .all(let trees), .any(let trees): trees.reduce(1) { $0 + $1.weight }
    }
  }
}

extension FieldFilter.Condition {
  /// The number of values that it compares with.
  fileprivate var weight: Int {
    switch self {
    case .isIn(let list), .notIn(let list), .arrayContainsAny(let list): max(1, list.count)
    default: 1
    }
  }
}

/// What is known about indexes: how many rows one value of their first fields has on average, as
/// earlier queries found. It is not stored, and only the choice between ways depends on it.
struct IndexStatistics: Sendable {
  struct Place: Sendable, Hashable {
    var index: Keyspace
    var fixed: Int
  }

  private var rowsByPlace: [Place: Double] = [:]

  /// Rows of one value; nil when no query has measured them.
  subscript(index: Keyspace, fixed: Int) -> Double? {
    rowsByPlace[Place(index: index, fixed: fixed)]
  }

  /// Notes that `points` values had `rows` rows.
  mutating func note(_ rows: Int, of points: Int, in index: Keyspace, fixed: Int) {
    guard points > 0, fixed > 0 else { return }
    let place = Place(index: index, fixed: fixed)
    let found = Double(rows) / Double(points)
    rowsByPlace[place] = rowsByPlace[place].map { $0 * 0.75 + found * 0.25 } ?? found
  }
}
