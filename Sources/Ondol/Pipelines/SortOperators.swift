// Stages that pass rows on only after the last one has come: sort, find_nearest and window. A sort
// before a limit keeps only about as many rows as the limit.

internal import OndolEngine

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

/// `sort`: rows in the order of expressions.
final class SortOperator: RowSink {
  private let keys: StageExpressions
  private var rows: SortedRows<PipelineRow>
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
    var sorted = try rows.finish()
    while let row = try sorted.next() { guard try next.take(row.payload) else { break } }
    try next.finish()
  }
}

/// `find_nearest`: rows in the order of the distance of a vector. Rows without a vector of the same
/// length are left out.
final class NearestOperator: RowSink {
  private let search: NearestSearch
  private let field: StageExpressions
  private var distance: ColumnSetter?
  private var rows: SortedRows<PipelineRow>
  private let next: any RowSink

  init(
    _ search: NearestSearch, _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    self.search = search
    self.next = next
    distance = search.distanceField.map { ColumnSetter($0) }
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
    var sorted = try rows.finish()
    while let row = try sorted.next() {
      let found = distance?.set(row.keys[0], in: row.payload) ?? row.payload
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
  private var rows: SortedRows<PipelineRow>
  private let windows: [AliasedWindow]
  private var setters: [ColumnSetter]
  private let operands: StageExpressions
  private let context: PipelineContext
  private let next: any RowSink
  /// The first rows of each group, when no others are wanted and they fit the memory.
  private var leading: LeadingRows?
  private var count = 0

  /// - Parameter wanted: rows of each group that the next stage keeps at most, the first ones.
  init(
    _ windows: [AliasedWindow], groups: [PipelineExpression], orders: [PipelineOrdering],
    wanted: Int?, _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    for case .lag(_, let count) in windows.map(\.window.kind) where count < 1 {
      throw DatabaseError(.invalidArgument, "the stage window: lag goes back 1 row or more")
    }
    keys = try StageExpressions(groups + orders.map(\.expression), of: "window", context)
    groupCount = groups.count
    order = RowOrder(
      descending: groups.map { _ in false } + orders.map(\.descending))
    rows = SortedRows(order, limit: .max, in: "window", context)
    if let wanted, !windows.contains(where: \.window.isOfWholeGroup) {
      leading = LeadingRows(order, groupCount: groups.count, limit: wanted)
    }
    self.windows = windows
    setters = windows.map { ColumnSetter($0.name) }
    self.context = context
    operands = try StageExpressions(windows.map(\.window.operand), of: "window", context)
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    let keyed = SortedRow(keys: try keys.values(of: row), place: count, payload: row)
    count += 1
    guard leading != nil else {
      try rows.add(keyed)
      return true
    }
    let bytes = leading?.add(keyed) ?? 0
    let hasRoom = context.hasRoom(for: bytes)
    context.keep(bytes)
    if !hasRoom { try dropLeading() }
    return true
  }

  /// Continues with rows that may go to the scratch file.
  private func dropLeading() throws(DatabaseError) {
    guard var dropped = leading else { return }
    leading = nil
    for row in dropped.takeAll() {
      context.release(row.memoryBytes)
      try rows.add(row)
    }
  }

  func finish() throws(DatabaseError) {
    try dropLeading()
    var sorted = try rows.finish()
    let groups = RowOrder(descending: Array(order.descending.prefix(groupCount)))
    // Totals are known only after the last row of a group.
    if windows.contains(where: \.window.isOfWholeGroup) {
      var group = WindowGroup(operands, windows.map(\.window.kind), context)
      var isFull = false
      while !isFull, let row = try sorted.next() {
        if let last = group.lastKeys, groups.compare(last, row.keys) != 0 {
          isFull = try !passAll(of: &group)
        }
        if !isFull { try group.add(row) }
      }
      if !isFull { _ = try passAll(of: &group) }
    } else {
      var state = WindowState(windows.map(\.window.kind))
      while let row = try sorted.next() {
        if let last = state.lastKeys, groups.compare(last, row.keys) != 0 {
          context.release(state.lagBytes)
          state = WindowState(windows.map(\.window.kind))
        }
        guard try pass(row, &state) else { break }
      }
    }
    try next.finish()
  }

  private func passAll(of group: inout WindowGroup) throws(DatabaseError) -> Bool {
    var (rows, state) = try group.finish()
    while let row = try rows.next() {
      guard try pass(row, &state) else { return false }
    }
    context.release(state.lagBytes)
    return true
  }

  private func pass(
    _ row: SortedRow<PipelineRow>, _ state: inout WindowState
  ) throws(DatabaseError) -> Bool {
    let values = try operands.values(of: row.payload)
    let kept = state.lagBytes
    let results = state.next(values, row.keys, order)
    try context.keep(state.lagBytes - kept, in: "window")
    var made = row.payload
    for (index, value) in results.enumerated() { made = setters[index].set(value, in: made) }
    return try next.take(made)
  }
}

/// The first rows of each group: of each a heap with the last of them first.
private struct LeadingRows {
  private let order: RowOrder
  private let groupCount: Int
  private let limit: Int
  private var groups = KeyTable()
  private var heaps: [[SortedRow<PipelineRow>]] = []
  private var bytes: [UInt8] = []

  init(_ order: RowOrder, groupCount: Int, limit: Int) {
    self.order = order
    self.groupCount = groupCount
    self.limit = limit
  }

  /// Adds a row after all others; returns how many more bytes are kept.
  mutating func add(_ row: SortedRow<PipelineRow>) -> Int {
    guard limit > 0 else { return 0 }
    bytes.removeAll(keepingCapacity: true)
    for value in row.keys.prefix(groupCount) {
      // Rows without a value are a group before those of null.
      if value == nil { bytes.append(0) } else { _ = bytes.append(groupKey: value) }
    }
    let place: Int
    if let known = groups.place(of: bytes.bytes) {
      place = known
    } else {
      place = groups.add(bytes)
      heaps.append([])
    }
    guard heaps[place].count == limit else {
      heaps[place].append(row)
      rise(in: &heaps[place])
      return row.memoryBytes
    }
    // Of rows in the same place the earlier ones come first.
    guard order.compare(row.keys, heaps[place][0].keys) < 0 else { return 0 }
    let dropped = heaps[place][0].memoryBytes
    heaps[place][0] = row
    sink(in: &heaps[place])
    return row.memoryBytes - dropped
  }

  /// All rows, in no order. None are left.
  mutating func takeAll() -> [SortedRow<PipelineRow>] {
    defer { heaps = [] }
    return heaps.flatMap(\.self)
  }

  private func rise(in heap: inout [SortedRow<PipelineRow>]) {
    var place = heap.count - 1
    while place > 0, order.precedes(heap[(place - 1) / 2], heap[place]) {
      heap.swapAt(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  private func sink(in heap: inout [SortedRow<PipelineRow>]) {
    var place = 0
    while true {
      var last = place
      for child in [2 * place + 1, 2 * place + 2] where child < heap.count {
        if order.precedes(heap[last], heap[child]) { last = child }
      }
      if last == place { return }
      heap.swapAt(place, last)
      place = last
    }
  }
}

/// The rows of one group until all have come, and the totals of their values.
private struct WindowGroup {
  private let operands: StageExpressions
  private let kinds: [PipelineWindow.Kind]
  private let context: PipelineContext
  private var rows: SortedRows<PipelineRow>
  private var totals: [Aggregator]
  private(set) var lastKeys: [Value?]?

  init(
    _ operands: StageExpressions, _ kinds: [PipelineWindow.Kind], _ context: PipelineContext
  ) {
    self.operands = operands
    self.kinds = kinds
    self.context = context
    (rows, totals) = Self.fresh(kinds, context)
  }

  /// They come in their order, so that there is nothing to compare but their places.
  private static func fresh(
    _ kinds: [PipelineWindow.Kind], _ context: PipelineContext
  ) -> (SortedRows<PipelineRow>, [Aggregator]) {
    (
      SortedRows(RowOrder(descending: []), limit: .max, in: "window", context),
      kinds.map { _ in WindowState.sum }
    )
  }

  mutating func add(_ row: SortedRow<PipelineRow>) throws(DatabaseError) {
    let values = try operands.values(of: row.payload)
    for index in kinds.indices { totals[index].add(values[index]) }
    lastKeys = row.keys
    try rows.add(row.payload, keys: row.keys)
  }

  /// The rows so far, and the state that knows their totals. After that the group is empty.
  mutating func finish() throws(DatabaseError) -> (SortedReading<PipelineRow>, WindowState) {
    let reading = try rows.finish()
    let state = WindowState(kinds, totals: totals.map(\.result))
    (rows, totals) = Self.fresh(kinds, context)
    lastKeys = nil
    return (reading, state)
  }
}

/// The windows of one group as its rows pass.
private struct WindowState {
  static let sum = Aggregator(.sum(FieldPath("sum")))

  private let kinds: [PipelineWindow.Kind]
  private var sums: [Aggregator]
  private let totals: [Value?]
  /// For each window the values of the rows before, as far as it looks back, the earliest at
  /// `place % count`.
  private var earlier: [[Value?]]
  private(set) var lastKeys: [Value?]?
  /// Bytes of the values in `earlier`.
  private(set) var lagBytes = 0
  private var place = 0
  private var rank = 0
  private var denseRank = 0

  init(_ kinds: [PipelineWindow.Kind], totals: [Value?] = []) {
    self.kinds = kinds
    self.totals = totals
    sums = kinds.map { _ in Self.sum }
    earlier = kinds.map { _ in [] }
  }

  /// The windows' values for the next row.
  mutating func next(_ values: [Value?], _ keys: [Value?], _ order: RowOrder) -> [Value?] {
    if lastKeys.map({ order.compare($0, keys) != 0 }) ?? true {
      rank = place + 1
      denseRank += 1
    }
    lastKeys = keys
    var result: [Value?] = []
    for index in kinds.indices {
      switch kinds[index] {
      case .rowNumber: result.append(.integer(Int64(place + 1)))
      case .rank: result.append(.integer(Int64(rank)))
      case .denseRank: result.append(.integer(Int64(denseRank)))
      case .runningSum:
        sums[index].add(values[index])
        result.append(sums[index].result)
      case .total: result.append(totals[index])
      case .lag(_, let count): result.append(lag(values[index], count, in: index))
      }
    }
    place += 1
    return result
  }

  /// The value that many rows before, instead of which this one is kept.
  private mutating func lag(_ value: Value?, _ count: Int, in index: Int) -> Value? {
    lagBytes += (value?.memoryBytes ?? 0) + Value.inlineBytes
    guard place >= count else {
      earlier[index].append(value)
      return nil
    }
    let old = earlier[index][place % count]
    earlier[index][place % count] = value
    lagBytes -= (old?.memoryBytes ?? 0) + Value.inlineBytes
    return old
  }
}

extension PipelineWindow {
  /// Whether its value depends on later rows of the group.
  fileprivate var isOfWholeGroup: Bool { if case .total = kind { true } else { false } }

  /// The expression whose values the window uses; null when it uses none.
  var operand: PipelineExpression {
    switch kind {
    case .rowNumber, .rank, .denseRank: PipelineExpression(.null)
    case .runningSum(let operand), .total(let operand), .lag(let operand, _): operand
    }
  }
}
