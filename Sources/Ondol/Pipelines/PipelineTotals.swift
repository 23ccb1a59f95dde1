// Totals of groups beside their rows, as `window` gives them, without keeping a row: when later
// stages group the rows again, the documents are read twice. First the totals are computed, as by
// `aggregate`; then each row gets those of its group. The answer is that of the stages themselves,
// and so is its order: groups come as the sorted rows of the window would have them.

internal import OndolEngine

/// The totals of all groups.
struct TotalsTable: Sendable {
  private var keys = KeyTable()
  private var totals: [[Value?]] = []

  /// Nil when some rows may lack a value that others have as null, which are two groups, or when
  /// the totals take too much memory.
  ///
  /// - Parameters:
  ///   - rows: the values of a group, then its totals.
  ///   - most: bytes.
  init?(_ rows: [PipelineRow], groupCount: Int, most: Int) {
    var (kept, bytes): (Int, [UInt8]) = (0, [])
    for row in rows {
      guard case .columns(_, let values) = row.form else { return nil }
      bytes.removeAll(keepingCapacity: true)
      for value in values.prefix(groupCount) {
        guard let value, !value.isNull else { return nil }
        _ = bytes.append(groupKey: value)
      }
      kept += row.memoryBytes + KeyTable.memoryBytes(bytes.count)
      guard kept <= most else { return nil }
      _ = keys.add(bytes)
      totals.append(Array(values.dropFirst(groupCount)))
    }
  }

  /// The totals of the group with a key.
  func totals(of key: [UInt8]) -> [Value?]? { keys.place(of: key.bytes).map { totals[$0] } }
}

/// `window` with totals that are known.
final class TotalsOperator: RowSink {
  private let keys: StageExpressions
  private var setters: [ColumnSetter]
  private let table: TotalsTable
  private let next: any RowSink
  private var bytes: [UInt8] = []

  init(
    _ windows: [AliasedWindow], groups: [PipelineExpression], _ table: TotalsTable,
    _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    keys = try StageExpressions(groups, of: "window", context)
    setters = windows.map { ColumnSetter($0.name) }
    self.table = table
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    keys.load(row)
    bytes.removeAll(keepingCapacity: true)
    for index in keys.compiled.indices { _ = bytes.append(groupKey: try keys.value(index)) }
    guard let totals = table.totals(of: bytes) else {
      throw DatabaseError(.internal, "the stage window: a row has no totals")
    }
    var row = row
    for (index, total) in totals.enumerated() { row = setters[index].set(total, in: row) }
    return try next.take(row)
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// A pipeline that is carried out twice.
struct TotalsRewrite: Sendable {
  /// Computes the totals.
  let first: PipelinePlan
  private let plan: PipelinePlan
  /// The place of the window, and its groups.
  private let place: Int
  private let groupCount: Int
  /// The stages after the totals are known.
  private let rest: [PipelineStage]

  /// Nil when the pipeline does not have totals of fields whose rows are grouped again.
  init?(_ plan: PipelinePlan) {
    guard case .query(let shape) = plan.source, shape.limit == nil, plan.order.count <= 1,
      let place = plan.rest.firstIndex(where: { !$0.makesRowsOfEach }),
      case .window(let windows, let groups, let sorted) = plan.rest[place], sorted.isEmpty,
      !plan.rest[..<place].contains(where: \.usesChance),
      let names = Self.plainNames(groups),
      Self.plainNames(windows.map(\.window.operand)) != nil,
      windows.allSatisfy({ if case .total = $0.window.kind { true } else { false } })
    else { return nil }
    // Up to the next groups, rows keep the fields by which the window groups.
    var changed = windows.map(\.name)
    var end = place + 1
    search: while end < plan.rest.count {
      switch plan.rest[end] {
      case .filter: break
      case .addFields(let columns): changed += columns.map(\.name)
      default: break search
      }
      end += 1
    }
    guard end < plan.rest.count,
      changed.allSatisfy({ changed in !names.contains { isSame($0, changed) } }),
      changed.allSatisfy({ $0.utf8.allSatisfy { $0 < 0x80 && $0 != UInt8(ascii: ".") } }),
      let columns = Self.groups(of: plan.rest[end])
    else { return nil }
    // Where each of the window's groups is among the columns of the answer.
    var orders: [PipelineOrdering] = []
    for group in groups {
      guard let column = columns.first(where: { $0.expression == group }),
        !column.name.isEmpty, column.name.utf8.allSatisfy({ $0 < 0x80 })
      else { return nil }
      orders.append(PipelineOrdering(Field(FieldPath([column.name])).pipelineExpression))
    }
    self.plan = plan
    self.place = place
    groupCount = groups.count
    first = plan.continued(
      by: plan.rest[..<place] + [
        .aggregate(
          windows.enumerated().map { index, window in
            AliasedAggregate(
              name: "t\(index)",
              aggregate: PipelineAggregate.function("sum", window.window.operand))
          },
          groups: groups.enumerated().map { AliasedExpression(name: "g\($0)", expression: $1) })
      ])
    rest =
      plan.rest[...end] + (orders.isEmpty ? [] : [.sort(orders)]) + plan.rest[(end + 1)...]
  }

  /// The pipeline with the totals that the first one has given; nil when they are no help.
  func second(_ rows: [PipelineRow], in database: Database) -> PipelinePlan? {
    let most = database.pipelineMemory / 4
    guard let table = TotalsTable(rows, groupCount: groupCount, most: most) else { return nil }
    return plan.carriedOut(by: Array(rest), table, at: place)
  }

  /// The names of fields at the top of rows; nil when an expression is anything else.
  private static func plainNames(_ expressions: [PipelineExpression]) -> [String]? {
    var plain: [String] = []
    for expression in expressions {
      guard case .field(let field) = expression.form, field.problem == nil,
        case .names(let names) = field.form, names.count == 1,
        names[0].utf8.allSatisfy({ $0 < 0x80 })
      else { return nil }
      plain.append(names[0])
    }
    return plain
  }

  /// The groups of a stage whose groups do not depend on the order of rows.
  private static func groups(of stage: PipelineStage) -> [AliasedExpression]? {
    switch stage {
    case .distinct(let groups): groups
    case .aggregate(let aggregates, let groups):
      aggregates.contains(where: \.aggregate.seesOrder) ? nil : groups
    default: nil
    }
  }
}

extension PipelineStage {
  /// Whether it looks at one row at a time.
  var makesRowsOfEach: Bool {
    switch self {
    case .filter, .select, .addFields, .removeFields, .replaceWith, .unnest: true
    case .lookup(let lookup): if case .reference = lookup.match { true } else { false }
    default: false
    }
  }

  /// Whether its expressions may give another value the next time.
  fileprivate var usesChance: Bool {
    switch self {
    case .filter(let condition): condition.usesChance
    case .select(let columns), .addFields(let columns):
      columns.contains(where: \.expression.usesChance)
    case .replaceWith(let map, _): map.usesChance
    case .unnest(let array, _): array.expression.usesChance
    case .lookup(let lookup):
      switch lookup.match {
      case .reference(let expression), .equal(_, _, let expression): expression.usesChance
      }
    default: false
    }
  }
}

extension PipelineExpression {
  fileprivate var usesChance: Bool {
    guard case .function(let name, let arguments) = form else { return false }
    return name == ScalarFunction.rand.rawValue || arguments.contains(where: \.usesChance)
  }
}

extension [AliasedWindow] {
  /// Rows of each group that a stage after them keeps at most, which are the first ones; nil when
  /// it keeps others.
  func wanted(by stage: PipelineStage) -> Int? {
    guard case .filter(let condition) = stage,
      allSatisfy({ window in
        switch window.window.operand.form {
        case .field, .constant: true
        default: false
        }
      })
    else { return nil }
    var conditions = [condition]
    if case .function("and", let arguments) = condition.form { conditions = arguments }
    for case .function(let name, let arguments) in conditions.map(\.form) {
      guard arguments.count == 2, case .field(let field) = arguments[0].form,
        case .names(let names) = field.form, names.count == 1,
        case .constant(.integer(let most)) = arguments[1].form, most <= Self.mostLeading,
        contains(where: { window in
          if case .rowNumber = window.window.kind { isSame(window.name, names[0]) } else { false }
        })
      else { continue }
      switch name {
      case "less_than_or_equal", "equal": return Swift.max(0, Int(most))
      case "less_than": return Swift.max(0, Int(most) - 1)
      default: continue
      }
    }
    return nil
  }

  /// Rows of a group beyond which all of them are sorted.
  private static var mostLeading: Int64 { 10_000 }
}
