// Makes a document's rows in an index. Pure, part of stage 2 of the write path: a write changes an
// index by the difference between the document's rows before and after.
//
//   of a collection:  keyspace ++ ids of the ancestors ++ components ++ id
//   of a group:       keyspace ++ components ++ ids of the ancestors ++ id
//   unique:           keyspace ++ ids of the ancestors ++ components  ->  id
//   link:             keyspace ++ storage path, never cut ++ ids of the ancestors ++ id
//   ends:             as of a group; of documents whose field is a timestamp
//
// The ids after the components are the row's tail: ascending, they are exactly the bytes that the
// document's key ends with. They have the direction of the last field.
//
// A field of elements has a row for each distinct element, with the same other components. A
// document in which the field is not an array, or is an empty one, has no row.
//
// A document without the index's first field has no row. A mark of one byte, before all components,
// represents a later field that is missing, so that the index still serves queries for the fields
// before it. In a unique index, only documents with all fields have a row of the third form. Two of
// them with the same values would be one row, which reveals the conflict. Other documents have rows
// of the first form and may agree. So do those with null in a field, unless null is treated as a
// value like any other.

internal import OndolEngine

/// A row of an index.
struct IndexRow: Sendable {
  var key: [UInt8]
  /// The tail in a unique row, otherwise empty.
  var value: [UInt8] = []
  /// Where the commit's time goes.
  var stamps: [(offset: Int, form: StampForm)] = []
  /// Whether a component was cut.
  var isCut = false
}

/// The changes of a write in an index.
struct IndexChanges: Sendable {
  var deleted: [[UInt8]] = []
  var put: [IndexRow] = []
}

extension IndexDefinition {
  /// Represents a missing field. No component begins with it.
  static let missing: UInt8 = 0x05

  /// The rows of a document in this index.
  func rows(of fields: [String: Value], ancestors: [String], id: String) -> [IndexRow] {
    // Its rows are not of one document: see SearchRows.
    if kind.isOfWords { return [] }
    if kind.isLink {
      return linkedPaths(in: fields).map { path in
        var writer = KeyWriter(linkPrefix(of: path))
        append(ancestors: ancestors, id: id, to: &writer)
        return IndexRow(key: writer.bytes)
      }
    }
    if let condition = kind.condition, !condition.matches(fields, name: .null) { return [] }
    guard let first = self.fields.first, let value = lookUp(first.names[...], in: fields) else {
      return []
    }
    if kind.isOfEnds {
      guard case .timestamp = value else { return [] }
    }
    guard let elements = self.fields.first(where: \.isOfElements) else {
      return [row(of: fields, element: nil, ancestors: ancestors, id: id)]
    }
    var rows: [IndexRow] = []
    var keys: Set<[UInt8]> = []
    for element in lookUp(elements.names[...], in: fields)?.array ?? [] {
      let row = row(of: fields, element: element, ancestors: ancestors, id: id)
      if keys.insert(row.key).inserted { rows.append(row) }
    }
    return rows
  }

  /// The row of a document, or the row of one element of its array.
  private func row(
    of fields: [String: Value], element: Value?, ancestors: [String], id: String
  ) -> IndexRow {
    var writer = begin(ancestors)
    var isClaim = kind.isUnique
    var isCut = false
    for field in self.fields {
      if let value = field.isOfElements ? element : lookUp(field.names[...], in: fields) {
        if kind.nullsDistinct, case .null = value { isClaim = false }
        if writer.append(field.component(of: value), descending: field.descending) { isCut = true }
      } else {
        isClaim = false
        writer.append(raw: [field.descending ? ~Self.missing : Self.missing])
      }
    }
    if isClaim {
      var tail = KeyWriter()
      tail.append(id: id)
      return IndexRow(key: writer.bytes, value: tail.bytes, stamps: writer.stamps, isCut: isCut)
    }
    append(ancestors: ancestors, id: id, to: &writer)
    return IndexRow(key: writer.bytes, stamps: writer.stamps)
  }

  private func begin(_ ancestors: [String]) -> KeyWriter {
    var writer = KeyWriter(keyspace.prefix)
    if !kind.putsAncestorsBehind {
      for ancestor in ancestors { writer.append(id: ancestor) }
    }
    return writer
  }

  private func append(ancestors: [String], id: String, to writer: inout KeyWriter) {
    if kind.putsAncestorsBehind {
      for ancestor in ancestors { writer.append(id: ancestor, descending: idDescending) }
    }
    writer.append(id: id, descending: idDescending)
  }

  /// The changes of a write that turns `before` into `after`; nil means no document.
  func changes(
    from before: [String: Value]?, to after: [String: Value]?, ancestors: [String], id: String
  ) -> IndexChanges {
    let old = before.map { rows(of: $0, ancestors: ancestors, id: id) } ?? []
    let new = after.map { rows(of: $0, ancestors: ancestors, id: id) } ?? []
    if old.isEmpty { return IndexChanges(put: new) }
    // A row with a stamp never equals an old one, whatever its bytes are before the stamp is filled
    // in.
    let kept = Set(old.map(\.key)).intersection(new.lazy.filter(\.stamps.isEmpty).map(\.key))
    return IndexChanges(
      deleted: old.map(\.key).filter { !kept.contains($0) },
      put: new.filter { !$0.stamps.isEmpty || !kept.contains($0.key) })
  }
}

// MARK: - Reading

extension IndexDefinition {
  /// Reads a row: appends its tail to `tail`, in the form of document keys, and returns whether
  /// every component was whole. If one was cut, rows with equal bytes may have different values.
  ///
  /// - Parameter prefixLength: bytes before the first component.
  func read(
    _ key: RawSpan, _ value: RawSpan, prefixLength: Int, into tail: inout [UInt8]
  ) throws(MalformedBytes) -> Bool {
    var reader = KeyReader(key)
    try reader.skip(raw: prefixLength)
    var isWhole = true
    if kind.isLink { _ = try reader.id() }
    for field in kind.isLink ? [] : fields {
      if try reader.skipMissing(descending: field.descending) { continue }
      if try !reader.skip(descending: field.descending) {
        isWhole = false
      }
    }
    if kind.isUnique, reader.isAtEnd {
      for offset in 0..<value.byteCount { tail.append(value.byte(at: offset)) }
    } else {
      let mask: UInt8 = idDescending ? 0xff : 0
      for offset in reader.offset..<key.byteCount { tail.append(key.byte(at: offset) ^ mask) }
    }
    return isWhole
  }

  /// The key of a row's document.
  func documentKey(
    of key: [UInt8], _ value: [UInt8], ancestorCount: Int
  ) throws(MalformedBytes) -> [UInt8] {
    let prefixLength = try prefixLength(of: key, ancestorCount: ancestorCount)
    var document = documents.prefix + key[keyspace.prefix.count..<prefixLength]
    _ = try read(key.bytes, value.bytes, prefixLength: prefixLength, into: &document)
    return document
  }

  /// Bytes of a row's key before its first component: the keyspace, and the ids of ancestors unless
  /// they come last.
  func prefixLength(of key: [UInt8], ancestorCount: Int) throws(MalformedBytes) -> Int {
    var reader = KeyReader(key.bytes)
    try reader.skip(raw: keyspace.prefix.count)
    if !kind.putsAncestorsBehind {
      for _ in 0..<ancestorCount { _ = try reader.id() }
    }
    return reader.offset
  }
}

extension KeyReader {
  /// Skips the mark of a missing field; false when the field is there.
  @_lifetime(self: copy self)
  mutating func skipMissing(descending: Bool) throws(MalformedBytes) -> Bool {
    let mark = descending ? ~IndexDefinition.missing : IndexDefinition.missing
    guard next == mark else { return false }
    try skip(raw: 1)
    return true
  }
}
