// Encodes documents into bytes. The form and its invariants are in ValueCoding. It runs on the
// caller's thread before a commit is sent, so it finds every error in a document.

internal import OndolEngine

/// A document as the bytes of its row, and the places that the sequencer fills in.
struct EncodedDocument: Sendable {
  var bytes: [UInt8]
  var stamps: [(offset: Int, form: StampForm)]
}

/// Writes documents of one collection, one after the other.
struct ValueEncoder {
  /// The row of the document encoded last.
  var bytes: [UInt8] = []
  /// The places in it that the sequencer fills in.
  private(set) var stamps: [(offset: Int, form: StampForm)] = []
  /// The contents that the last encoded document refers to, repeated as in the document.
  private(set) var contents: [BlobDigest] = []
  /// Whether one of them is sealed under a key, which is then in the document.
  private(set) var hasSealedContents = false
  /// The names of fields, including those of the documents so far.
  var symbols: SymbolTable
  private var familiar = FamiliarNames()
  /// The names that were compared last, and the result: names are only ever added.
  private var compared: (names: RowNames, isBeginning: Bool)?

  init(_ symbols: consuming SymbolTable) {
    self.symbols = symbols
  }

  /// The row of a document. `createTime` is nil when this commit creates it. New names are added to
  /// `symbols`, even when this throws.
  ///
  /// - Parameter containers: how many more levels of containers are allowed than in a document.
  ///
  /// Throws as `encode(_:createTime:around:)`.
  static func document(
    _ fields: [String: Value], createTime: Timestamp?, symbols: inout SymbolTable,
    around containers: Int = 0
  ) throws(DatabaseError) -> EncodedDocument {
    var encoder = ValueEncoder(symbols)
    // Releases the table here, so that adding names does not copy it.
    symbols = SymbolTable()
    defer { symbols = encoder.symbols }
    try encoder.encode(fields, createTime: createTime, around: containers)
    return EncodedDocument(bytes: encoder.bytes, stamps: encoder.stamps)
  }

  /// Makes the row of a document, replacing the previous one. `createTime` is nil when this commit
  /// creates it.
  ///
  /// Throws `.invalidArgument`, naming the field, when a name is wrong or values are nested too
  /// deep, and `.resourceExhausted` when the document is too long.
  mutating func encode(
    _ fields: [String: Value], createTime: Timestamp?, around containers: Int = 0
  ) throws(DatabaseError) {
    begin(createTime: createTime, expecting: 512)
    try append(fields, depth: -containers)
    try checkLength()
  }

  /// The number of a name; nil when it is unknown.
  mutating func symbol(of name: String) -> UInt32? { familiar.symbol(name, in: symbols) }

  /// Whether the known names begin with these, so that bytes encoded with their numbers are right,
  /// and everything recorded for their documents is also recorded here.
  mutating func begins(with names: RowNames) -> Bool {
    if let compared, compared.names === names { return compared.isBeginning }
    let others = names.symbols.names
    let isBeginning =
      others.count <= symbols.count && names.symbols.forms.isSubset(of: symbols.forms)
      && zip(others, symbols.names).allSatisfy { isSame($0, $1) }
    compared = (names, isBeginning)
    return isBeginning
  }

  /// Discards the previous document, and appends the envelope.
  mutating func begin(createTime: Timestamp?, expecting length: Int) {
    bytes.removeAll(keepingCapacity: true)
    stamps.removeAll(keepingCapacity: true)
    if !contents.isEmpty { (contents, hasSealedContents) = ([], false) }
    bytes.reserveCapacity(length)
    appendEnvelope(createTime: createTime)
  }

  func checkLength() throws(DatabaseError) {
    guard bytes.count <= ValueCoding.maximumLength else {
      throw DatabaseError(
        .resourceExhausted,
        "the document has \(bytes.count) bytes, and may have \(ValueCoding.maximumLength); store"
          + " large content as a blob and refer to it")
    }
  }

  private mutating func appendEnvelope(createTime: Timestamp?) {
    stamps.append((0, .sequence))
    stamps.append((8, .time))
    if createTime == nil { stamps.append((16, .time)) }
    bytes.append(bits: 0, width: 8)
    bytes.append(bits: 0, width: 8)
    bytes.append(bits: UInt64(bitPattern: createTime?.microsecondsSince1970 ?? 0), width: 8)
  }
}

/// The most recent names with their symbols. Documents of a collection mostly have the same few
/// names, and finding one here takes a comparison instead of a hash of the whole name.
private struct FamiliarNames {
  private var slots: [(name: String, symbol: UInt32)?] = []

  /// The symbol of the name; nil when the table lacks it.
  mutating func symbol(_ name: String, in symbols: SymbolTable) -> UInt32? {
    let slot = Self.slot(name)
    if slots.isEmpty { slots = Array(repeating: nil, count: 64) }
    if let known = slots[slot], isSame(known.name, name) { return known.symbol }
    guard let symbol = symbols.symbol(name) else { return nil }
    slots[slot] = (name, symbol)
    return symbol
  }

  /// The place of the name, determined by its length and both its ends.
  private static func slot(_ name: String) -> Int {
    name.withUTF8Bytes { octets in
      guard octets.byteCount > 0 else { return 0 }
      let ends = Int(octets.byte(at: 0)) &+ 7 &* Int(octets.byte(at: octets.byteCount - 1))
      return (ends &+ 31 &* octets.byteCount) & 63
    }
  }
}

// MARK: - Values

extension ValueEncoder {
  /// Appends a value that does not fit a slot.
  mutating func append(_ value: Value, depth: Int) throws(DatabaseError) {
    switch value {
    case .null, .boolean: preconditionFailure("always fits a slot")
    case .integer(let value): bytes.append(tagged: value)
    case .double(let value): append(value)
    case .decimal(let value):
      symbols.forms.insert(.decimals)
      bytes.append(value)
    case .timestamp(let value):
      bytes.append(ValueCoding.Tag.timestamp)
      if value.isPending { stamps.append((bytes.count, .time)) }
      bytes.append(bits: UInt64(bitPattern: value.microsecondsSince1970), width: 8)
    case .string(let value): append(text: value)
    case .bytes(let value):
      bytes.append(ValueCoding.Tag.bytes)
      bytes.appendVarint(value.count)
      bytes.append(contentsOf: value)
    case .reference(let value): append(ValueCoding.Tag.reference, value.description)
    case .geoPoint(let value):
      bytes.append(ValueCoding.Tag.geoPoint)
      bytes.append(bits: value.latitude.bitPattern, width: 8)
      bytes.append(bits: value.longitude.bitPattern, width: 8)
    case .vector(let value):
      bytes.append(ValueCoding.Tag.vector)
      bytes.appendVarint(value.components.count)
      for component in value.components {
        bytes.append(bits: component.bitPattern, width: 8)
      }
    case .blob(let value): append(value)
    case .array(let elements): try append(elements, depth: depth)
    case .map(let fields): try append(fields, depth: depth)
    }
  }

  private mutating func append(_ value: Double) {
    let short = Float(value)
    if Double(short).bitPattern == value.bitPattern {
      bytes.append(ValueCoding.Tag.float32)
      bytes.append(bits: UInt64(short.bitPattern), width: 4)
    } else {
      bytes.append(ValueCoding.Tag.float64)
      bytes.append(bits: value.bitPattern, width: 8)
    }
  }

  private mutating func append(_ value: BlobReference) {
    contents.append(value.digest)
    bytes.append(ValueCoding.Tag.blob)
    bytes.append(
      (value.contentType == nil ? 0 : ValueCoding.BlobFlag.contentType)
        | (value.path == nil ? 0 : ValueCoding.BlobFlag.path)
        | (value.key == nil ? 0 : ValueCoding.BlobFlag.key))
    value.digest.append(to: &bytes)
    bytes.append(bits: UInt64(value.length), width: 8)
    if let contentType = value.contentType { append(name: contentType) }
    if let path = value.path { append(name: path) }
    if let key = value.key {
      bytes += key.bytes
      hasSealedContents = true
    }
  }

  /// Appends a text as a value.
  mutating func append(text: String) { append(ValueCoding.Tag.string, text) }

  private mutating func append(_ tag: UInt8, _ text: String) {
    bytes.append(tag)
    append(name: text)
  }

  mutating func append(name: String) {
    name.withUTF8Bytes { octets in
      bytes.appendVarint(octets.byteCount)
      bytes.append(octets)
    }
  }
}

// MARK: - Containers

extension ValueEncoder {
  private mutating func append(_ elements: [Value], depth: Int) throws(DatabaseError) {
    try checkDepth(depth)
    var layout = begin(ContainerLayout(base: bytes.count, count: elements.count, isMap: false))
    for (index, element) in elements.enumerated() {
      if case .array = element { symbols.forms.insert(.nested) }
      do throws(DatabaseError) {
        try append(element, at: index, in: &layout, depth: depth)
      } catch {
        throw error.within(index: index)
      }
    }
  }

  private mutating func append(_ fields: [String: Value], depth: Int) throws(DatabaseError) {
    try checkDepth(depth)
    guard let order = try symbolOrder(of: fields) else {
      return try appendNamed(fields, depth: depth)
    }

    var layout = begin(
      ContainerLayout(
        base: bytes.count, count: order.count, isMap: true,
        hasShortSymbols: (order.last?.symbol ?? 0) < 256))
    for index in order.indices {
      set(symbol: order[index].symbol, at: index, in: layout)
    }
    for index in order.indices {
      let (name, value) = fields[order[index].place]
      try append(value, named: name, at: index, in: &layout, depth: depth)
    }
  }

  /// The symbols and places of the fields, by symbol. Nil when the table is full.
  private mutating func symbolOrder(
    of fields: [String: Value]
  ) throws(DatabaseError) -> [(symbol: UInt32, place: [String: Value].Index)]? {
    var order: [(symbol: UInt32, place: [String: Value].Index)] = []
    order.reserveCapacity(fields.count)
    for place in fields.indices {
      let name = fields[place].key
      var symbol = familiar.symbol(name, in: symbols)
      if symbol == nil, try addNames(of: fields) { symbol = symbols.symbol(name) }
      guard let symbol else { return nil }
      order.append((symbol, place))
    }
    order.sort { $0.symbol < $1.symbol }
    return order
  }

  /// Gives every name a symbol, or none when the table has no room for all. In that case the map
  /// has its own names, and the remaining room stays for others. It uses the order of the names,
  /// not the dictionary's, so that the same writes give the same bytes in every run.
  private mutating func addNames(of fields: [String: Value]) throws(DatabaseError) -> Bool {
    var room = symbols.room
    if room < fields.count {
      for name in fields.keys where symbols.symbol(name) == nil {
        room -= 1
        if room < 0 { return false }
      }
    }
    for (name, _) in ValueOrder.sorted(fields) {
      guard try symbols.symbol(adding: name) != nil else { return false }
    }
    return true
  }

  /// Appends a map with names of its own.
  private mutating func appendNamed(
    _ fields: [String: Value], depth: Int
  ) throws(DatabaseError) {
    for name in fields.keys {
      if let problem = ResourceName.problem(withField: name) {
        throw DatabaseError(
          .invalidArgument, "\"\(name)\" cannot name a field: \(problem)",
          field: FieldPath.quoted(name))
      }
    }
    let entries = ValueOrder.sorted(fields)
    var layout = begin(
      ContainerLayout(base: bytes.count, count: entries.count, isMap: true, isNamed: true))
    for (index, entry) in entries.enumerated() {
      widenIfNeeded(&layout, names: index, values: 0)
      set(
        slot: bytes.count - layout.base, at: layout.symbolsStart + index * layout.slotWidth, layout)
      append(name: entry.key)
    }
    for (index, entry) in entries.enumerated() {
      try append(entry.value, named: entry.key, at: index, in: &layout, depth: depth)
    }
  }

  mutating func checkDepth(_ depth: Int) throws(DatabaseError) {
    guard depth > ValueForms.plainNesting else { return }
    symbols.forms.insert(.nested)
    guard depth < ValueCoding.maximumDepth else {
      throw DatabaseError(
        .invalidArgument, "arrays and maps may be nested \(ValueCoding.maximumNesting) deep")
    }
  }

  private mutating func append(
    _ value: Value, named name: String, at index: Int, in layout: inout ContainerLayout, depth: Int
  ) throws(DatabaseError) {
    do throws(DatabaseError) {
      try append(value, at: index, in: &layout, depth: depth)
    } catch {
      throw error.within(field: name)
    }
  }

  /// Appends an element of a container, or puts it into its slot.
  mutating func append(
    _ value: Value, at index: Int, in layout: inout ContainerLayout, depth: Int
  ) throws(DatabaseError) {
    if let code = ValueCoding.inlineCode(value) {
      set(slot: layout.firstInline + code, at: layout.slotsStart + index * layout.slotWidth, layout)
      return
    }
    widenIfNeeded(&layout, names: layout.isNamed ? layout.count : 0, values: index)
    set(
      slot: bytes.count - layout.base, at: layout.slotsStart + index * layout.slotWidth, layout)
    try append(value, depth: depth + 1)
  }
}

// MARK: - Tables of containers

extension ValueEncoder {
  /// Appends a container's header and room for its tables.
  mutating func begin(_ proposed: ContainerLayout) -> ContainerLayout {
    var layout = proposed
    layout.isWide = layout.contentStart - layout.base >= ValueCoding.firstInline
    bytes.append(layout.tag)
    bytes.append(0)
    if layout.isWide {
      bytes.append(bits: UInt64(layout.count) << 16, width: 6)
    } else {
      bytes.append(bits: UInt64(layout.count), width: 2)
    }
    bytes.append(contentsOf: repeatElement(0, count: layout.contentStart - bytes.count))
    return layout
  }

  mutating func set(symbol: UInt32, at index: Int, in layout: ContainerLayout) {
    let width = layout.hasShortSymbols ? 1 : 2
    bytes.set(bits: Int(symbol), width: width, at: layout.symbolsStart + width * index)
  }

  mutating func set(slot: Int, at offset: Int, _ layout: ContainerLayout) {
    bytes.set(bits: slot, width: layout.slotWidth, at: offset)
  }

  /// Makes a narrow container wide when the next bytes would be too far away for its slot. `names`
  /// and `values` are the numbers of slots of each kind that have been set.
  mutating func widenIfNeeded(_ layout: inout ContainerLayout, names: Int, values: Int) {
    guard !layout.isWide, bytes.count - layout.base >= ValueCoding.firstInline else { return }
    widen(&layout, names: names, values: values)
  }

  mutating func widen(_ layout: inout ContainerLayout, names: Int, values: Int) {
    let narrow = layout
    layout.isWide = true
    let shift = layout.contentStart - narrow.contentStart
    let table = Array(bytes[narrow.symbolsStart..<narrow.contentStart])
    bytes.insert(contentsOf: repeatElement(0, count: shift), at: narrow.contentStart)
    for index in stamps.indices where stamps[index].offset >= narrow.contentStart {
      stamps[index].offset += shift
    }

    bytes[layout.base] = layout.tag
    bytes.set(bits: layout.count << 16, width: 6, at: layout.base + 2)
    if !layout.isNamed {
      let length = layout.count * layout.symbolWidth
      bytes.replaceSubrange(
        layout.symbolsStart..<(layout.symbolsStart + length), with: table[..<length])
    }
    let moved = { (offset: Int) in
      let slot = Int(table[offset]) | Int(table[offset + 1]) << 8
      return slot >= ValueCoding.firstInline
        ? slot - ValueCoding.firstInline + ValueCoding.firstWideInline : slot + shift
    }
    for index in 0..<names {
      set(slot: moved(2 * index), at: layout.symbolsStart + 4 * index, layout)
    }
    let start = narrow.slotsStart - narrow.symbolsStart
    for index in 0..<values {
      set(slot: moved(start + 2 * index), at: layout.slotsStart + 4 * index, layout)
    }
  }
}
