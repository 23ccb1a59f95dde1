// The fields of a document on the write path: what is stored, and what a commit makes of it. The
// fields of an ordinary document are decoded. A large document stays the bytes of its row, with
// edits on top, so that an update of one field copies the bytes of all others and neither decodes
// nor encodes them (ValueEncoder+Splicing). Fields that were encoded earlier (RowEncoder) also stay
// bytes.

/// A document's fields.
enum WrittenFields: Sendable {
  case decoded([String: Value])
  /// The fields of a row, with edits on top.
  case row(StoredRow, FieldEdits)
  /// The fields of a row that is not stored yet.
  case encoded(EncodedRow)

  /// Rows of at least this many bytes stay bytes. Shorter ones are cheap to decode, and code that
  /// asks for all fields asks for them more than once.
  static let largeLength = 32 << 10

  /// With more edits than this, fields are decoded, because each lookup searches all edits.
  private static let editLimit = 64

  /// Takes the stored fields.
  init(_ contents: DocumentSnapshot.Contents) {
    if case .row(let row) = contents.form, row.bytes.count >= Self.largeLength,
      !row.symbols.hasTwoSpellings
    {
      self = .row(row, FieldEdits())
    } else {
      self = .decoded(contents.fields)
    }
  }

  /// All fields, decoded.
  ///
  /// - Complexity: O(size of the document) at each call, for a row's fields.
  var all: [String: Value] {
    switch self {
    case .decoded(let fields): return fields
    case .row(let row, let edits):
      var fields = row.fields
      edits.apply(to: &fields)
      return fields
    case .encoded(let encoded): return encoded.row.fields
    }
  }

  /// Those of the named fields that exist. For any of these fields, the result answers as all
  /// fields would.
  ///
  /// - Complexity: O(size of the fields named), for a row's fields.
  func part(_ fields: [FieldNames]) -> [String: Value] {
    guard let value = reader else { return all }
    var part: [String: Value] = [:]
    for names in fields {
      guard let value = value(names) else { continue }
      do throws(DatabaseError) {
        try assign(value, at: names[...], in: &part)
      } catch {
        // Two spellings of one name, of which a document can have only one.
        return all
      }
    }
    return part
  }

  /// The value at a place; nil when there is none.
  func value(at place: FieldNames) -> Value? {
    guard let value = reader else { return lookUp(place[...], in: all) }
    return value(place)
  }

  /// Finds a field without decoding others; nil when all are decoded.
  private var reader: ((FieldNames) -> Value?)? {
    switch self {
    case .decoded: return nil
    case .row(let row, let edits):
      return StoredMap(documentIn: row).map { map in { edits.value(at: $0[...], over: map) } }
    case .encoded(let encoded): return { encoded.row.value(at: $0) }
    }
  }

  /// Whether any of these fields may differ from what is stored.
  func mayChange(_ fields: [FieldNames]) -> Bool {
    guard case .row(_, let edits) = self else { return true }
    return fields.contains { edits.concern($0[...]) }
  }

  /// Whether the fields are the same as others to the last bit.
  func isIdentical(to other: WrittenFields) -> Bool {
    if case .row(let row, let edits) = other, case .row(let stored, let former) = self,
      row === stored, former.isEmpty, let map = StoredMap(documentIn: row)
    {
      return !edits.differ(from: map)
    }
    if case .encoded(let encoded) = other { return encoded.row.isIdentical(to: all) }
    return all.isIdentical(to: other.all)
  }

  /// The fields with these edits; nil when the fields must be decoded first.
  ///
  /// Throws as `WriteIntent.apply(to:)`.
  func edited(
    removing removed: [FieldNames], putting put: [(FieldNames, Value)],
    _ transforms: [FieldTransform]
  ) throws(DatabaseError) -> WrittenFields? {
    guard case .row(let row, var edits) = self, let map = StoredMap(documentIn: row),
      edits.count + removed.count + put.count + transforms.count <= Self.editLimit
    else { return nil }
    for names in removed where !edits.remove(names[...], over: map) { return nil }
    for (names, value) in put {
      guard try edits.assign(value, at: names[...], over: map) else { return nil }
    }
    for transform in transforms {
      let names = transform.path[...]
      let result: Value
      do throws(DatabaseError) {
        result = try transform.operation.result(for: edits.value(at: names, over: map))
      } catch {
        throw error.within(field: WriteCompiler.describe(transform.path))
      }
      guard try edits.assign(result, at: names, over: map) else { return nil }
    }
    return .row(row, edits)
  }
}
