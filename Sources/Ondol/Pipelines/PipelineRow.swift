// A row on its way through a pipeline: a stored document that nothing has changed yet, whose fields
// are read from its bytes when they are asked for, or fields that a stage has made. Most stages
// make the same columns for each row. Then a row has its values side by side, and shares their
// names.

/// The names of the columns of many rows. A class, so that a stage sees at once that a row has the
/// columns of the row before.
final class RowLayout: Sendable {
  let names: [String]

  /// Nil when two of the names might be spellings of one, which only a dictionary finds.
  init?(_ names: [String]) {
    guard names.allSatisfy({ $0.utf8.allSatisfy { $0 < 0x80 } }) else { return nil }
    self.names = names
  }

  /// The place of the column with exactly this name.
  func place(of name: String) -> Int? { names.firstIndex { isSame($0, name) } }
}

/// One row.
struct PipelineRow: Sendable {
  enum Form: Sendable {
    case document(DocumentSnapshot.Contents)
    case fields([String: Value])
    /// A value for each column, nil where it is absent.
    case columns(RowLayout, [Value?])
  }

  /// The document that the row is; nil once a stage has made another thing of it.
  private(set) var path: DocumentPath?
  private(set) var stamps: DocumentStamps?
  let form: Form

  /// A stored document.
  init(_ path: DocumentPath, _ contents: DocumentSnapshot.Contents) {
    self.path = path
    stamps = contents.stamps
    form = .document(contents)
  }

  /// Fields that are no document.
  init(_ fields: [String: Value]) {
    form = .fields(fields)
  }

  /// Columns that are no document.
  init(_ layout: RowLayout, _ values: [Value?]) {
    form = .columns(layout, values)
  }

  /// A row with these fields that is still the document, if `row` was one.
  init(_ row: PipelineRow, fields: [String: Value]) {
    path = row.path
    stamps = row.stamps
    form = .fields(fields)
  }

  /// A row with these columns that is still the document, if `row` was one.
  init(_ row: PipelineRow, _ layout: RowLayout, _ values: [Value?]) {
    path = row.path
    stamps = row.stamps
    form = .columns(layout, values)
  }

  /// A row of this form that is the document at `path`.
  init(_ path: DocumentPath?, _ stamps: DocumentStamps?, _ form: Form) {
    self.path = path
    self.stamps = stamps
    self.form = form
  }

  /// All fields.
  ///
  /// - Complexity: O(size of the document) while nothing has changed it.
  var fields: [String: Value] {
    switch form {
    case .document(let contents): return contents.fields
    case .fields(let fields): return fields
    case .columns(let layout, let values):
      var fields = [String: Value](minimumCapacity: values.count)
      for (name, value) in zip(layout.names, values) { if let value { fields[name] = value } }
      return fields
    }
  }

  /// The bytes of the document while nothing has changed it.
  var storedRow: StoredRow? {
    if case .document(let contents) = form, case .row(let row) = contents.form { row } else { nil }
  }

  /// The approximate memory in bytes.
  var memoryBytes: Int {
    switch form {
    case .document(let contents): contents.storedLength + 256
    case .fields(let fields): fields.memoryBytes + 96
    case .columns(_, let values):
      values.reduce(128) { $0 + ($1?.memoryBytes ?? 0) + MemoryLayout<Value?>.stride }
    }
  }

  /// The value of a field; nil when the row lacks it.
  func value(of field: PipelineField) -> Value? {
    switch field.form {
    case .name: return path.map { .reference($0) }
    case .createTime: return stamps.map { .timestamp($0.createTime) }
    case .updateTime: return stamps.map { .timestamp($0.updateTime) }
    case .names(let names):
      switch form {
      case .document(let contents): return contents.value(at: names)
      case .fields(let fields):
        if let value = lookUp(names[...], in: fields) { return value }
        // A column may have a path as its name.
        return names.count > 1 ? fields[exactly: field.description] : nil
      case .columns(let layout, let values):
        if let place = layout.place(of: names[0]), let value = values[place] {
          if names.count == 1 { return value }
          if let found = value.map.flatMap({ lookUp(names.dropFirst(), in: $0) }) { return found }
        }
        guard names.count > 1 else { return nil }
        return layout.place(of: field.description).flatMap { values[$0] }
      }
    }
  }
}

extension PipelineRow: Hashable {
  static func == (left: PipelineRow, right: PipelineRow) -> Bool {
    left.path == right.path && left.stamps == right.stamps
      && Value.map(left.fields) == .map(right.fields)
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(path)
    hasher.combine(Value.map(fields))
  }
}

/// Sets one column of row after row.
struct ColumnSetter {
  private let name: String
  private let isPlain: Bool
  /// The columns of the row before, and with this one.
  private var known: (before: RowLayout, after: RowLayout, place: Int)?

  init(_ name: String) {
    self.name = name
    isPlain = !name.utf8.contains { $0 == UInt8(ascii: ".") || $0 >= 0x80 }
  }

  /// The row with the value. A path leads into maps, unless the row has a column of that very name.
  /// An absent value removes the column.
  mutating func set(_ value: Value?, in row: PipelineRow) -> PipelineRow {
    guard isPlain, case .columns(let layout, var values) = row.form,
      let (after, place) = columns(layout)
    else {
      var fields = row.fields
      fields.set(value, at: name)
      return PipelineRow(row, fields: fields)
    }
    if place < values.count { values[place] = value } else { values.append(value) }
    return PipelineRow(row, after, values)
  }

  private mutating func columns(_ layout: RowLayout) -> (RowLayout, Int)? {
    if let known, known.before === layout { return (known.after, known.place) }
    let place = layout.place(of: name)
    guard let after = place == nil ? RowLayout(layout.names + [name]) : layout else { return nil }
    known = (layout, after, place ?? layout.names.count)
    return (after, place ?? layout.names.count)
  }
}
