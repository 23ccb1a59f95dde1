// A row on its way through a pipeline: a stored document that nothing has changed yet, whose fields
// are read from its bytes when they are asked for, or fields that a stage has made.

/// One row.
struct PipelineRow: Sendable {
  private enum Form: Sendable {
    case document(DocumentSnapshot.Contents)
    case fields([String: Value])
  }

  /// The document that the row is; nil once a stage has made another thing of it.
  private(set) var path: DocumentPath?
  private(set) var stamps: DocumentStamps?
  private var form: Form

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

  /// A row with these fields that is still the document, if `row` was one.
  init(_ row: PipelineRow, fields: [String: Value]) {
    path = row.path
    stamps = row.stamps
    form = .fields(fields)
  }

  /// A row with these fields that is the document at `path`.
  init(_ path: DocumentPath?, _ stamps: DocumentStamps?, fields: [String: Value]) {
    self.path = path
    self.stamps = stamps
    form = .fields(fields)
  }

  /// All fields.
  ///
  /// - Complexity: O(size of the document) while nothing has changed it.
  var fields: [String: Value] {
    switch form {
    case .document(let contents): contents.fields
    case .fields(let fields): fields
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
      }
    }
  }
}
