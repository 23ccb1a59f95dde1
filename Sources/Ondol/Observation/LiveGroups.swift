// The answer of a live pipeline whose rows are groups. What a document adds to its group can be
// taken away again, so a change costs as much as the groups that it concerns, and the logarithm of
// their number. The groups are in the order of their values in one tree, and when a stage sorts
// them, in a second one by what they are sorted by.

internal import OndolEngine

/// One aggregate of a live group.
struct LiveColumn: Sendable {
  private enum State: Sendable {
    case count(Int)
    case number(Aggregator)
    case extreme(LiveExtreme)
  }

  private let kind: AggregateColumn.Kind
  private let countsRows: Bool
  private var state: State

  /// An aggregate of no rows. Nil for one from which rows cannot be taken away.
  init?(_ aggregate: PipelineAggregate) {
    guard let kind = AggregateColumn.Kind(rawValue: aggregate.name) else { return nil }
    self.kind = kind
    countsRows = aggregate.argument == nil
    guard kind == .count || !countsRows else { return nil }
    // The path only names what is aggregated; values come from expressions.
    let path = FieldPath(kind.rawValue)
    switch kind {
    case .count, .countIf: state = .count(0)
    case .sum: state = .number(Aggregator(.sum(path)))
    case .average: state = .number(Aggregator(.average(path)))
    case .minimum, .maximum: state = .extreme(LiveExtreme(isMinimum: kind == .minimum))
    default: return nil
    }
  }

  private func counts(_ value: Value?) -> Bool {
    if kind == .countIf { return value == .boolean(true) }
    return countsRows || value.map { !$0.isNull } ?? false
  }

  mutating func add(_ value: Value?) {
    switch state {
    case .count(let count): state = .count(count + (counts(value) ? 1 : 0))
    case .number(var number):
      // Not copied while it is changed.
      state = .count(0)
      number.add(value)
      state = .number(number)
    case .extreme(var extreme):
      state = .count(0)
      extreme.add(value)
      state = .extreme(extreme)
    }
  }

  /// Takes a row away that was added before. Returns false when the aggregate is unknown
  /// afterwards.
  mutating func remove(_ value: Value?) -> Bool {
    switch state {
    case .count(let count): state = .count(count - (counts(value) ? 1 : 0))
    case .number(var number):
      state = .count(0)
      let isKnown = number.remove(value)
      state = .number(number)
      return isKnown
    case .extreme(var extreme):
      state = .count(0)
      let isKnown = extreme.remove(value)
      state = .extreme(extreme)
      return isKnown
    }
    return true
  }

  var result: Value {
    switch state {
    case .count(let count): .integer(Int64(count))
    case .number(let number): number.result ?? .null
    case .extreme(let extreme): extreme.result ?? .null
    }
  }

  /// Its approximate memory in bytes.
  var memoryBytes: Int {
    switch state {
    case .count: 64
    // A sum of doubles has an array of its own.
    case .number: 768
    case .extreme(let extreme): extreme.memoryBytes
    }
  }
}

/// The least or the greatest of values that come and go. It keeps the sixteen nearest to the end,
/// so that it knows the next one when the first goes.
struct LiveExtreme: Sendable {
  private static let most = 16

  private let isMinimum: Bool
  /// In order, the least or the greatest first, each with its number of rows.
  private var values: [(value: Value, count: Int)] = []
  /// Whether every value is among them. Otherwise all others come after them.
  private var isComplete = true

  init(isMinimum: Bool) {
    self.isMinimum = isMinimum
  }

  /// The place of the value, or the one that it would have.
  private func place(of value: Value) -> (place: Int, isKnown: Bool) {
    let place = values.partition { known in
      let order = ValueOrder.compare(known.value, value)
      return isMinimum ? order < 0 : order > 0
    }
    return (place, place < values.count && ValueOrder.compare(values[place].value, value) == 0)
  }

  mutating func add(_ value: Value?) {
    guard let value, !value.isNull else { return }
    let (place, isKnown) = place(of: value)
    if isKnown {
      values[place].count += 1
    } else if place < values.count || isComplete {
      values.insert((value, 1), at: place)
      guard values.count > Self.most else { return }
      values.removeLast()
      isComplete = false
    }
  }

  /// Takes away a value that was added. Returns false when the extreme is unknown afterwards.
  mutating func remove(_ value: Value?) -> Bool {
    guard let value, !value.isNull else { return true }
    let (place, isKnown) = place(of: value)
    // One that is not kept comes after all that are.
    guard isKnown else { return !isComplete && place == values.count }
    values[place].count -= 1
    if values[place].count == 0 { values.remove(at: place) }
    return !values.isEmpty || isComplete
  }

  var result: Value? { values.first?.value }

  var memoryBytes: Int {
    values.reduce(64) { $0 + $1.value.memoryBytes + Value.inlineBytes + 16 }
  }
}

/// A group.
final class LiveGroup: Sendable {
  let key: [Value]
  let rowCount: Int
  let columns: [LiveColumn]
  /// What is shown of it; nil when a condition leaves it out.
  let row: LiveRow?

  init(key: [Value], rowCount: Int, columns: [LiveColumn], row: LiveRow?) {
    self.key = key
    self.rowCount = rowCount
    self.columns = columns
    self.row = row
  }

  var memoryBytes: Int {
    LiveGroupDraft(self).memoryBytes
  }
}

/// Groups by their values.
struct LiveGroupOrder: EntryOrder {
  func key(of entry: LiveGroup) -> [Value] { entry.key }

  func compare(_ left: [Value], _ right: [Value]) -> Int {
    for (left, right) in zip(left, right) {
      let order = ValueOrder.compare(left, right)
      if order != 0 { return order }
    }
    return 0
  }
}

/// A group while rows are added and taken away.
private struct LiveGroupDraft {
  let key: [Value]
  private(set) var rowCount: Int
  private(set) var columns: [LiveColumn]

  init(key: [Value], _ columns: [LiveColumn]) {
    self.key = key
    rowCount = 0
    self.columns = columns
  }

  init(_ group: LiveGroup) {
    key = group.key
    rowCount = group.rowCount
    columns = group.columns
  }

  mutating func add(_ values: [Value?]) {
    rowCount += 1
    for place in columns.indices { columns[place].add(values[place]) }
  }

  mutating func remove(_ values: [Value?]) -> Bool {
    rowCount -= 1
    var isKnown = rowCount >= 0
    for place in columns.indices { isKnown = columns[place].remove(values[place]) && isKnown }
    return isKnown
  }

  var memoryBytes: Int {
    key.reduce(2 * PipelineContext.overhead) { $0 + $1.memoryBytes + Value.inlineBytes }
      + columns.reduce(0) { $0 + $1.memoryBytes }
  }
}

/// Groups that follow the changes of documents.
struct LiveGroups: Sendable {
  private let form: LivePipelineForm
  private var groups: OrderedTree<LiveGroupOrder>
  /// The shown groups in the order of the stage that sorts; nil when none does.
  private var sorted: OrderedTree<LiveRowOrder>?
  private var bytes: Int

  /// The groups as of the context; nil when they take too much memory.
  init?(_ form: LivePipelineForm, _ context: PipelineContext) throws(DatabaseError) {
    guard let groups = form.groups else { return nil }
    self.form = form
    var drafts: [[Value]: LiveGroupDraft] = [:]
    // Without groups there is one result even of no rows.
    if groups.isEmpty { drafts[[]] = LiveGroupDraft(key: [], form.columns) }
    let room = form.database.pipelineMemory
    var used = 0
    let sink = try ContributionSink(form.aggregates, groups: groups, context) { key, values in
      let index = drafts.index(forKey: key)
      if let index {
        drafts.values[index].add(values)
      } else {
        var draft = LiveGroupDraft(key: key, form.columns)
        draft.add(values)
        used += draft.memoryBytes
        drafts[key] = draft
      }
      return used <= room
    }
    try PipelineExecution(form.gathering, context).run(into: sink)
    guard used <= room else { return nil }
    let rows = try LiveGroupRows(form, context)
    var all: [LiveGroup] = []
    all.reserveCapacity(drafts.count)
    for draft in drafts.values { all.append(try rows.group(of: draft)) }
    let order = LiveGroupOrder()
    all.sort { order.compare($0.key, $1.key) < 0 }
    self.groups = OrderedTree(order, sorted: all)
    bytes = all.reduce(0) { $0 + $1.memoryBytes }
    if let orders = form.orders {
      let order = LiveRowOrder(
        form: .expressions(RowOrder(descending: orders.map(\.descending))))
      sorted = OrderedTree(
        order, sorted: all.compactMap(\.row).sorted { order.compare($0.keys, $1.keys) < 0 })
    }
  }

  var results: [PipelineResult] {
    if let sorted { return sorted.results(from: form.offset, upTo: form.wanted) }
    return groups.compactMap { $0.row?.result }
  }

  /// - Complexity: O(1); O(n) with a condition on groups that nothing sorts, or one after a limit.
  var count: Int {
    if form.filtersLast || sorted == nil && form.filtersGroups { return results.count }
    return form.count(of: sorted?.count ?? groups.count)
  }

  mutating func apply(_ changes: some Collection<ObservedChange>) throws(DatabaseError) -> Bool? {
    let (oldGroups, oldSorted) = (groups, sorted)
    let context = try form.context()
    guard let drafts = try drafts(changes, context) else { return nil }
    let rows = try LiveGroupRows(form, context)
    for draft in drafts.values {
      let known = groups.find(draft.key).entry
      bytes -= known?.memoryBytes ?? 0
      guard draft.rowCount > 0 || draft.key.isEmpty else {
        groups.remove(draft.key)
        if let row = known?.row { sorted?.remove(row.keys) }
        continue
      }
      let group = try rows.group(of: draft)
      bytes += group.memoryBytes
      groups.insert(group)
      // A row that stays the same stays in its place.
      if let old = known?.row, let new = group.row, old.isSame(as: new) { continue }
      if let row = known?.row { sorted?.remove(row.keys) }
      if let row = group.row { sorted?.insert(row) }
    }
    if bytes > form.database.pipelineMemory { return nil }
    if let oldSorted, let sorted {
      return oldSorted.showsOthers(in: sorted, upTo: form.wanted)
    }
    let (before, after) = oldGroups.difference(to: groups)
    return before.compactMap { $0.row?.result } != after.compactMap { $0.row?.result }
  }

  /// The groups that changes concern, with what is added and taken away; nil when the changes do
  /// not determine them.
  private func drafts(
    _ changes: some Collection<ObservedChange>, _ context: PipelineContext
  ) throws(DatabaseError) -> [[Value]: LiveGroupDraft]? {
    guard let groupExpressions = form.groups else { return nil }
    var drafts: [[Value]: LiveGroupDraft] = [:]
    var isKnown = true
    var isAdding = true
    let end = try ContributionSink(form.aggregates, groups: groupExpressions, context) {
      key, values in
      var draft =
        drafts.removeValue(forKey: key)
        ?? groups.find(key).entry.map { LiveGroupDraft($0) }
        ?? LiveGroupDraft(key: key, form.columns)
      if isAdding {
        draft.add(values)
      } else {
        isKnown = draft.remove(values) && isKnown
      }
      drafts[key] = draft
      return true
    }
    let sink = try PipelineExecution(form.plan, context, depth: 1)
      .sink(of: form.documentStages, into: end)
    // First what comes, so that a least value that is only replaced is known.
    for change in changes {
      if form.dependsOnTime(at: change.path) { return nil }
      if let after = form.document(change.path, change.after, change.stamps) {
        _ = try sink.take(after)
      }
    }
    isAdding = false
    for change in changes {
      if let before = form.document(change.path, change.before, change.stamps) {
        _ = try sink.take(before)
      }
    }
    return isKnown ? drafts : nil
  }
}

/// Makes rows of groups. It stays on its thread.
private final class LiveGroupRows {
  private let form: LivePipelineForm
  private let groupStages: LiveStages
  private let lastStages: LiveStages
  private let keys: StageExpressions

  init(_ form: LivePipelineForm, _ context: PipelineContext) throws(DatabaseError) {
    self.form = form
    groupStages = try LiveStages(form.groupStages, form.plan, context)
    lastStages = try LiveStages(form.lastStages, form.plan, context)
    keys = try StageExpressions((form.orders ?? []).map(\.expression), of: "sort", context)
  }

  func group(of draft: LiveGroupDraft) throws(DatabaseError) -> LiveGroup {
    var fields: [String: Value] = [:]
    for (group, value) in zip(form.groups ?? [], draft.key) { fields[group.name] = value }
    for (aggregate, column) in zip(form.aggregates, draft.columns) {
      fields[aggregate.name] = column.result
    }
    var row: LiveRow?
    if let shown = try groupStages(PipelineRow(fields)) {
      let last = try lastStages(shown)
      row = LiveRow(
        keys: try keys.values(of: shown),
        result: last.map { PipelineResult($0, in: form.database) })
    }
    return LiveGroup(
      key: draft.key, rowCount: draft.rowCount, columns: draft.columns, row: row)
  }
}
