// Carries out a plan on one snapshot: builds the stages from the last to the first, and passes the
// source's rows through them. Everything is synchronous and on one thread. A caller that must not
// block its thread runs it on another one.

internal import OndolEngine

/// One plan on one snapshot.
struct PipelineExecution {
  private let plan: PipelinePlan
  private let context: PipelineContext
  private let depth: Int
  /// Gets the operator of the stage that groups a part of a scan.
  private let partGroups: PartGroups?

  init(
    _ plan: PipelinePlan, _ context: PipelineContext, depth: Int = 0,
    partGroups: PartGroups? = nil
  ) {
    self.plan = plan
    self.context = context
    self.depth = depth
    self.partGroups = partGroups
  }

  /// The rows of the result.
  func rows() throws(DatabaseError) -> [PipelineRow] {
    let collector = RowCollector()
    try run(into: collector)
    return collector.rows
  }

  /// Passes the rows of the result to a sink, and finishes it.
  func run(into end: any RowSink) throws(DatabaseError) {
    if depth == 0, context.counts.isEmpty {
      context.counts = Array(repeating: 0, count: plan.rest.count + 1)
    }
    switch plan.source {
    case .query(let shape): try run(shape, into: end)
    case .database: try runDatabase(into: end)
    case .documents(let paths): try run(paths, into: counted(0, sink(plan.rest[...], end)))
    case .literals(let literals):
      try run(literals, into: counted(0, sink(plan.rest[...], end)))
    case .search(let shape, let search):
      try run(shape, search, into: counted(0, sink(plan.rest[...], end)))
    }
  }

  // MARK: - Parts

  /// Groups the executor's rows; the stage at `place` groups. `partGroups` has its operator then.
  func group(_ executor: inout Executor, through place: Int) throws(DatabaseError) {
    let head = try head(plan.rest[...place], sortedBy: [], RowCollector())
    var isDone = false
    head.begin(executor.parts)
    try visit(&executor, head, &isDone)
  }

  /// Passes groups on through the stages after the one at `place`, which groups.
  func run(
    _ groups: PipelineGroups, bytes: Int, from place: Int, into end: any RowSink
  ) throws(DatabaseError) {
    let aggregate = try grouping(plan.rest[place], sink(plan.rest[(place + 1)...], end))
    aggregate.adopt(groups, bytes: bytes)
    try aggregate.finish()
  }

  // MARK: - Sources

  /// Rows of one query: without a limit straight from their bytes, as they come when they come in
  /// the order of the plan, or when no result shows it.
  private func run(_ shape: QueryShape, into end: any RowSink) throws(DatabaseError) {
    var executor = try Executor(shape, in: context.database, context.rows)
    try context.willRead(.query(executor))
    if shape.limit != nil {
      let sink = counted(0, try sink(plan.rest[...], end))
      for document in try executor.documents() {
        try context.step()
        guard let contents = document.contents else { continue }
        guard try sink.take(PipelineRow(document.reference.place.get(), contents)) else { break }
      }
      return try sink.finish()
    }
    let order = plan.order.count == 1 && executor.comesByName ? [] : plan.order
    let rest = executor.comesByName ? plan.restByName : plan.rest
    let head = try head(rest[...], sortedBy: order, end)
    var isDone = false
    head.begin(executor.parts)
    try visit(&executor, head, &isDone)
    try head.finish()
  }

  /// The documents of all collections, one id after the other.
  private func runDatabase(into end: any RowSink) throws(DatabaseError) {
    let head = try head(plan.rest[...], sortedBy: [], end)
    var isDone = false
    for id in try context.rows.collectionGroupIDs() where !isDone {
      let shape = QueryShape(source: .group(ExactText(id)))
      var executor = try Executor(shape, in: context.database, context.rows)
      try context.willRead(.query(executor))
      head.begin(executor.parts)
      try visit(&executor, head, &isDone)
    }
    try head.finish()
  }

  /// Shows every document to the sink until it wants no more.
  private func visit(
    _ executor: inout Executor, _ head: any DocumentSink, _ isDone: inout Bool
  ) throws(DatabaseError) {
    var isFull = false
    var failure: DatabaseError?
    // A walk shows a document again, with its key, when the first call fails without one. Only the
    // error of damaged bytes needs the key. Any other ends the walk, so no document counts twice.
    func take(
      _ view: borrowing DocumentView, _ key: RawSpan, _ part: Int
    ) throws(DatabaseError) {
      guard !isFull else { throw Self.enough }
      if let failure { throw failure }
      do throws(DatabaseError) {
        try context.step()
        isFull = try !head.take(view, key, part: part)
      } catch {
        if error.code != .dataLoss { failure = error }
        throw error
      }
      if isFull { throw Self.enough }
    }
    do throws(DatabaseError) {
      if head.needsKeys {
        try executor.visitEach(take)
      } else {
        try executor.visitEachRow(take)
      }
    } catch {
      guard isFull else { throw error }
      isDone = true
    }
  }

  private static let enough = DatabaseError(.aborted, "the stages want no more rows")

  private func run(_ paths: [DocumentPath], into sink: any RowSink) throws(DatabaseError) {
    let reader = DocumentReader(rows: context.rows)
    var seen: Set<DocumentPath> = []
    for path in paths where seen.insert(path).inserted {
      try context.step()
      try context.willRead(.document(path))
      guard let contents = try reader.contents(of: path) else { continue }
      guard try sink.take(PipelineRow(path, contents)) else { break }
    }
    try sink.finish()
  }

  private func run(
    _ literals: [[AliasedExpression]], into sink: any RowSink
  ) throws(DatabaseError) {
    let none = PipelineRow([:])
    for literal in literals {
      let columns = try StageExpressions(literal.map(\.expression), of: "literals", context)
      var fields: [String: Value] = [:]
      for (column, value) in zip(literal, try columns.values(of: none)) {
        if let value { fields[column.name] = value }
      }
      guard try sink.take(PipelineRow(fields)) else { break }
    }
    try sink.finish()
  }

  private func run(
    _ shape: QueryShape, _ search: PipelineSearch, into sink: any RowSink
  ) throws(DatabaseError) {
    var query = Query(database: context.database, source: .success(shape.source))
    if let limit = search.limit { query = query.limit(to: limit) }
    let fields = search.fields.isEmpty ? try searchedFields(of: shape) : search.fields
    try context.willRead(.query(try Executor(shape, in: context.database, context.rows)))
    for match in try query.search(search.text, in: fields).matches(in: context.rows) {
      try context.step()
      guard let contents = match.document.contents else { continue }
      var row = PipelineRow(try match.document.reference.place.get(), contents)
      if let name = search.scoreField {
        var fields = row.fields
        fields.set(.double(match.score), at: name)
        row = PipelineRow(row, fields: fields)
      }
      guard try sink.take(row) else { break }
    }
    try sink.finish()
  }

  /// The fields of the index of words with the most fields.
  private func searchedFields(of shape: QueryShape) throws(DatabaseError) -> [FieldPath] {
    var entries: [CollectionEntry] = []
    switch shape.source {
    case .collection(let path):
      if let entry = try context.rows.entry(of: CollectionPattern(path)) { entries.append(entry) }
    case .group(let id):
      for family in try context.rows.catalog.families(withCollections: id, in: context.rows) {
        entries += family.collections.filter { $0.key.collectionID == id }.values
      }
    }
    let indexes = entries.flatMap(\.searches)
    guard let widest = indexes.max(by: { $0.fields.count < $1.fields.count }) else {
      throw DatabaseError(
        .failedPrecondition, "the stage search: \(shape.source) has no index of words")
    }
    return widest.fields.map { FieldPath($0.names) }
  }

  // MARK: - Stages

  /// The sink that carries out these stages for rows that do not come from the plan's source.
  func sink(
    of stages: [PipelineStage], into end: any RowSink
  ) throws(DatabaseError) -> any RowSink { try sink(stages[...], end) }

  private func counted(_ place: Int, _ next: any RowSink) -> any RowSink {
    depth == 0 ? RowCounter(plan, context, place, next) : next
  }

  /// The stages that take documents as bytes: conditions, and one that decodes what it needs.
  ///
  /// - Parameter order: how the documents that meet the first conditions must be sorted, if at all.
  private func head(
    _ stages: ArraySlice<PipelineStage>, sortedBy order: [PipelineOrdering], _ end: any RowSink
  ) throws(DatabaseError) -> any DocumentSink {
    do throws(DatabaseError) {
      return try makeHead(stages, sortedBy: order, end)
    } catch {
      throw plan.placed(error, at: stages.startIndex)
    }
  }

  private func makeHead(
    _ stages: ArraySlice<PipelineStage>, sortedBy order: [PipelineOrdering], _ end: any RowSink
  ) throws(DatabaseError) -> any DocumentSink {
    let place = stages.startIndex
    let made: any DocumentSink
    switch stages.first {
    case .filter(let condition)?:
      made = try DocumentFilter(
        condition, context, head(stages.dropFirst(), sortedBy: order, end))
    case _ where !order.isEmpty:
      made = narrowed(
        stages, by: order,
        try SortOperator(order, limit: Self.wanted(after: stages), context, sink(stages, end)))
    case .select(let columns)?:
      made = try DocumentProjection(
        columns, context, counted(place + 1, sink(stages.dropFirst(), end)))
    case .aggregate?, .distinct?:
      made = try grouping(stages[place], counted(place + 1, sink(stages.dropFirst(), end)))
    case .unnest?:
      if let grouped = try groupedElements(stages, end) {
        made = grouped
      } else {
        made = narrowed(stages, by: [], try sink(stages, end))
      }
    case .lookup(let lookup)?:
      let next = counted(place + 1, try sink(stages.dropFirst(), end))
      let needed = NeededFields(of: stages.dropFirst())
      if let joined = DocumentLookup(lookup, needed, context, next) {
        made = joined
      } else {
        made = narrowed(stages, by: [], try sink(stages, end))
      }
    default:
      // An end that takes documents takes them in place.
      let next = try sink(stages, end)
      made = next as? any DocumentSink ?? narrowed(stages, by: [], next)
    }
    return depth == 0 ? DocumentCounter(plan, context, place, made) : made
  }

  /// Passes documents on with the fields that stages look at.
  private func narrowed(
    _ stages: ArraySlice<PipelineStage>, by order: [PipelineOrdering], _ next: any RowSink
  ) -> any DocumentSink {
    let sorted = order.isEmpty ? stages : [.sort(order)] + stages
    return DocumentColumns(NeededFields(of: sorted), next) ?? DocumentCopying(next)
  }

  /// Groups of the elements of documents' arrays; nil when they are not read from their bytes.
  private func groupedElements(
    _ stages: ArraySlice<PipelineStage>, _ end: any RowSink
  ) throws(DatabaseError) -> AggregateOperator? {
    let place = stages.startIndex
    guard stages.count > 1,
      let elements = UnnestedElements(stages[place], at: depth == 0 ? place + 1 : nil)
    else { return nil }
    switch stages[place + 1] {
    case .aggregate, .distinct:
      let made = try grouping(
        stages[place + 1], of: elements, counted(place + 2, sink(stages.dropFirst(2), end)))
      return made.readsBytes ? made : nil
    default: return nil
    }
  }

  /// The operator of a stage that groups.
  private func grouping(
    _ stage: PipelineStage, of elements: UnnestedElements? = nil, _ next: any RowSink
  ) throws(DatabaseError) -> AggregateOperator {
    let made: AggregateOperator
    switch stage {
    case .aggregate(let aggregates, let groups):
      made = try AggregateOperator(aggregates, groups: groups, of: elements, context, next)
    case .distinct(let groups):
      made = try AggregateOperator(distinct: groups, of: elements, context, next)
    default: preconditionFailure("\(stage.name) makes no groups")
    }
    partGroups?.aggregate = made
    return made
  }

  /// The sink that carries out the stages and passes their rows to `end`.
  private func sink(
    _ stages: ArraySlice<PipelineStage>, _ end: any RowSink
  ) throws(DatabaseError) -> any RowSink {
    var next = end
    for place in stages.indices.reversed() {
      do throws(DatabaseError) {
        next = try made(
          stages[place], at: place, counted(place + 1, next), before: stages[(place + 1)...])
      } catch {
        throw plan.placed(error, at: place)
      }
    }
    return next
  }

  /// Rows that the stages want at most.
  private static func wanted(after stages: ArraySlice<PipelineStage>) -> Int {
    var skipped = 0
    for stage in stages {
      switch stage {
      case .offset(let count):
        let (sum, overflow) = skipped.addingReportingOverflow(count)
        skipped = overflow ? .max : sum
      case .limit(let count):
        let (sum, overflow) = skipped.addingReportingOverflow(count)
        return overflow ? .max : sum
      case _ where stage.makesOneRowOfEach: continue
      default: return .max
      }
    }
    return .max
  }

  /// The operator of a stage.
  ///
  /// - Parameter later: the stages after it, which `next` carries out.
  private func made(
    _ stage: PipelineStage, at place: Int, _ next: any RowSink,
    before later: ArraySlice<PipelineStage>
  ) throws(DatabaseError) -> any RowSink {
    switch stage {
    case .filter(let condition): return try FilterOperator(condition, context, next)
    case .select(let columns): return try ProjectionOperator(columns, context, next)
    case .addFields(let columns): return try AdditionOperator(columns, context, next)
    case .removeFields(let fields): return try RemovalOperator(fields, next)
    case .replaceWith(let map, let replacement):
      return try ReplacementOperator(map, replacement, context, next)
    case .sort(let orders):
      return try SortOperator(orders, limit: Self.wanted(after: later), context, next)
    case .offset(let count): return PartOperator(offset: count, limit: .max, next)
    case .limit(let count): return PartOperator(offset: 0, limit: count, next)
    case .aggregate, .distinct: return try grouping(stage, next)
    case .unnest(let array, let indexField):
      return try UnnestOperator(array, indexField: indexField, context, next)
    case .union(let others):
      do throws(DatabaseError) {
        let other = try PipelinePlan(others, depth: depth + 1)
        return UnionOperator(PipelineExecution(other, context, depth: depth + 1), next)
      } catch {
        throw error.inUnion
      }
    case .sample(.share(let share)): return ShareOperator(share, context, next)
    case .sample(.rows(let count)): return SampleOperator(count, context, next)
    case .findNearest(let search): return try NearestOperator(search, context, next)
    case .lookup(let lookup):
      let extent = NeededFields(of: later).extent(of: lookup.name)
      return try LookupOperator(lookup, extent, context, next)
    case .window(let windows, let groups, let orders):
      if let totals = plan.totals, totals.place == place {
        return try TotalsOperator(windows, groups: groups, totals.table, context, next)
      }
      return try WindowOperator(
        windows, groups: groups, orders: orders,
        wanted: later.first.flatMap { windows.wanted(by: $0) }, context, next)
    case .collection, .collectionGroup, .database, .documents, .literals, .search:
      preconditionFailure("a plan has its source, and a search after it, apart")
    }
  }
}

extension Executor {
  /// Whether `visitEach` shows the documents of a collection in the order of their names.
  fileprivate var comesByName: Bool {
    let ways = parts.flatMap(\.plan.ways)
    guard ways.count <= 1 else { return false }
    switch ways.first {
    case .scan(_, let reversed)?: return !reversed
    case .lookups?, .intersection?, nil: return true
    case .index?: return false
    }
  }
}

/// `union`: the rows of another pipeline after those of this one.
private final class UnionOperator: RowSink {
  private let other: PipelineExecution
  private let next: any RowSink
  private var isFull = false

  init(_ other: PipelineExecution, _ next: any RowSink) {
    self.other = other
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    isFull = try !next.take(row)
    return !isFull
  }

  func finish() throws(DatabaseError) {
    if !isFull {
      let forwarding = Forwarding(next)
      do throws(DatabaseError) {
        try other.run(into: forwarding)
      } catch {
        throw forwarding.isFailureOfNext ? error : error.inUnion
      }
    }
    try next.finish()
  }

  /// Passes rows on, and leaves the end to the stage that it belongs to.
  private final class Forwarding: RowSink {
    private let next: any RowSink
    private(set) var isFailureOfNext = false

    init(_ next: any RowSink) {
      self.next = next
    }

    func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
      do throws(DatabaseError) {
        return try next.take(row)
      } catch {
        isFailureOfNext = true
        throw error
      }
    }

    func finish() {}
  }
}
