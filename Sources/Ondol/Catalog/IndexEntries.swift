// From a document to its rows in an index. Pure, part of stage 2 of the write path: what a write
// changes in the indexes is the difference between the rows of the document before and after.
//
//   row: keyspace ++ ids of the ancestors ++ a component for each field ++ id, without a value
//
// A document without the index's first field has no row. A later field that is missing has a mark
// in its place, one byte in front of all components, so that the index still serves queries for the
// fields before it. The id has the direction of the last field.

internal import OndolEngine

/// A row of an index.
struct IndexRow: Sendable {
  var key: [UInt8]
  /// Where the commit's time is filled in.
  var stamps: [(offset: Int, form: StampForm)] = []
}

/// A change of an index.
enum IndexChange: Sendable {
  case put(IndexRow)
  case delete([UInt8])
}

extension IndexDefinition {
  /// Stands where a field is missing. No component begins with it.
  static let missing: UInt8 = 0x05

  /// The row of a document in this index; nil when it has none.
  func row(
    of fields: [String: Value], ancestors: [String], id: String
  ) -> IndexRow? {
    var writer = KeyWriter(keyspace.prefix)
    for ancestor in ancestors {
      writer.append(id: ancestor)
    }
    for (position, field) in self.fields.enumerated() {
      if let value = lookUp(field.names[...], in: fields) {
        writer.append(value, descending: field.descending)
      } else {
        guard position > 0 else { return nil }
        writer.append(raw: [field.descending ? ~Self.missing : Self.missing])
      }
    }
    writer.append(id: id, descending: idDescending)
    return IndexRow(key: writer.bytes, stamps: writer.stamps)
  }

  /// What a write that turns `before` into `after` changes; nil stands for no document.
  func changes(
    from before: [String: Value]?, to after: [String: Value]?, ancestors: [String], id: String
  ) -> [IndexChange] {
    let old = before.flatMap { row(of: $0, ancestors: ancestors, id: id) }
    let new = after.flatMap { row(of: $0, ancestors: ancestors, id: id) }
    // A row with a stamp is never the old one, whatever its bytes are before the stamp is filled
    // in.
    if let old, let new, new.stamps.isEmpty, old.key == new.key { return [] }
    var changes: [IndexChange] = []
    if let old { changes.append(.delete(old.key)) }
    if let new { changes.append(.put(new)) }
    return changes
  }

  /// What a row of this index says.
  struct Entry: Sendable {
    var id: String
    /// Whether some component was cut, so that rows with equal bytes may stand for different
    /// values.
    var isCut: Bool
  }

  /// Reads the key of a row.
  func entry(_ key: RawSpan, ancestorCount: Int) throws(MalformedBytes) -> Entry {
    var reader = KeyReader(key)
    try reader.skip(raw: 4)
    for _ in 0..<ancestorCount {
      _ = try reader.id()
    }
    var isCut = false
    for field in fields {
      let mark = field.descending ? ~Self.missing : Self.missing
      if reader.offset < key.byteCount, key.byte(at: reader.offset) == mark {
        try reader.skip(raw: 1)
      } else if try !reader.skip(descending: field.descending) {
        isCut = true
      }
    }
    return Entry(id: try reader.id(descending: idDescending), isCut: isCut)
  }
}
