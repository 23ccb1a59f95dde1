// Stages that pass rows on one by one and keep none: where, select, add_fields, remove_fields,
// replace_with, offset, limit, unnest and sample.

/// `where`: rows for which the condition is true. An error in it is false.
final class FilterOperator: RowSink {
  private let condition: StageExpressions
  private let next: any RowSink

  init(
    _ condition: PipelineExpression, _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    self.condition = try StageExpressions([condition], of: "where", context)
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    condition.load(row)
    return condition.isTrue ? try next.take(row) : true
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// `select`: computed columns instead of the row's fields.
final class ProjectionOperator: RowSink {
  private let columns: StageExpressions
  private let made: ColumnMaker
  private let next: any RowSink

  init(
    _ columns: [AliasedExpression], _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    self.columns = try StageExpressions(columns.map(\.expression), of: "select", context)
    made = ColumnMaker(columns.map(\.name))
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    let values = try columns.values(of: row)
    return try next.take(PipelineRow(row.path, row.stamps, made.form(values)))
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// Makes rows of columns with the same names.
struct ColumnMaker {
  private let names: [String]
  private let layout: RowLayout?

  init(_ names: [String]) {
    self.names = names
    layout = RowLayout(names)
  }

  func form(_ values: [Value?]) -> PipelineRow.Form {
    if let layout { return .columns(layout, values) }
    var fields = [String: Value](minimumCapacity: names.count)
    for (name, value) in zip(names, values) { if let value { fields[name] = value } }
    return .fields(fields)
  }
}

/// `add_fields`: computed columns over the row's fields.
final class AdditionOperator: RowSink {
  private let columns: StageExpressions
  private var setters: [ColumnSetter]
  private let next: any RowSink

  init(
    _ columns: [AliasedExpression], _ context: PipelineContext, _ next: any RowSink
  ) throws(DatabaseError) {
    self.columns = try StageExpressions(columns.map(\.expression), of: "add_fields", context)
    setters = columns.map { ColumnSetter($0.name) }
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    var row = row
    for (index, value) in try columns.values(of: row).enumerated() {
      row = setters[index].set(value, in: row)
    }
    return try next.take(row)
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

extension [String: Value] {
  /// Sets a column. A path leads into maps, unless the row has a column of that very name. An
  /// absent value removes the column.
  mutating func set(_ value: Value?, at name: String) {
    if self[exactly: name] == nil, name.utf8.contains(UInt8(ascii: ".")),
      let names = try? FieldPath(name).names(), names.count > 1
    {
      put(value, along: names[...])
    } else {
      self[name] = value
    }
  }

  /// Puts a value at the end of a path, or removes what is there when it is nil.
  mutating func put(_ value: Value?, along names: ArraySlice<String>) {
    guard let name = names.first else { return }
    guard names.count > 1 else {
      self[name] = value
      return
    }
    let inner = self[exactly: name]?.map
    // Nothing is made only to be removed.
    guard value != nil || inner != nil else { return }
    var nested = inner ?? [:]
    nested.put(value, along: names.dropFirst())
    self[name] = .map(nested)
  }
}

/// `remove_fields`: rows without some fields.
final class RemovalOperator: RowSink {
  private let fields: [PipelineField]
  private let next: any RowSink

  init(_ fields: [PipelineField], _ next: any RowSink) throws(DatabaseError) {
    for field in fields { if let problem = field.problem { throw problem } }
    self.fields = fields
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    var values = row.fields
    for field in fields {
      guard case .names(let names) = field.form else { continue }
      if names.count > 1, values[exactly: field.description] != nil {
        values[field.description] = nil
      } else {
        values.put(nil, along: names[...])
      }
    }
    return try next.take(PipelineRow(row, fields: values))
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// `replace_with`: rows that become a map.
final class ReplacementOperator: RowSink {
  private let map: StageExpressions
  private let replacement: MapReplacement
  private let next: any RowSink

  init(
    _ map: PipelineExpression, _ replacement: MapReplacement, _ context: PipelineContext,
    _ next: any RowSink
  ) throws(DatabaseError) {
    self.map = try StageExpressions([map], of: "replace_with", context)
    self.replacement = replacement
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    map.load(row)
    guard let fields = try map.value(0)?.map else {
      throw DatabaseError(.invalidArgument, "the stage replace_with: a row's value is no map")
    }
    switch replacement {
    case .fullReplace: return try next.take(PipelineRow(row, fields: fields))
    case .mergeOverwriting:
      return try next.take(
        PipelineRow(row, fields: row.fields.merging(fields) { _, new in new }))
    case .mergeKeeping:
      return try next.take(
        PipelineRow(row, fields: row.fields.merging(fields) { own, _ in own }))
    }
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// `offset` and `limit`: all but the first rows, or only the first.
final class PartOperator: RowSink {
  private var skipped: Int
  private var left: Int
  private let next: any RowSink

  init(offset: Int, limit: Int, _ next: any RowSink) {
    skipped = offset
    left = limit
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    guard skipped == 0 else {
      skipped -= 1
      return true
    }
    guard left > 0 else { return false }
    left -= 1
    let wantsMore = try next.take(row)
    return wantsMore && left > 0
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// `unnest`: a row for each element of an array.
final class UnnestOperator: RowSink {
  private let array: StageExpressions
  private var element: ColumnSetter
  private var index: ColumnSetter?
  private let next: any RowSink

  init(
    _ array: AliasedExpression, indexField: String?, _ context: PipelineContext,
    _ next: any RowSink
  ) throws(DatabaseError) {
    self.array = try StageExpressions([array.expression], of: "unnest", context)
    element = ColumnSetter(array.name)
    index = indexField.map { ColumnSetter($0) }
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    array.load(row)
    let value = try array.value(0)
    guard let elements = value?.array else {
      // What is no array stays one row, without a position.
      return try pass(row, value, .null)
    }
    // Decoded once, not for each element.
    let row = row.storedRow == nil ? row : PipelineRow(row, fields: row.fields)
    for (place, element) in elements.enumerated() {
      guard try pass(row, element, .integer(Int64(place))) else { return false }
    }
    return true
  }

  private func pass(
    _ row: PipelineRow, _ value: Value?, _ place: Value
  ) throws(DatabaseError) -> Bool {
    let made = element.set(value, in: row)
    return try next.take(index?.set(place, in: made) ?? made)
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// `sample` by a share: each row with a probability.
final class ShareOperator: RowSink {
  private let share: Double
  private let frame: EvaluationFrame
  private let next: any RowSink

  init(_ share: Double, _ context: PipelineContext, _ next: any RowSink) {
    self.share = share
    self.next = next
    frame = context.frame(variables: 0)
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    frame.nextRandom() < share ? try next.take(row) : true
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// `sample` of a number of rows: each row draws a number, and those with the least numbers stay.
/// They are sorted like any rows, so that a sample may be larger than the memory.
final class SampleOperator: RowSink {
  private let context: PipelineContext
  private let next: any RowSink
  private var rows: SortedRows<PipelineRow>

  init(_ count: Int, _ context: PipelineContext, _ next: any RowSink) {
    self.context = context
    self.next = next
    rows = SortedRows(RowOrder(descending: [false]), limit: count, in: "sample", context)
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    try rows.add(row, keys: [.integer(context.database.random(below: .max))])
    return true
  }

  func finish() throws(DatabaseError) {
    var drawn = try rows.finish()
    while let row = try drawn.next() { guard try next.take(row.payload) else { break } }
    try next.finish()
  }
}
