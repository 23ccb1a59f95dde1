// Stages that keep rows until the last one has come: sort, find_nearest and window. A sort before a
// limit keeps only about as many rows as the limit.

/// Compares rows by values and directions: absent values first, then in the order of values.
struct RowOrder: Sendable {
  let descending: [Bool]

  func compare(_ left: [Value?], _ right: [Value?]) -> Int {
    for place in descending.indices {
      let order = ScalarFunction.completeOrder(left[place], right[place])
      if order != 0 { return descending[place] ? -order : order }
    }
    return 0
  }
}

/// Rows with the values that they are sorted by, and their position before, which decides ties.
struct SortedRows {
  private struct Entry {
    var keys: [Value?]
    var place: Int
    var row: PipelineRow
    var bytes: Int
  }

  private let order: RowOrder
  private let stage: StaticString
  private let context: PipelineContext
  /// Rows that are wanted; the others may be dropped.
  private let limit: Int
  private var entries: [Entry] = []
  private var seen = 0

  init(_ order: RowOrder, limit: Int, in stage: StaticString, _ context: PipelineContext) {
    self.order = order
    self.limit = limit
    self.stage = stage
    self.context = context
  }

  mutating func add(_ row: PipelineRow, keys: [Value?]) throws(DatabaseError) {
    let bytes =
      row.memoryBytes + keys.reduce(PipelineContext.overhead) { $0 + ($1?.memoryBytes ?? 0) + 24 }
    try context.keep(bytes, in: stage)
    entries.append(Entry(keys: keys, place: seen, row: row, bytes: bytes))
    seen += 1
    let (most, overflow) = limit.multipliedReportingOverflow(by: 2)
    if !overflow, entries.count > max(most, 1_024) { shrink() }
  }

  /// Drops the rows that cannot be among the wanted ones any more.
  private mutating func shrink() {
    sort()
    for entry in entries.dropFirst(limit) { context.release(entry.bytes) }
    entries.removeSubrange(min(limit, entries.count)...)
  }

  private mutating func sort() {
    entries.sort { left, right in
      let compared = order.compare(left.keys, right.keys)
      return compared != 0 ? compared < 0 : left.place < right.place
    }
  }

  /// The wanted rows with their keys, in order.
  mutating func finish() -> [(row: PipelineRow, keys: [Value?])] {
    shrink()
    return entries.map { ($0.row, $0.keys) }
  }
}

/// `sort`: rows in the order of expressions.
final class SortOperator: RowSink {
  private let keys: StageExpressions
  private var rows: SortedRows
  private let next: any RowSink

  /// - Parameter limit: rows that the stages after it want.
  init(
    _ orders: [PipelineOrdering], limit: Int, _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    keys = try StageExpressions(orders.map(\.expression), of: "sort", context)
    rows = SortedRows(
      RowOrder(descending: orders.map(\.descending)), limit: limit, in: "sort", context)
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    try rows.add(row, keys: keys.values(of: row))
    return true
  }

  func finish() throws(DatabaseError) {
    for (row, _) in rows.finish() { guard try next.take(row) else { break } }
    try next.finish()
  }
}

/// `find_nearest`: rows in the order of the distance of a vector. Rows without a vector of the same
/// length are left out.
final class NearestOperator: RowSink {
  private let search: NearestSearch
  private let field: StageExpressions
  private var rows: SortedRows
  private let next: any RowSink

  init(
    _ search: NearestSearch, _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    self.search = search
    self.next = next
    field = try StageExpressions([search.field], of: "find_nearest", context)
    rows = SortedRows(
      RowOrder(descending: [search.measure == .dotProduct]), limit: search.limit ?? .max,
      in: "find_nearest", context)
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    field.load(row)
    let sought = search.vector.components
    if let vector = try field.value(0)?.vector, vector.components.count == sought.count {
      let distance = search.measure.distance(vector.components, sought)
      try rows.add(row, keys: [.double(distance)])
    }
    return true
  }

  func finish() throws(DatabaseError) {
    for (row, keys) in rows.finish() {
      var found = row
      if let name = search.distanceField, let distance = keys[0] {
        var fields = row.fields
        fields.set(distance, at: name)
        found = PipelineRow(row, fields: fields)
      }
      guard try next.take(found) else { break }
    }
    try next.finish()
  }
}

/// `window`: values that depend on a row's place among the sorted rows of its group.
final class WindowOperator: RowSink {
  private let keys: StageExpressions
  private let groupCount: Int
  private let order: RowOrder
  private var rows: SortedRows
  private let windows: [AliasedWindow]
  private let operands: StageExpressions
  private let next: any RowSink

  init(
    _ windows: [AliasedWindow], groups: [PipelineExpression], orders: [PipelineOrdering],
    _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    for case .lag(_, let count) in windows.map(\.window.kind) where count < 1 {
      throw DatabaseError(.invalidArgument, "the stage window: lag goes back 1 row or more")
    }
    keys = try StageExpressions(groups + orders.map(\.expression), of: "window", context)
    groupCount = groups.count
    order = RowOrder(
      descending: groups.map { _ in false } + orders.map(\.descending))
    rows = SortedRows(order, limit: .max, in: "window", context)
    self.windows = windows
    operands = try StageExpressions(windows.map(\.window.operand), of: "window", context)
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    try rows.add(row, keys: keys.values(of: row))
    return true
  }

  func finish() throws(DatabaseError) {
    let sorted = rows.finish()
    let groups = RowOrder(descending: Array(order.descending.prefix(groupCount)))
    var start = 0
    while start < sorted.count {
      var end = start + 1
      while end < sorted.count, groups.compare(sorted[start].keys, sorted[end].keys) == 0 {
        end += 1
      }
      guard try pass(sorted[start..<end]) else { break }
      start = end
    }
    try next.finish()
  }

  /// Passes on the rows of one group.
  private func pass(
    _ group: ArraySlice<(row: PipelineRow, keys: [Value?])>
  ) throws(DatabaseError) -> Bool {
    var values: [[Value?]] = []
    values.reserveCapacity(group.count)
    for (row, _) in group { values.append(try operands.values(of: row)) }
    var state = WindowState(windows.map(\.window.kind), values)
    var previous: [Value?]?
    for (place, entry) in group.enumerated() {
      let isEqual = previous.map { order.compare($0, entry.keys) == 0 } ?? false
      previous = entry.keys
      var fields = entry.row.fields
      for (index, value) in state.next(at: place, isEqualToPrevious: isEqual).enumerated() {
        fields.set(value, at: windows[index].name)
      }
      guard try next.take(PipelineRow(entry.row, fields: fields)) else { return false }
    }
    return true
  }
}

/// The windows of one group as its rows pass.
private struct WindowState {
  private let kinds: [PipelineWindow.Kind]
  private let values: [[Value?]]
  private var sums: [Aggregator]
  private var totals: [Value?]
  private var rank = 0
  private var denseRank = 0

  init(_ kinds: [PipelineWindow.Kind], _ values: [[Value?]]) {
    self.kinds = kinds
    self.values = values
    let fresh = Aggregator(.sum(FieldPath("sum")))
    sums = kinds.map { _ in fresh }
    totals = kinds.indices.map { index in
      guard case .total = kinds[index] else { return nil }
      var total = fresh
      for row in values { total.add(row[index]) }
      return total.result
    }
  }

  /// The windows' values for the row at a place.
  mutating func next(at place: Int, isEqualToPrevious: Bool) -> [Value?] {
    if !isEqualToPrevious {
      rank = place + 1
      denseRank += 1
    }
    var result: [Value?] = []
    for index in kinds.indices {
      switch kinds[index] {
      case .rowNumber: result.append(.integer(Int64(place + 1)))
      case .rank: result.append(.integer(Int64(rank)))
      case .denseRank: result.append(.integer(Int64(denseRank)))
      case .runningSum:
        sums[index].add(values[place][index])
        result.append(sums[index].result)
      case .total: result.append(totals[index])
      case .lag(_, let count): result.append(place < count ? nil : values[place - count][index])
      }
    }
    return result
  }
}

extension PipelineWindow {
  /// The expression whose values the window uses; null when it uses none.
  fileprivate var operand: PipelineExpression {
    switch kind {
    case .rowNumber, .rank, .denseRank: PipelineExpression(.null)
    case .runningSum(let operand), .total(let operand), .lag(let operand, _): operand
    }
  }
}
