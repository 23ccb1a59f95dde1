// What writes change in the fields of a stored document, kept apart from them: an update touches
// few fields, while all others stay the bytes they are. This is stage 1 of the write path for large
// documents, by the rules of WriteApplication. When an edit is out of the ordinary (another
// spelling of a name, a blob added or removed), these functions report that they cannot make it,
// and the document is decoded and written like any other.

internal import OndolEngine

/// A map in a document's row.
struct StoredMap {
  let row: StoredRow
  let layout: ContainerLayout

  init?(_ row: StoredRow, _ place: ValueView.Place) {
    guard let layout = row.container(at: place), layout.isMap else { return nil }
    self.row = row
    self.layout = layout
  }

  /// The fields of a document.
  init?(documentIn row: StoredRow) {
    self.init(row, .offset(ValueCoding.envelopeLength))
  }

  /// The map at a name; nil when the name has another value, or none.
  func map(_ name: String) -> StoredMap? {
    place(of: name).flatMap { StoredMap(row, $0) }
  }

  func place(of name: String) -> ValueView.Place? { row.place(of: name, in: layout) }

  func value(_ name: String) -> Value? { place(of: name).map { row.value(at: $0) } }

  /// Whether a name that is not in the map might be another spelling of one that is.
  ///
  /// - Complexity: O(n) in the names.
  func mayHaveOtherSpelling(of name: String) -> Bool {
    let bytes = row.bytes
    let octets = bytes.bytes.octets
    if layout.isNamed {
      guard name.utf8.allSatisfy({ $0 < 0x80 }) else { return true }
      for index in 0..<layout.count {
        let offset = layout.base + octets.symbol(index, of: layout)
        guard let text = octets.lengthPrefixed(at: offset)?.octets else { return true }
        for place in text.indices where text[place] >= 0x80 { return true }
      }
      return false
    }
    for index in 0..<layout.count {
      let known = row.symbols.name(UInt32(octets.symbol(index, of: layout)))
      guard let known, !isOneName(known, name) else { return true }
    }
    return false
  }
}

/// Edits to the fields of a stored map.
struct FieldEdits: Sendable {
  enum Edit: Sendable {
    case value(Value)
    case removed
    /// Edits inside the map that is stored there.
    case nested(FieldEdits)
  }

  struct Entry: Sendable {
    let name: String
    var edit: Edit
  }

  /// The edits, at most one for each name.
  private(set) var entries: [Entry] = []

  var isEmpty: Bool { entries.isEmpty }

  /// The number of edited fields.
  var count: Int {
    entries.reduce(0) { sum, entry in
      if case .nested(let edits) = entry.edit { sum + edits.count } else { sum + 1 }
    }
  }

  private func index(of name: String) -> Int? {
    // By index, because iterating would retain and release the values.
    entries.indices.first { isSame(entries[$0].name, name) }
  }

  // MARK: - Reading

  /// The value at the end of the names, in the map with these edits; nil when there is none.
  func value(at names: ArraySlice<String>, over map: StoredMap) -> Value? {
    guard let first = names.first else { return nil }
    let rest = names.dropFirst()
    let edit = index(of: first).map { entries[$0].edit }
    switch edit {
    case .removed?: return nil
    case .value(let value)?:
      if rest.isEmpty { return value }
      return value.map.flatMap { lookUp(rest, in: $0) }
    case .nested(let edits)? where rest.isEmpty:
      guard var fields = map.value(first)?.map else { return nil }
      edits.apply(to: &fields)
      return .map(fields)
    case .nested(let edits)?: return map.map(first).flatMap { edits.value(at: rest, over: $0) }
    case nil where rest.isEmpty: return map.value(first)
    case nil: return map.map(first).flatMap { FieldEdits().value(at: rest, over: $0) }
    }
  }

  /// Whether the edits may change the value at the end of the names, or anything below it.
  func concern(_ names: ArraySlice<String>) -> Bool {
    guard let first = names.first else { return !isEmpty }
    guard let index = index(of: first) else { return false }
    if case .nested(let edits) = entries[index].edit { return edits.concern(names.dropFirst()) }
    return true
  }

  /// Whether any edited value differs from the stored one.
  func differ(from map: StoredMap) -> Bool {
    entries.contains { entry in
      switch entry.edit {
      case .value(let value): !(map.value(entry.name)?.isIdentical(to: value) ?? false)
      case .removed: map.place(of: entry.name) != nil
      case .nested(let edits): map.map(entry.name).map { edits.differ(from: $0) } ?? true
      }
    }
  }

  /// Applies the edits to the decoded map.
  func apply(to fields: inout [String: Value]) {
    for entry in entries {
      switch entry.edit {
      case .removed: fields.remove(exactly: entry.name)
      case .value(let value): fields.updateValue(value, forKey: entry.name)
      case .nested(let edits):
        guard var nested = fields.updateValue(.null, forKey: entry.name)?.map else { continue }
        edits.apply(to: &nested)
        fields.updateValue(.map(nested), forKey: entry.name)
      }
    }
  }

  // MARK: - Editing

  /// Sets `value` at the end of the names, in the map with these edits; false when that cannot be
  /// done here.
  ///
  /// Throws `.invalidArgument` when a new map has another spelling of one of the names.
  mutating func assign(
    _ value: Value, at names: ArraySlice<String>, over map: StoredMap
  ) throws(DatabaseError) -> Bool {
    guard let first = names.first, !value.hasBlobs else { return false }
    let rest = names.dropFirst()
    if let index = index(of: first) {
      return try assign(value, at: rest, within: index, over: map)
    }
    guard let place = map.place(of: first) else {
      if map.mayHaveOtherSpelling(of: first) { return false }
      if entries.contains(where: { isOneName($0.name, first) }) { return false }
      return try put(value, at: rest, in: [:], named: first)
    }
    if !rest.isEmpty, let inner = StoredMap(map.row, place) {
      var edits = FieldEdits()
      guard try edits.assign(value, at: rest, over: inner) else { return false }
      entries.append(Entry(name: first, edit: .nested(edits)))
      return true
    }
    if map.row.value(at: place).hasBlobs { return false }
    return try put(value, at: rest, in: [:], named: first)
  }

  /// Sets `value` at the end of the names, below a field that has an edit.
  private mutating func assign(
    _ value: Value, at rest: ArraySlice<String>, within index: Int, over map: StoredMap
  ) throws(DatabaseError) -> Bool {
    let name = entries[index].name
    switch entries[index].edit {
    case .nested(var edits):
      guard let place = map.place(of: name), let inner = StoredMap(map.row, place) else {
        return false
      }
      if rest.isEmpty {
        if map.row.value(at: place).hasBlobs { return false }
        entries[index].edit = .value(value)
        return true
      }
      guard try edits.assign(value, at: rest, over: inner) else { return false }
      entries[index].edit = .nested(edits)
      return true
    case .value(let former):
      entries.remove(at: index)
      return try put(value, at: rest, in: former.map ?? [:], named: name)
    case .removed:
      entries.remove(at: index)
      return try put(value, at: rest, in: [:], named: name)
    }
  }

  /// Adds an edit: the map with `value` at the end of the names, or `value` itself.
  private mutating func put(
    _ value: Value, at rest: ArraySlice<String>, in fields: [String: Value], named name: String
  ) throws(DatabaseError) -> Bool {
    guard !rest.isEmpty else {
      entries.append(Entry(name: name, edit: .value(value)))
      return true
    }
    var fields = fields
    do throws(DatabaseError) {
      try Ondol.assign(value, at: rest, in: &fields)
    } catch {
      throw error.within(field: name)
    }
    entries.append(Entry(name: name, edit: .value(.map(fields))))
    return true
  }

  /// Removes the value at the end of the names; false when that cannot be done here.
  mutating func remove(_ names: ArraySlice<String>, over map: StoredMap) -> Bool {
    guard let first = names.first else { return true }
    let rest = names.dropFirst()
    let place = map.place(of: first)
    let index = index(of: first)
    switch index.map({ entries[$0].edit }) {
    case .value(.map(var fields))? where !rest.isEmpty:
      Ondol.remove(rest, from: &fields)
      return set(.value(.map(fields)), at: first, index)
    case .value? where !rest.isEmpty, .removed?: return true
    case .value?:
      guard place == nil else { return set(.removed, at: first, index) }
      if let index { entries.remove(at: index) }
      return true
    case .nested(var edits)? where !rest.isEmpty:
      guard let inner = place.flatMap({ StoredMap(map.row, $0) }),
        edits.remove(rest, over: inner)
      else { return false }
      return set(.nested(edits), at: first, index)
    case .nested?, nil:
      guard let place else { return true }
      if !rest.isEmpty {
        guard let inner = StoredMap(map.row, place) else { return true }
        var edits = FieldEdits()
        guard edits.remove(rest, over: inner) else { return false }
        return edits.isEmpty || set(.nested(edits), at: first, index)
      }
      return !map.row.value(at: place).hasBlobs && set(.removed, at: first, index)
    }
  }

  private mutating func set(_ edit: Edit, at name: String, _ index: Int?) -> Bool {
    if let index {
      entries[index].edit = edit
    } else {
      entries.append(Entry(name: name, edit: edit))
    }
    return true
  }
}

extension Value {
  /// Whether the value refers to contents, at any depth.
  fileprivate var hasBlobs: Bool { hasLeaf { $0.blob != nil } }
}
