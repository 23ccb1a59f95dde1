// Which live pipelines follow the changes of their documents, and in which parts. Each document
// must lead to one row at most, and what it leads to must depend on its fields alone. All other
// pipelines run again when a change concerns their sources.

internal import OndolEngine

/// The parts of a pipeline that is kept up by changes.
struct LivePipelineForm: Sendable {
  let database: Database
  let plan: PipelinePlan
  let shape: QueryShape
  private let query: NormalQuery
  /// The total order of the query that has the limit; nil when the stages sort and limit.
  let queryOrders: [SortOrder]?
  /// Conditions and columns of documents, before the groups or the order.
  let documentStages: [PipelineStage]
  let aggregates: [AliasedAggregate]
  let columns: [LiveColumn]
  /// Nil when rows are documents.
  let groups: [AliasedExpression]?
  /// Conditions and columns of groups.
  let groupStages: [PipelineStage]
  /// Nil when no stage sorts.
  let orders: [PipelineOrdering]?
  let offset: Int
  let limit: Int
  /// What remains to be done for rows of the answer.
  let lastStages: [PipelineStage]

  /// Nil for a pipeline that must run again.
  init?(_ plan: PipelinePlan, in database: Database) throws(DatabaseError) {
    guard case .query(let shape) = plan.source else { return nil }
    self.database = database
    self.plan = plan
    self.shape = shape
    var rest = plan.rest[...]
    let isLimitedByQuery = shape.limit != nil
    var documentStages = isLimitedByQuery ? [] : rest.takeStagesOfOneRow()
    var groups: [AliasedExpression]?
    var aggregates: [AliasedAggregate] = []
    if !isLimitedByQuery, case .aggregate(let all, let own)? = rest.first {
      (aggregates, groups) = (all, own)
      rest.removeFirst()
    }
    groupStages = groups == nil ? [] : rest.takeStagesOfOneRow()
    var part = (orders: nil as [PipelineOrdering]?, offset: shape.offset, limit: Int.max)
    if let limit = shape.limit {
      part.limit = limit
    } else {
      part = rest.takePart()
    }
    var lastStages = rest.takeStagesOfOneRow()
    guard rest.isEmpty else { return nil }
    if groups == nil, part.orders == nil {
      // Columns that decide nothing are made for the answer alone.
      while let last = documentStages.last, !last.isFilter {
        lastStages.insert(last, at: 0)
        documentStages.removeLast()
      }
    }
    var columns: [LiveColumn] = []
    for aggregate in aggregates {
      guard let column = LiveColumn(aggregate.aggregate) else { return nil }
      columns.append(column)
    }
    query = try NormalQuery(shape)
    queryOrders = isLimitedByQuery ? query.orders : nil
    self.documentStages = documentStages
    self.aggregates = aggregates
    self.columns = columns
    self.groups = groups
    orders = part.orders
    (offset, limit) = (part.offset, part.limit)
    self.lastStages = lastStages
    guard isDetermined else { return nil }
  }

  /// Whether the answer and its order depend on nothing but the documents' fields and names.
  private var isDetermined: Bool {
    let deciding =
      documentStages.flatMap(\.expressions) + (groups ?? []).map(\.expression)
      + aggregates.compactMap(\.aggregate.argument) + (orders ?? []).map(\.expression)
    // A change shows the times of a document after it, and not before.
    guard deciding.allSatisfy({ $0.isPure && !$0.usesTimes }),
      (groupStages + lastStages).flatMap(\.expressions).allSatisfy(\.isPure)
    else { return false }
    guard let groups else { return queryOrders != nil || orders != nil || !plan.order.isEmpty }
    guard let orders else { return offset == 0 && limit == .max }
    // Groups that are equal in the order must come in the order of their values.
    let ties = PipelinePlan.ties(of: groups)
    return ties.count == groups.count && orders.suffix(ties.count) == ties
  }

  /// Whether a condition may leave out groups.
  var filtersGroups: Bool { groupStages.contains(where: \.isFilter) }

  /// Whether a condition after the limit may leave out rows.
  var filtersLast: Bool { lastStages.contains(where: \.isFilter) }

  /// The number of an answer's rows, of which some may come before or after it.
  func count(of all: Int) -> Int { max(0, min(all, wanted) - offset) }

  /// The rows that are kept for the answer.
  var wanted: Int {
    let (sum, overflow) = offset.addingReportingOverflow(limit)
    return overflow ? .max : sum
  }

  /// Rows that are kept beyond them, to replace rows that leave.
  var reserve: Int { wanted == .max ? 0 : max(16, min(wanted, 1_000)) }

  /// The rows that an evaluation keeps.
  var mostKept: Int {
    let (sum, overflow) = wanted.addingReportingOverflow(reserve)
    return overflow ? .max : sum
  }

  /// The orders of rows that are documents, computed from them.
  var documentOrders: [PipelineOrdering] { orders ?? plan.order }

  /// The plan of everything that is evaluated at first, in no order.
  var gathering: PipelinePlan {
    if groups != nil { return plan.continued(by: documentStages) }
    guard queryOrders != nil else {
      return plan.continued(by: Array(documentStages.prefix { $0.isFilter }))
    }
    var wide = shape
    wide.offset = 0
    wide.limit = mostKept
    return plan.continued(by: [], from: .query(wide))
  }

  /// Whether the answer depends on the time, because documents expire.
  func dependsOnTime(at path: DocumentPath) -> Bool { database.hasTimeToLive(at: path) }

  /// The answer as of the context's rows; nil when its groups take more than the memory of
  /// pipelines, or a row cannot be computed that the answer may not need.
  func evaluate(_ context: PipelineContext) throws(DatabaseError) -> LivePipeline? {
    do throws(DatabaseError) {
      if groups == nil { return .rows(try LiveRows(self, context)) }
      return try LiveGroups(self, context).map { .groups($0) }
    } catch {
      guard error.code == .invalidArgument else { throw error }
      return nil
    }
  }
}

/// An answer that follows changes.
enum LivePipeline: Sendable {
  case rows(LiveRows)
  case groups(LiveGroups)

  var results: [PipelineResult] {
    switch self {
    case .rows(let rows): rows.results
    case .groups(let groups): groups.results
    }
  }

  /// The number of results.
  var count: Int {
    switch self {
    case .rows(let rows): rows.count
    case .groups(let groups): groups.count
    }
  }

  /// Applies changes, and returns whether the answer is another one; nil when they do not
  /// determine it.
  mutating func apply(_ changes: some Collection<ObservedChange>) throws(DatabaseError) -> Bool? {
    switch self {
    case .rows(var rows):
      let isAnother = try rows.apply(changes)
      self = .rows(rows)
      return isAnother
    case .groups(var groups):
      let isAnother = try groups.apply(changes)
      self = .groups(groups)
      return isAnother
    }
  }
}

/// Stages that make one row of a row at most, ready for rows. It stays on its thread.
final class LiveStages {
  private let end = RowCollector()
  private let sink: any RowSink

  init(
    _ stages: [PipelineStage], _ plan: PipelinePlan, _ context: PipelineContext
  ) throws(DatabaseError) {
    sink = try PipelineExecution(plan, context, depth: 1).sink(of: stages, into: end)
  }

  /// What they make of the row; nil when it is left out.
  func callAsFunction(_ row: PipelineRow) throws(DatabaseError) -> PipelineRow? {
    _ = try sink.take(row)
    return end.takeAll().first
  }
}

extension LivePipelineForm {
  /// What the stages of changes are computed with.
  func context() throws(DatabaseError) -> PipelineContext {
    PipelineContext(
      database, Rows(try database.engineSnapshot(), database.catalog, mayBlock: false, asOf: 0))
  }

  /// A document of a change, before or after it, when the query finds it.
  func document(
    _ path: DocumentPath, _ fields: [String: Value]?, _ stamps: DocumentStamps
  ) -> PipelineRow? {
    guard let fields, query.matches(fields, name: shape.name(of: path)) else { return nil }
    return PipelineRow(path, DocumentSnapshot.Contents(stamps: stamps, fields: fields))
  }
}

extension ArraySlice<PipelineStage> {
  /// Removes and returns the first stages that make one row of a row at most, from it alone.
  fileprivate mutating func takeStagesOfOneRow() -> [PipelineStage] {
    let taken = prefix { stage in
      switch stage {
      case .filter, .select, .addFields, .removeFields, .replaceWith: true
      default: false
      }
    }
    removeFirst(taken.count)
    return Array(taken)
  }

  /// Removes and returns an order, an offset and a limit.
  fileprivate mutating func takePart() -> (
    orders: [PipelineOrdering]?, offset: Int, limit: Int
  ) {
    var part = (orders: nil as [PipelineOrdering]?, offset: 0, limit: Int.max)
    if case .sort(let orders)? = first {
      part.orders = orders
      removeFirst()
    }
    if case .offset(let count)? = first {
      part.offset = count
      removeFirst()
    }
    if case .limit(let count)? = first {
      part.limit = count
      removeFirst()
    }
    return part
  }
}

extension PipelineStage {
  fileprivate var isFilter: Bool { if case .filter = self { true } else { false } }

  /// The expressions of a stage that makes one row of a row at most.
  fileprivate var expressions: [PipelineExpression] {
    switch self {
    case .filter(let condition): [condition]
    case .select(let columns), .addFields(let columns): columns.map(\.expression)
    case .replaceWith(let map, _): [map]
    default: []
    }
  }
}

extension PipelineExpression {
  /// Whether equal rows always give equal values.
  fileprivate var isPure: Bool {
    guard case .function(let name, let arguments) = form else { return true }
    return ScalarFunction(rawValue: name)?.isPure ?? true && arguments.allSatisfy(\.isPure)
  }

  /// Whether it names the times of a document.
  fileprivate var usesTimes: Bool {
    switch form {
    case .field(let field): field.form == .createTime || field.form == .updateTime
    case .function(_, let arguments): arguments.contains(where: \.usesTimes)
    default: false
    }
  }
}
