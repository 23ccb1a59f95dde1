// Encodes documents most of whose bytes exist already. Values are placed relative to the container
// they are in, so a stored value has the same bytes wherever it moves to. The tables on the way to
// each changed field are rebuilt, and everything between is copied. The bytes are the same as
// encoding all fields would give, with the same table of names.

internal import OndolEngine

/// The parts of a map, in the order of its table.
private enum MapPart {
  /// Fields that stay unchanged, by their places in the stored table.
  case stored(Range<Int>)
  case edited(EditedField)

  /// The number of the new map's fields in this part.
  var count: Int {
    switch self {
    case .stored(let range): range.count
    case .edited(let field): if case .removed = field.edit { 0 } else { 1 }
    }
  }
}

private struct EditedField {
  var name: String
  /// Without meaning in a map that has its own names.
  var symbol: UInt32
  /// The field's place in the stored table; for a new field, the place it is inserted before.
  var place: Int
  var isStored: Bool
  var edit: FieldEdits.Edit
}

extension ValueEncoder {
  /// Makes the row that replaces a document's previous one: of decoded fields like
  /// `encode(_:createTime:)`, otherwise of the existing bytes. Returns whether the bytes are stored
  /// ones. In that case the document refers to the same contents as before, and `contents` is
  /// empty.
  ///
  /// Throws as `encode(_:createTime:)`.
  mutating func encode(
    _ fields: WrittenFields, createTime: Timestamp?
  ) throws(DatabaseError) -> Bool {
    if case .row(let row, let edits) = fields {
      begin(createTime: createTime, expecting: row.bytes.count)
      let stored = row.bytes
      let octets = stored.bytes.octets
      if let map = StoredMap(documentIn: row),
        try splice(octets, map.layout, end: octets.count, edits, depth: 0)
      {
        try checkLength()
        return true
      }
    }
    if case .encoded(let encoded) = fields, begins(with: encoded.names) {
      // The row has no contents and no commit times in it.
      let row = encoded.row.bytes
      begin(createTime: createTime, expecting: row.count)
      bytes.append(row.bytes.extracting(droppingFirst: ValueCoding.envelopeLength))
      return false
    }
    try encode(fields.all, createTime: createTime)
    return false
  }

  /// Appends a stored map with edits; false when its fields must be decoded first.
  ///
  /// - Parameter end: where the map ends in `octets`.
  private mutating func splice(
    _ octets: Span<UInt8>, _ stored: ContainerLayout, end: Int, _ edits: FieldEdits, depth: Int
  ) throws(DatabaseError) -> Bool {
    try checkDepth(depth)
    guard let parts = try parts(octets, stored, edits) else { return false }
    let count = parts.reduce(0) { $0 + $1.count }
    // A map without any name does not show that it had its own names.
    guard !stored.isNamed || count > 0 else { return false }
    var layout = ContainerLayout(
      base: bytes.count, count: count, isMap: true, isNamed: stored.isNamed)
    if stored.isNamed {
      layout = begin(layout)
      putNames(octets, stored, end: end, parts, &layout)
    } else {
      let symbols = symbols(octets, stored, parts)
      layout.hasShortSymbols = (symbols.last ?? 0) < 256
      layout = begin(layout)
      for (index, symbol) in symbols.enumerated() { set(symbol: symbol, at: index, in: layout) }
    }
    var index = 0
    for part in parts {
      switch part {
      case .stored(let range):
        copy(octets, stored, end: end, range, to: index, in: &layout)
      case .edited(let field):
        do throws(DatabaseError) {
          let isDone = try append(field, octets, stored, end: end, at: index, in: &layout, depth)
          guard isDone else { return false }
        } catch {
          throw error.within(field: field.name)
        }
      }
      index += part.count
    }
    return true
  }

  /// Appends an edited field.
  private mutating func append(
    _ field: EditedField, _ octets: Span<UInt8>, _ stored: ContainerLayout, end: Int,
    at index: Int, in layout: inout ContainerLayout, _ depth: Int
  ) throws(DatabaseError) -> Bool {
    switch field.edit {
    case .removed: return true
    case .value(let value):
      try append(value, at: index, in: &layout, depth: depth)
      return true
    case .nested(let edits):
      guard case .offset(let offset)? = try? octets.place(field.place, of: stored),
        let inner = try? octets.container(at: offset)
      else { return false }
      widenIfNeeded(&layout, names: layout.isNamed ? layout.count : 0, values: index)
      set(
        slot: bytes.count - layout.base, at: layout.slotsStart + index * layout.slotWidth, layout)
      let innerEnd = octets.firstValue(atOrBehind: field.place + 1, of: stored) ?? end
      return try splice(octets, inner, end: innerEnd, edits, depth: depth + 1)
    }
  }

  /// Copies unchanged fields, all in one piece.
  private mutating func copy(
    _ octets: Span<UInt8>, _ stored: ContainerLayout, end: Int, _ range: Range<Int>,
    to index: Int, in layout: inout ContainerLayout
  ) {
    let start = octets.firstValue(atOrBehind: range.lowerBound, of: stored) ?? end
    let behind = octets.firstValue(atOrBehind: range.upperBound, of: stored) ?? end
    if let last = octets.lastValue(in: range, of: stored),
      bytes.count - layout.base + last - start >= ValueCoding.firstInline, !layout.isWide
    {
      widen(&layout, names: layout.isNamed ? layout.count : 0, values: index)
    }
    let shift = bytes.count - layout.base - (start - stored.base)
    let inlineShift = layout.firstInline - stored.firstInline
    for place in range {
      let slot = octets.slot(place, of: stored)
      set(
        slot: slot + (slot < stored.firstInline ? shift : inlineShift),
        at: layout.slotsStart + (index + place - range.lowerBound) * layout.slotWidth, layout)
    }
    bytes.append(octets.extracting(start..<behind).raw)
  }

  // MARK: - Tables

  /// The parts of the map; nil when there is no room for a new name.
  private mutating func parts(
    _ octets: Span<UInt8>, _ stored: ContainerLayout, _ edits: FieldEdits
  ) throws(DatabaseError) -> [MapPart]? {
    var fields: [EditedField] = []
    // In the order of the names, so that new names get the same numbers in every run.
    let entries = edits.entries.sorted { ValueOrder.compare($0.name, $1.name) < 0 }
    for entry in entries {
      guard let field = try edited(entry, octets, stored) else { return nil }
      if case .removed = field.edit, !field.isStored { continue }
      fields.append(field)
    }
    // A map's own names are in the order of its table already.
    if !stored.isNamed { fields.sort { $0.symbol < $1.symbol } }
    var parts: [MapPart] = []
    var place = 0
    for field in fields {
      if place < field.place { parts.append(.stored(place..<field.place)) }
      place = field.place + (field.isStored ? 1 : 0)
      parts.append(.edited(field))
    }
    if place < stored.count { parts.append(.stored(place..<stored.count)) }
    return parts
  }

  /// An edit with its place in a stored map; nil when there is no room for its name.
  private mutating func edited(
    _ entry: FieldEdits.Entry, _ octets: Span<UInt8>, _ stored: ContainerLayout
  ) throws(DatabaseError) -> EditedField? {
    var field = EditedField(
      name: entry.name, symbol: 0, place: 0, isStored: false, edit: entry.edit)
    if stored.isNamed {
      guard let found = try? octets.place(ofName: entry.name, in: stored) else { return nil }
      (field.place, field.isStored) = found
      return field
    }
    if case .removed = entry.edit, symbols.symbol(entry.name) == nil { return field }
    guard let symbol = try symbols.symbol(adding: entry.name) else { return nil }
    field.symbol = symbol
    (field.place, field.isStored) = octets.place(ofSymbol: Int(symbol), in: stored)
    return field
  }

  /// The symbols of the new map, ascending.
  private func symbols(
    _ octets: Span<UInt8>, _ stored: ContainerLayout, _ parts: [MapPart]
  ) -> [UInt32] {
    var symbols: [UInt32] = []
    symbols.reserveCapacity(stored.count + parts.count)
    for part in parts {
      switch part {
      case .stored(let range):
        for place in range { symbols.append(UInt32(octets.symbol(place, of: stored))) }
      case .edited(let field): if part.count > 0 { symbols.append(field.symbol) }
      }
    }
    return symbols
  }

  /// Appends the names of a map that has its own.
  private mutating func putNames(
    _ octets: Span<UInt8>, _ stored: ContainerLayout, end: Int, _ parts: [MapPart],
    _ layout: inout ContainerLayout
  ) {
    let namesEnd = octets.firstValue(atOrBehind: 0, of: stored) ?? end
    func start(_ place: Int) -> Int {
      place < stored.count ? stored.base + octets.symbol(place, of: stored) : namesEnd
    }
    var index = 0
    for part in parts {
      switch part {
      case .stored(let range):
        let (from, to) = (start(range.lowerBound), start(range.upperBound))
        let last = start(range.upperBound - 1)
        if !layout.isWide, bytes.count - layout.base + last - from >= ValueCoding.firstInline {
          widen(&layout, names: index, values: 0)
        }
        let shift = bytes.count - layout.base - (from - stored.base)
        for place in range {
          set(
            slot: octets.symbol(place, of: stored) + shift,
            at: layout.symbolsStart + (index + place - range.lowerBound) * layout.slotWidth, layout)
        }
        bytes.append(octets.extracting(from..<to).raw)
      case .edited(let field):
        guard part.count > 0 else { continue }
        widenIfNeeded(&layout, names: index, values: 0)
        set(
          slot: bytes.count - layout.base, at: layout.symbolsStart + index * layout.slotWidth,
          layout)
        append(name: field.name)
      }
      index += part.count
    }
  }
}

// MARK: - Places in stored maps

// The row was checked when it was read, so slots and names are valid.
extension Span<UInt8> {
  /// The position of the first value outside its slot, of the fields from `place` on.
  fileprivate func firstValue(atOrBehind place: Int, of layout: ContainerLayout) -> Int? {
    for place in place..<Swift.max(place, layout.count) {
      let slot = slot(place, of: layout)
      if slot < layout.firstInline { return layout.base + slot }
    }
    return nil
  }

  /// The position of the last value outside its slot, of these fields.
  fileprivate func lastValue(in range: Range<Int>, of layout: ContainerLayout) -> Int? {
    for place in range.reversed() {
      let slot = slot(place, of: layout)
      if slot < layout.firstInline { return layout.base + slot }
    }
    return nil
  }
}
