// A value that is being decoded: a Value already, or still bytes in a document's row, in which a
// Codable type finds its fields while nothing else is decoded. The row was checked when it was read
// (DocumentView.check), so nothing here can fail. A missing field reads as nothing.

internal import OndolEngine

/// A document's row, known to be well formed, with all names among the symbols.
final class StoredRow: Sendable {
  let bytes: [UInt8]
  let symbols: SymbolTable

  init(_ bytes: [UInt8], _ symbols: SymbolTable) {
    self.bytes = bytes
    self.symbols = symbols
  }

  /// All fields, decoded.
  var fields: [String: Value] { FieldSource(documentIn: self).value.map ?? [:] }

  /// The value at a place, decoded.
  func value(at place: ValueView.Place) -> Value {
    let bytes = bytes
    let octets = bytes.bytes.octets
    switch place {
    case .inline(let code): return ValueCoding.inlineValue(code) ?? .null
    case .offset(let offset):
      // Most fields are numbers and texts, which need no symbols.
      if let number = octets.number(at: offset) { return number }
      if let text = octets.text(at: offset) { return .string(text) }
      return (try? ValueView(octets, place).value(symbols)) ?? .null
    }
  }

  /// Whether the fields are the same as others to the last bit. Stops at the first difference.
  func isIdentical(to others: [String: Value]) -> Bool {
    container(at: .offset(ValueCoding.envelopeLength))?.count == others.count
      && others.allSatisfy { name, value in self.value(at: [name])?.isIdentical(to: value) ?? false
      }
  }

  /// The text at a place; nil for another type.
  func text(at place: ValueView.Place) -> String? {
    guard case .offset(let offset) = place else { return nil }
    let bytes = bytes
    return bytes.bytes.octets.text(at: offset)
  }

  /// The number at a place; nil for another type.
  func number(at place: ValueView.Place) -> Value? {
    switch place {
    case .inline(let code): return ValueCoding.inlineValue(code)
    case .offset(let offset):
      let bytes = bytes
      return bytes.bytes.octets.number(at: offset)
    }
  }

  /// The decimal at a place; nil for another type.
  func decimal(at place: ValueView.Place) -> Value? {
    let bytes = bytes
    return ValueView(bytes.bytes.octets, place).decimal.map { .decimal($0) }
  }

  /// The value at the end of the names, decoded, or nil.
  func value(at names: FieldNames) -> Value? {
    let bytes = bytes
    let octets = bytes.bytes.octets
    var place = ValueView.Place.offset(ValueCoding.envelopeLength)
    for name in names {
      guard case .offset(let offset) = place, octets.isMap(at: offset),
        let layout = try? octets.container(at: offset), let next = self.place(of: name, in: layout)
      else { return nil }
      place = next
    }
    return value(at: place)
  }

  /// The texts of a list; nil for another type, or when another type is in the list.
  func texts(at place: ValueView.Place) -> [String]? {
    guard let layout = container(at: place), !layout.isMap else { return nil }
    let bytes = bytes
    let octets = bytes.bytes.octets
    var texts: [String] = []
    texts.reserveCapacity(layout.count)
    for index in 0..<layout.count {
      guard case .offset(let offset)? = try? octets.place(index, of: layout),
        let text = octets.text(at: offset)
      else { return nil }
      texts.append(text)
    }
    return texts
  }

  /// The container at a place; nil for a value of another kind.
  func container(at place: ValueView.Place) -> ContainerLayout? {
    let bytes = bytes
    guard case .offset(let offset) = place, let tag = bytes.bytes.octets.octet(at: offset),
      tag >= ValueCoding.Tag.map
    else { return nil }
    return try? bytes.bytes.octets.container(at: offset)
  }

  func place(_ index: Int, of layout: ContainerLayout) -> ValueView.Place? {
    let bytes = bytes
    return try? bytes.bytes.octets.place(index, of: layout)
  }

  /// The place of the field with the number, in a map without names of its own.
  func place(ofSymbol symbol: UInt32, in layout: ContainerLayout) -> ValueView.Place? {
    let bytes = bytes
    let octets = bytes.bytes.octets
    guard let index = octets.index(ofSymbol: Int(symbol), in: layout) else { return nil }
    return try? octets.place(index, of: layout)
  }

  func place(of name: String, in layout: ContainerLayout) -> ValueView.Place? {
    let bytes = bytes
    let octets = bytes.bytes.octets
    let index =
      layout.isNamed
      ? try? octets.index(ofName: name, in: layout)
      : symbols.symbol(name).flatMap { octets.index(ofSymbol: Int($0), in: layout) }
    guard let index else { return nil }
    return try? octets.place(index, of: layout)
  }
}

/// A value to decode.
enum FieldSource: Sendable {
  case value(Value)
  case row(StoredRow, ValueView.Place)

  /// The fields of a document's row.
  init(documentIn row: StoredRow) {
    self = .row(row, .offset(ValueCoding.envelopeLength))
  }

  /// The value as a whole.
  var value: Value {
    switch self {
    case .value(let value): value
    case .row(let row, let place): row.value(at: place)
    }
  }

  var isNull: Bool {
    switch self {
    case .value(let value): value.isNull
    case .row(_, .inline(let code)): code == ValueCoding.inlineCode(.null)
    case .row: false
    }
  }

  /// Its text; nil for another type.
  var text: String? {
    switch self {
    case .value(let value): value.string
    case .row(let row, let place): row.text(at: place)
    }
  }

  /// Its boolean; nil for another type.
  var boolean: Bool? {
    switch self {
    case .value(let value): value.boolean
    case .row(_, .inline(let code)): ValueCoding.inlineValue(code)?.boolean
    case .row: nil
    }
  }

  /// Its integer value, even if stored as a double; nil for another type or when it does not fit.
  var wholeNumber: Int64? {
    switch numeric {
    case .integer(let integer): integer
    case .double(let double): Int64(exactly: double)
    case .decimal(let decimal): decimal.whole()
    default: nil
    }
  }

  /// Its number, an integer or a decimal as the nearest double; nil for another type.
  var number: Double? {
    switch numeric {
    case .integer(let integer): Double(integer)
    case .double(let double): double
    case .decimal(let decimal): decimal.double
    default: nil
    }
  }

  /// Its value when it is a number; otherwise any value that is not a number.
  private var numeric: Value? {
    switch self {
    case .value(let value): value
    case .row(let row, let place): row.number(at: place) ?? row.decimal(at: place)
    }
  }

  /// The texts of its list; nil for another type, or when another type is in the list.
  var texts: [String]? {
    switch self {
    case .value(let value):
      guard let elements = value.array else { return nil }
      let texts = elements.compactMap(\.string)
      return texts.count == elements.count ? texts : nil
    case .row(let row, let place): return row.texts(at: place)
    }
  }

  /// Its map; nil for another type.
  var map: MapSource? {
    switch self {
    case .value(let value): return value.map.map { .fields($0) }
    case .row(let row, let place):
      guard let layout = row.container(at: place), layout.isMap else { return nil }
      return .row(row, layout)
    }
  }

  /// The elements of its array or vector; nil for another type.
  var list: ListSource? {
    if case .row(let row, let place) = self, let layout = row.container(at: place) {
      return layout.isMap ? nil : .row(row, layout)
    }
    switch value {
    case .array(let elements): return .elements(elements)
    case .vector(let vector): return .elements(vector.components.map { .double($0) })
    default: return nil
    }
  }
}

/// A map to decode.
enum MapSource: Sendable {
  case fields([String: Value])
  case row(StoredRow, ContainerLayout)

  subscript(name: String) -> FieldSource? {
    switch self {
    case .fields(let fields): return fields[exactly: name].map { .value($0) }
    case .row(let row, let layout): return row.place(of: name, in: layout).map { .row(row, $0) }
    }
  }

  var names: [String] {
    switch self {
    case .fields(let fields): Array(fields.keys)
    case .row(let row, let layout):
      row.value(at: .offset(layout.base)).map.map { Array($0.keys) } ?? []
    }
  }
}

/// An array to decode.
enum ListSource: Sendable {
  case elements([Value])
  case row(StoredRow, ContainerLayout)

  var count: Int {
    switch self {
    case .elements(let elements): elements.count
    case .row(_, let layout): layout.count
    }
  }

  /// `index` is within the list.
  subscript(index: Int) -> FieldSource {
    switch self {
    case .elements(let elements): .value(elements[index])
    case .row(let row, let layout):
      row.place(index, of: layout).map { .row(row, $0) } ?? .value(.null)
    }
  }
}
