// How the planner can use indexes for conditions that must all be met: the whole of a query, or one
// part of an "or" together with the rest.

internal import OndolEngine

/// Conditions that must all be met, and the indexes that can answer them. A class, because every
/// use of an index refers to it.
final class PlannerPart {
  let planner: Planner
  private let query: NormalQuery
  private let conjuncts: [FilterTree]
  private let filters: [FieldFilter]

  init(planner: Planner, conjuncts: [FilterTree]) {
    self.planner = planner
    query = planner.query
    self.conjuncts = conjuncts
    filters = conjuncts.compactMap { if case .field(let filter) = $0 { filter } else { nil } }
  }

  /// An index that serves.
  struct Candidate {
    var plan: Plan
    var fixed: Int
    /// Whether it leads to fewer documents than the collection has.
    var narrows: Bool
    /// Fields fixed by equalities count most, then a range, then avoiding a sort.
    var score: Int
    /// Rows to look at, as far as known.
    var rows: Double?
  }

  /// Whether a way for each part of an "or" could fix more fields than the unconditional conditions
  /// do. Only equalities fix fields.
  var mayFixMore: Bool {
    conjuncts.contains { tree in
      guard case .any = tree else { return false }
      return tree.fieldFilters.contains(where: \.condition.namesValues)
    }
  }

  /// The keys of the documents that the conditions name, sorted; nil when they name none.
  func namedKeys() -> [[UInt8]]? {
    for filter in filters where filter.field == .documentID {
      var names: [Value]
      switch filter.condition {
      case .equal(let name): names = [name]
      case .isIn(let list): names = list
      default: continue
      }
      if names.count > 1 {
        for other in filters where other.field == .documentID {
          names.removeAll { !other.condition.matches($0) }
        }
      }
      return names.compactMap(planner.naming.key).sorted { $0.bytes.compare($1.bytes) < 0 }
    }
    return nil
  }

  /// How each index that can serve would do so.
  func indexUses() -> [IndexUse] {
    var uses: [IndexUse] = []
    for index in planner.indexes where mayServe(index) {
      if let use = IndexUse(of: index, self) { uses.append(use) }
    }
    return uses
  }

  /// Whether a condition or an order refers to the index's first field. Without that an index
  /// cannot serve, and the check is quick for many indexes.
  private func mayServe(_ index: IndexDefinition) -> Bool {
    guard let first = index.fields.first else { return false }
    let field = first.field
    return filters.contains { $0.field == field } || query.orders.contains { $0.field == field }
  }

  /// The index that serves best.
  func best(of uses: [IndexUse]) -> Candidate? {
    uses.compactMap(candidate).max { left, right in
      left.score != right.score
        ? left.score < right.score : left.rows ?? .infinity > right.rows ?? .infinity
    }
  }

  /// The indexes whose fields the conditions all fix to one value, no field twice.
  func points(of uses: [IndexUse]) -> [IndexUse] {
    var covered: Set<QueryField> = []
    return uses.filter { use in
      guard use.isOnePoint else { return false }
      let fields = Set(use.scan.index.fields.map(\.field))
      guard covered.isDisjoint(with: fields) else { return false }
      covered.formUnion(fields)
      return true
    }
  }

  private func candidate(_ use: IndexUse) -> Candidate? {
    var use = use
    let index = use.scan.index
    let order = use.order()
    guard use.fixed > 0 || use.hasRange || (order != nil && needsFirstField(of: index)) else {
      return nil
    }
    if let order {
      use.scan.isReversed = order
      use.clampToPlaces(isReversed: order)
    }
    let plan = Plan(
      ways: use.scan.ranges.isEmpty ? [] : [.index(use.scan)], isInOrder: order != nil,
      isExact: use.isExact)
    let isPartial = index.kind.condition != nil
    return Candidate(
      plan: plan, fixed: use.fixed, narrows: use.fixed > 0 || use.hasRange || isPartial,
      score: use.fixed * 8 + (use.hasRange ? 4 : 0) + (order != nil ? 2 : 0) + (isPartial ? 1 : 0),
      rows: use.rows)
  }

  /// Whether a document must have the index's first field to be in the result.
  private func needsFirstField(of index: IndexDefinition) -> Bool {
    guard let first = index.fields.first, !index.kind.isOfElements else { return false }
    return needs(first.field)
  }

  /// Whether a document must have the field to be in the result.
  func needs(_ field: QueryField) -> Bool {
    filters.contains { $0.field.isOfSameField(as: field) }
      || query.required.contains(fieldOf: field)
  }

  func filters(on field: QueryField) -> [FieldFilter] {
    filters.filter { $0.field == field }
  }

  /// Whether the conditions admit only documents that `condition` admits.
  func implies(_ condition: FilterTree) -> Bool {
    switch condition {
    case .all(let trees): trees.allSatisfy(implies)
    case .any(let trees): conjuncts.contains(condition) || trees.contains(where: implies)
    case .field(let filter): filters.contains { $0.implies(filter) }
    }
  }

  /// Fields that have one value in all results, so that ordering by them changes nothing, and these
  /// values.
  private(set) lazy var singleValues: [(field: QueryField, value: Value)] =
    filters.compactMap { filter in
      guard case .equal(let value) = filter.condition, filter.field != .documentID else {
        return nil
      }
      return (filter.field, value)
    }

  /// Whether the field has one value in all results.
  func isSingleValued(_ field: QueryField) -> Bool {
    filters.contains { filter in
      if case .equal = filter.condition { filter.field == field } else { false }
    }
  }

  /// Whether the result is ordered by the document's name alone.
  var isOrderedByName: Bool {
    query.orders.first { $0.field == .documentID || !isSingleValued($0.field) }?.field
      == .documentID
  }

  /// Whether every document that has a row in each of the uses' ranges is in the result.
  func isExact(considering uses: [IndexUse]) -> Bool {
    isExact(
      answered: uses.flatMap(\.answered),
      present: uses.flatMap { $0.scan.index.fields.map(\.field) })
  }

  /// Whether a document needs no further check when the conditions `answered` are met and it has
  /// the fields `present`.
  func isExact(answered: [FieldFilter], present: [QueryField]) -> Bool {
    conjuncts.allSatisfy { tree in
      guard case .field(let filter) = tree else { return false }
      return answered.contains(filter)
    }
      && query.required.allSatisfy { $0 == .documentID || present.contains(fieldOf: $0) }
      && query.start == nil && query.end == nil
  }
}

extension FieldFilter {
  /// Whether every value that meets this condition meets `other`.
  func implies(_ other: FieldFilter) -> Bool {
    guard field == other.field else { return false }
    if condition == other.condition { return true }
    if case .notEqual(.null) = other.condition { return !condition.matches(.null) }
    switch (condition, other.condition) {
    case (.equal(let value), _): return other.condition.matches(value)
    case (.isIn(let values), _): return values.allSatisfy(other.condition.matches)
    case (.greater(let low), .greater), (.greater(let low), .greaterOrEqual):
      return other.condition.matches(low) || low == other.condition.operands.first
    case (.greaterOrEqual(let low), .greater), (.greaterOrEqual(let low), .greaterOrEqual):
      return other.condition.matches(low)
    case (.less(let high), .less), (.less(let high), .lessOrEqual):
      return other.condition.matches(high) || high == other.condition.operands.first
    case (.lessOrEqual(let high), .less), (.lessOrEqual(let high), .lessOrEqual):
      return other.condition.matches(high)
    default: return false
    }
  }
}
