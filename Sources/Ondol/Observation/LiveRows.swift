// The answer of a live pipeline whose rows are documents: conditions, columns, an order, and the
// first rows of it. Rows are kept in their order in a tree. With a limit, some more are kept in
// reserve, so that a row that leaves is replaced at once. Only when the reserve is used up does the
// pipeline run again.

internal import OndolEngine

/// A row, and what it is sorted by.
final class LiveRow: Sendable {
  /// The last one is the document's name, or decides among groups.
  let keys: [Value?]
  /// Nil for a row that a condition after the limit leaves out.
  let result: PipelineResult?

  init(keys: [Value?], result: PipelineResult?) {
    self.keys = keys
    self.result = result
  }

  func isSame(as other: LiveRow) -> Bool { keys == other.keys && result == other.result }
}

/// The order of rows.
struct LiveRowOrder: EntryOrder {
  enum Form: Sendable {
    case query([SortOrder])
    case expressions(RowOrder)
  }

  let form: Form

  func key(of entry: LiveRow) -> [Value?] { entry.keys }

  func compare(_ left: [Value?], _ right: [Value?]) -> Int {
    switch form {
    case .query(let orders): orders.compare(left, right)
    case .expressions(let order): order.compare(left, right)
    }
  }
}

extension OrderedTree where Order == LiveRowOrder {
  /// The results from one place up to another.
  func results(from offset: Int, upTo end: Int) -> [PipelineResult] {
    var results: [PipelineResult] = []
    for (place, row) in enumerated() where place >= offset {
      if place >= end { break }
      if let result = row.result { results.append(result) }
    }
    return results
  }

  /// Whether a later tree shows other results before a place.
  func showsOthers(in later: OrderedTree, upTo end: Int) -> Bool {
    let (old, new) = difference(to: later)
    return old.contains { $0.result != nil && (end == .max || find($0.keys).rank < end) }
      || new.contains { $0.result != nil && (end == .max || later.find($0.keys).rank < end) }
  }
}

/// Rows that follow the changes of documents.
struct LiveRows: Sendable {
  private let form: LivePipelineForm
  private var rows: OrderedTree<LiveRowOrder>
  /// Whether no row is missing after the kept ones.
  private var isComplete = true

  /// The rows as of the context.
  init(_ form: LivePipelineForm, _ context: PipelineContext) throws(DatabaseError) {
    self.form = form
    let order = LiveRowOrder(
      form: form.queryOrders.map { .query($0) }
        ?? .expressions(RowOrder(descending: form.documentOrders.map(\.descending))))
    let sink = LiveRowSink(try LiveDocuments(form, context), order, form)
    try PipelineExecution(form.gathering, context).run(into: sink)
    rows = OrderedTree(order, sorted: sink.rows)
    // A query with a limit may have left out documents.
    isComplete = sink.isComplete && (form.queryOrders == nil || rows.count < form.mostKept)
  }

  var results: [PipelineResult] { rows.results(from: form.offset, upTo: form.wanted) }

  /// - Complexity: O(1); O(n) with a condition after the limit.
  var count: Int { form.filtersLast ? results.count : form.count(of: rows.count) }

  mutating func apply(_ changes: some Collection<ObservedChange>) throws(DatabaseError) -> Bool? {
    let old = rows
    let documents = try LiveDocuments(form, form.context())
    for change in changes {
      if form.dependsOnTime(at: change.path) { return nil }
      if let before = form.document(change.path, change.before, change.stamps),
        let row = try documents.row(of: before, isShown: false)
      {
        rows.remove(row.keys)
      }
    }
    for change in changes {
      guard let after = form.document(change.path, change.after, change.stamps),
        let row = try documents.row(of: after)
      else { continue }
      // Otherwise it comes after rows that are not known.
      if isComplete || rows.last.map({ rows.order.compare(row.keys, $0.keys) < 0 }) ?? false {
        rows.insert(row)
      }
    }
    if form.wanted < .max {
      let most = form.mostKept
      while rows.count > most + form.reserve, let last = rows.last {
        rows.remove(last.keys)
        isComplete = false
      }
      if rows.count < form.wanted, !isComplete { return nil }
    }
    return old.showsOthers(in: rows, upTo: form.wanted)
  }
}

/// Makes rows of documents. It stays on its thread.
private final class LiveDocuments {
  private let form: LivePipelineForm
  private let documentStages: LiveStages
  private let lastStages: LiveStages
  private let keys: StageExpressions

  init(_ form: LivePipelineForm, _ context: PipelineContext) throws(DatabaseError) {
    self.form = form
    documentStages = try LiveStages(form.documentStages, form.plan, context)
    lastStages = try LiveStages(form.lastStages, form.plan, context)
    keys = try StageExpressions(
      form.queryOrders == nil ? form.documentOrders.map(\.expression) : [], of: "sort", context)
  }

  /// The row of a document that the query finds; nil when a condition leaves it out.
  func row(of document: PipelineRow, isShown: Bool = true) throws(DatabaseError) -> LiveRow? {
    guard let row = try documentStages(document) else { return nil }
    let keys: [Value?]
    if let orders = form.queryOrders {
      guard let path = document.path else { return nil }
      keys = orders.keys(of: document.fields, name: form.shape.name(of: path))
    } else {
      // Rows that nothing sorts come in an order of documents, and not of their columns.
      keys = try self.keys.values(of: form.orders == nil ? document : row)
    }
    let last = isShown ? try lastStages(row) : nil
    return LiveRow(keys: keys, result: last.map { PipelineResult($0, in: form.database) })
  }
}

/// Gathers the rows of an evaluation, of which a limit needs only the first.
private final class LiveRowSink: RowSink {
  private let documents: LiveDocuments
  private let order: LiveRowOrder
  private let most: Int
  private var gathered: [LiveRow] = []
  private(set) var isComplete = true

  init(_ documents: LiveDocuments, _ order: LiveRowOrder, _ form: LivePipelineForm) {
    self.documents = documents
    self.order = order
    most = form.mostKept
  }

  func take(_ document: PipelineRow) throws(DatabaseError) -> Bool {
    guard let row = try documents.row(of: document) else { return true }
    gathered.append(row)
    if most < .max / 4, gathered.count >= 2 * most + 1_000 { cut() }
    return true
  }

  private func cut() {
    gathered.sort { order.compare($0.keys, $1.keys) < 0 }
    guard gathered.count > most else { return }
    gathered.removeSubrange(most...)
    isComplete = false
  }

  func finish() { cut() }

  /// The first rows in their order.
  var rows: [LiveRow] { gathered }
}
