// What a document snapshot holds: the last stage of the read path. A document that was read stays
// the bytes of its row, which are checked once, without decoding. Asking for a field finds it in
// these bytes, and Codable types are decoded straight from them. A document that a write has just
// made is kept as fields.

internal import OndolEngine

extension DocumentSnapshot {
  /// A document's fields and stamps.
  struct Contents: Sendable {
    let stamps: DocumentStamps
    let form: Form

    enum Form: Sendable {
      case fields([String: Value])
      case row(StoredRow)
    }

    init(stamps: DocumentStamps, fields: [String: Value]) {
      self.stamps = stamps
      form = .fields(fields)
    }

    /// Takes ownership of a document's row.
    ///
    /// - Complexity: O(length of the row), without an allocation.
    init(row: [UInt8], symbols: SymbolTable) throws(MalformedBytes) {
      let view = try DocumentView(row.bytes)
      try view.check(symbols)
      stamps = DocumentStamps(view)
      form = .row(StoredRow(row, symbols))
    }

    /// Copies a document's row, which is at `view`.
    ///
    /// - Complexity: O(length of the row).
    init(
      row: RawSpan, _ view: borrowing DocumentView, _ symbols: SymbolTable
    ) throws(MalformedBytes) {
      try view.check(symbols)
      stamps = DocumentStamps(view)
      form = .row(StoredRow(row.array, symbols))
    }

    /// The length of the row in bytes; 0 for a document that a write has just made.
    var storedLength: Int {
      switch form {
      case .fields: 0
      case .row(let row): row.bytes.count
      }
    }

    /// All fields, decoded.
    ///
    /// - Complexity: O(size of the document) at each call.
    var fields: [String: Value] {
      switch form {
      case .fields(let fields): return fields
      case .row: return source.value.map ?? [:]
      }
    }

    /// What a decoder reads.
    var source: FieldSource {
      switch form {
      case .fields(let fields): .value(.map(fields))
      case .row(let row): FieldSource(documentIn: row)
      }
    }

    /// The value at the end of the names, or nil.
    ///
    /// - Complexity: O(log n) in the fields of each map on the way, and the size of the value.
    func value(at names: FieldNames) -> Value? {
      switch form {
      case .fields(let fields): return lookUp(names[...], in: fields)
      case .row(let row): return row.value(at: names)
      }
    }
  }
}

extension DocumentSnapshot.Contents: Hashable {
  static func == (left: Self, right: Self) -> Bool {
    guard left.stamps == right.stamps else { return false }
    if case .row(let left) = left.form, case .row(let right) = right.form,
      left.bytes == right.bytes
    {
      return true
    }
    return Value.map(left.fields) == .map(right.fields)
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(stamps)
  }
}

extension DocumentStamps {
  init(_ view: borrowing DocumentView) {
    version = Version(rawValue: view.version.rawValue)
    updateTime = view.updateTime
    createTime = view.createTime
  }
}
