// Divides a pipeline into the part that a query serves and the stages after it. The longest prefix
// of conditions, orders and limits that queries have becomes one query, so the planner finds
// indexes for it. A condition may be served in part: then the query finds a superset, and the stage
// stays to decide.

/// A pipeline, checked and divided.
struct PipelinePlan: Sendable {
  /// Where the rows come from.
  enum Source: Sendable {
    case query(QueryShape)
    /// The queries of all collections, which have this shape except for its source.
    case database
    case documents([DocumentPath])
    case literals([[AliasedExpression]])
    case search(QueryShape, PipelineSearch)
  }

  let source: Source
  /// The stages that a query serves, wholly or in part, and the source.
  let served: [PipelineStage]
  /// The stages after the query.
  let rest: [PipelineStage]
  /// The order of rows that no stage sorts, which is that of the query with the same conditions.
  /// Empty when no result shows it, or when the query sorts.
  let order: [PipelineOrdering]
  /// For each stage of `rest` its place among the stages as they were given, from 0.
  private let places: [Int]
  /// The totals of a window that are known before its rows, and its place.
  let totals: (place: Int, table: TotalsTable)?

  /// Stages of a pipeline, with those of the pipelines in it.
  static let mostStages = 500
  /// Pipelines within pipelines.
  static let mostNesting = 10
  /// Documents that a query sorts or limits; more are left to the stages.
  private static let mostLimited = 10_000

  /// Throws `.invalidArgument` for stages in a wrong order or with wrong arguments.
  init(_ stages: [PipelineStage]) throws(DatabaseError) {
    var room = Self.mostStages
    guard Self.fits(stages, in: &room) else {
      throw DatabaseError(
        .invalidArgument, "a pipeline has at most \(Self.mostStages) stages")
    }
    try self.init(stages, depth: 0)
  }

  init(_ stages: [PipelineStage], depth: Int) throws(DatabaseError) {
    guard depth <= Self.mostNesting else {
      throw DatabaseError(
        .invalidArgument, "pipelines are nested more than \(Self.mostNesting) deep")
    }
    guard let first = stages.first, first.isSource else {
      throw DatabaseError(
        .invalidArgument,
        "a pipeline begins with collection, collection_group, database, documents or literals")
    }
    for (place, stage) in stages.enumerated().dropFirst() {
      guard !stage.isSource else {
        throw DatabaseError(
          .invalidArgument,
          "stage \(place + 1), \(stage.name): it can only be a pipeline's first stage")
      }
      do throws(DatabaseError) {
        try stage.check()
      } catch {
        throw error.placed(stage, place)
      }
    }
    var rest = Self.limitingEarly(stages.dropFirst())
    var served = [first]
    let order = Self.order(of: rest)
    /// What is left of the conditions at the beginning of the rest, which the query serves in part.
    var left: [PipelineExpression] = []
    switch first {
    case .collection(let path):
      (source, left) = try Self.source(.collection(path), &served, &rest)
    case .collectionGroup(let id):
      _ = try CollectionPath(segments: [id])
      (source, left) = try Self.source(.group(ExactText(id)), &served, &rest)
    case .documents(let paths): source = .documents(paths)
    case .literals(let rows): source = .literals(rows)
    default: source = .database
    }
    for case .search in rest {
      throw DatabaseError(
        .invalidArgument, "search is the second stage, after collection or collection_group")
    }
    self.served = served
    totals = nil
    places = Self.places(of: rest, in: stages)
    for (place, condition) in zip(rest.indices, left) { rest[place] = .filter(condition) }
    guard case .query(let shape) = source else {
      self.rest = Self.orderingTies(rest, of: .others)
      self.order = []
      return
    }
    self.rest = Self.orderingTies(rest, of: .documents)
    self.order = shape.limit == nil && shape.offset == 0 ? order : []
  }

  private init(
    source: Source, served: [PipelineStage], rest: [PipelineStage], order: [PipelineOrdering],
    totals: (place: Int, table: TotalsTable)? = nil
  ) {
    self.source = source
    self.served = served
    self.rest = rest
    self.order = order
    self.totals = totals
    places = []
  }

  /// A plan of the same source, or of another one, with these stages after it. Its rows come as
  /// they are found.
  func continued(by stages: [PipelineStage], from other: Source? = nil) -> PipelinePlan {
    PipelinePlan(source: other ?? source, served: served, rest: stages, order: [])
  }

  /// The plan with other stages, of which the window at `place` has known totals.
  func carriedOut(by stages: [PipelineStage], _ table: TotalsTable, at place: Int) -> PipelinePlan {
    PipelinePlan(
      source: source, served: served, rest: stages, order: order, totals: (place, table))
  }

  /// Whether so many stages are allowed, with those of the pipelines in them. It stops counting
  /// when they are too many: a union of a union of itself has more stages than can be counted.
  private static func fits(_ stages: [PipelineStage], in room: inout Int) -> Bool {
    room -= stages.count
    for case .union(let others) in stages where room >= 0 {
      guard fits(others, in: &room) else { return false }
    }
    return room >= 0
  }

  private static func places(of rest: [PipelineStage], in stages: [PipelineStage]) -> [Int] {
    var isTaken = stages.map { _ in false }
    return rest.map { stage in
      let place = stages.indices.first { !isTaken[$0] && stages[$0] == stage } ?? 0
      isTaken[place] = true
      return place
    }
  }

  /// An error of the stage at a place of `rest`, with its place in the pipeline.
  func placed(_ error: DatabaseError, at place: Int) -> DatabaseError {
    guard places.indices.contains(place) else { return error }
    return error.placed(rest[place], places[place])
  }

  /// The stages with limits before the stages that make one row of each.
  private static func limitingEarly(_ stages: ArraySlice<PipelineStage>) -> [PipelineStage] {
    var moved: [PipelineStage] = []
    for stage in stages {
      var place = moved.count
      if case .limit = stage {
        while place > 0, moved[place - 1].makesOneRowOfEach { place -= 1 }
      }
      moved.insert(stage, at: place)
    }
    return moved
  }

  /// The order of documents to which these stages are applied, as a query has it: by the fields of
  /// the inequalities, then by name. Empty when no result of the stages shows it.
  private static func order(of stages: [PipelineStage]) -> [PipelineOrdering] {
    var fields: [QueryField] = []
    var conditions = stages[...]
    while case .filter(let condition)? = conditions.first {
      conditions.removeFirst()
      for names in QueryCondition.inequalities(in: condition) {
        let field = QueryField.field(names)
        if !fields.contains(field) { fields.append(field) }
      }
    }
    guard conditions.showsOrder else { return [] }
    fields.sort { ValueOrder.compare($0.description, $1.description) < 0 }
    let paths = fields.map { FieldPath($0.names) } + [.documentID()]
    return paths.map { PipelineOrdering(Field($0).pipelineExpression) }
  }

  /// Rows between two stages.
  private enum Rows {
    /// Documents of a query.
    case documents
    case groups([AliasedExpression])
    /// Rows that come as they are found, or as somebody has given them.
    case others
  }

  /// The stages with an order for rows that a sort leaves equal: documents by name, in the
  /// direction of the last order as in a query, and groups by their values. Otherwise they would
  /// come as they were found, which depends on the plan.
  private static func orderingTies(_ stages: [PipelineStage], of first: Rows) -> [PipelineStage] {
    var rows = first
    return stages.map { stage in
      switch (stage, rows) {
      case (.aggregate(_, let own), _), (.distinct(let own), _):
        rows = .groups(own)
        return stage
      case (.filter, _): return stage
      case (.sort(let orders), .documents):
        rows = .others
        return .sort(orders + [name(descending: orders.last?.descending ?? false)])
      case (_, .documents) where stage.makesOneRowOfEach: return stage
      case (.sort(let orders), .groups(let groups)):
        rows = .others
        return .sort(orders + ties(of: groups))
      case (.addFields(let columns), .groups(let groups))
      where !columns.contains(where: { column in groups.contains { $0.name == column.name } }):
        return stage
      default:
        rows = .others
        return stage
      }
    }
  }

  private static func name(descending: Bool) -> PipelineOrdering {
    PipelineOrdering(Field(.documentID()).pipelineExpression, descending: descending)
  }

  /// The orders by the values of groups.
  static func ties(of groups: [AliasedExpression]) -> [PipelineOrdering] {
    groups.map { Field(FieldPath([$0.name])) }.filter { $0.field.problem == nil }
      .map { PipelineOrdering($0.pipelineExpression) }
  }

  /// The stages for documents that come by name: those that a sort leaves equal need not be
  /// compared by name again.
  var restByName: [PipelineStage] {
    var stages = rest
    for (place, stage) in stages.enumerated() {
      switch stage {
      case .filter: continue
      case .sort(let orders):
        if orders.last == Self.name(descending: false) {
          stages[place] = .sort(orders.dropLast())
        }
        return stages
      case _ where stage.makesOneRowOfEach: continue
      default: return stages
      }
    }
    return stages
  }

  /// Also returns what is left of the conditions at the beginning of the rest, which the source
  /// serves in part.
  private static func source(
    _ place: QueryShape.Source, _ served: inout [PipelineStage], _ rest: inout [PipelineStage]
  ) throws(DatabaseError) -> (Source, left: [PipelineExpression]) {
    var shape = QueryShape(source: place)
    if case .search(let search)? = rest.first {
      served.append(rest.removeFirst())
      return (.search(shape, search), [])
    }
    var prefix = QueryPrefix()
    while let stage = rest.first, prefix.add(stage) {
      served.append(stage)
      rest.removeFirst()
    }
    prefix.finish(&served, &rest, mostLimited: mostLimited)
    prefix.apply(to: &shape)
    return (.query(shape), prefix.residual.map(\.left))
  }
}

/// Grows by stages as long as they are a query's.
private struct QueryPrefix {
  private var filters: [FilterTree] = []
  /// Conditions that the query serves in part, and what is left of each.
  private(set) var residual: [(stage: PipelineStage, left: PipelineExpression)] = []
  private var orders: [PipelineOrdering] = []
  private var offset = 0
  private var limit: Int?

  /// Adds a stage; false when it is none of a query's.
  mutating func add(_ stage: PipelineStage) -> Bool {
    switch stage {
    case .filter(let condition) where orders.isEmpty && offset == 0 && limit == nil:
      guard let filter = QueryCondition(condition) else { return false }
      filters.append(filter.tree)
      if let left = filter.residual { residual.append((stage, left)) }
      return true
    case .sort(let wanted) where orders.isEmpty && offset == 0 && limit == nil && residual.isEmpty:
      guard wanted.allSatisfy({ Self.field($0) != nil }) else { return false }
      orders = wanted
      return true
    case .offset(let count) where offset == 0 && limit == nil && residual.isEmpty:
      offset = count
      return true
    case .limit(let count) where limit == nil && residual.isEmpty:
      limit = count
      return true
    default: return false
    }
  }

  /// Gives back what a query would serve worse than the stages: without a limit, an order needs all
  /// documents in memory, whose bytes the sort stage bounds.
  mutating func finish(
    _ served: inout [PipelineStage], _ rest: inout [PipelineStage], mostLimited: Int
  ) {
    let (wanted, overflow) = (limit ?? .max).addingReportingOverflow(offset)
    if overflow || wanted > mostLimited {
      while let last = served.last {
        switch last {
        case .sort, .offset, .limit:
          rest.insert(last, at: 0)
          served.removeLast()
          continue
        default: break
        }
        break
      }
      (orders, offset, limit) = ([], 0, nil)
    }
    rest.insert(contentsOf: residual.map(\.stage), at: 0)
  }

  static func field(_ order: PipelineOrdering) -> QueryField? {
    guard case .field(let field) = order.expression.form, field.problem == nil else { return nil }
    switch field.form {
    case .names(let names): return .field(names)
    case .name: return .documentID
    case .createTime, .updateTime: return nil
    }
  }

  func apply(to shape: inout QueryShape) {
    shape.filters = filters
    shape.limit = limit
    shape.offset = offset
    // Conditions that must all hold: a document that meets them has their fields.
    var present: [QueryField] = []
    var others: [QueryField] = []
    for tree in filters.flatMap(\.conjuncts) {
      if case .field(let filter) = tree {
        present.append(filter.field)
      } else {
        others += tree.fieldFilters.filter(\.isInequality).map(\.field)
      }
    }
    for order in orders {
      guard let field = Self.field(order) else { continue }
      // Rows without the field come as if they had the least value.
      let missing: MissingPlacement =
        present.contains(field) || field == .documentID
        ? .excluded : order.descending ? .last : .first
      shape.orders.append(
        SortOrder(field: field, descending: order.descending, missing: missing))
    }
    // A query leaves out documents without a field that it has an inequality on, even one that is
    // an alternative.
    for field in others where !present.contains(field) && !shape.orders.orders(by: field) {
      shape.orders.append(SortOrder(field: field, missing: .first))
    }
  }
}

extension PipelineStage {
  /// Whether it passes on one row for each row, in their order.
  var makesOneRowOfEach: Bool {
    switch self {
    case .select, .addFields, .removeFields, .replaceWith, .lookup: true
    default: false
    }
  }
}

extension ArraySlice<PipelineStage> {
  /// Whether the result of the stages depends on the order of the rows that they are applied to.
  fileprivate var showsOrder: Bool {
    for stage in self {
      switch stage {
      case .sort, .findNearest, .sample(.rows), .distinct: return false
      // Rows that a window's order leaves equal come as they came to it.
      case .limit, .offset, .window: return true
      case .aggregate(let aggregates, _): return aggregates.contains { $0.aggregate.seesOrder }
      default: break
      }
    }
    return true
  }
}

extension PipelineAggregate {
  var seesOrder: Bool {
    ["first", "last", "array_agg", "array_agg_distinct"].contains(name)
  }
}

extension DatabaseError {
  /// The error with the place of the stage, if it is of that stage and has none yet.
  fileprivate func placed(_ stage: PipelineStage, _ place: Int) -> DatabaseError {
    let start = "the stage \(stage.name)"
    guard message.hasPrefix(start) else { return self }
    var error = self
    error.message = "stage \(place + 1), \(stage.name)" + message.dropFirst(start.count)
    return error
  }

  /// The error of a stage in a union.
  var inUnion: DatabaseError {
    guard message.hasPrefix("the stage ") || message.hasPrefix("stage ") else { return self }
    var error = self
    error.message = "the stage union: \(message)"
    return error
  }
}

extension PipelineStage {
  /// Throws `.invalidArgument` for arguments that no row can change.
  func check() throws(DatabaseError) {
    switch self {
    case .offset(let count) where count < 0, .limit(let count) where count < 0:
      throw DatabaseError(.invalidArgument, "the stage \(name) must not be negative: \(count)")
    case .sample(.rows(let count)) where count < 0:
      throw DatabaseError(.invalidArgument, "the stage sample must not be negative: \(count)")
    case .sample(.share(let share)) where !(0...1).contains(share):
      throw DatabaseError(
        .invalidArgument, "the stage sample keeps a share from 0 to 1, not \(share)")
    case .findNearest(let search):
      if let limit = search.limit, limit < 1 {
        throw DatabaseError(
          .invalidArgument, "the stage find_nearest finds 1 row or more, not \(limit)")
      }
    case .sort(let orders) where orders.isEmpty:
      throw DatabaseError(.invalidArgument, "the stage sort needs an expression")
    case .select(let columns), .addFields(let columns), .distinct(let columns):
      try Self.checkNames(columns.map(\.name), in: name)
      if case .distinct = self, columns.isEmpty {
        throw DatabaseError(.invalidArgument, "the stage distinct needs a field")
      }
    case .aggregate(let aggregates, let groups):
      try Self.checkNames(aggregates.map(\.name) + groups.map(\.name), in: name)
    case .window(let windows, _, _): try Self.checkNames(windows.map(\.name), in: name)
    default: break
    }
  }

  private static func checkNames(_ names: [String], in stage: String) throws(DatabaseError) {
    var seen: Set<String> = []
    for name in names {
      guard !name.isEmpty else {
        throw DatabaseError(.invalidArgument, "the stage \(stage) has a column without a name")
      }
      guard seen.insert(name).inserted else {
        throw DatabaseError(
          .invalidArgument, "the stage \(stage) has two columns named \"\(name)\"", field: name)
      }
    }
  }
}
