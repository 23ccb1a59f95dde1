// Encodes a Codable value straight into the bytes of a document's row, without fields in between.
// It runs on the caller, like the encoder of fields, with the names that the catalog has for the
// collection at that moment. The commit takes the row unchanged when its own names begin with these
// (EncodedRow). They usually do, because names keep their numbers for ever.
//
// A value that RowTape refuses is encoded again from the start, as fields. So a value's
// `encode(to:)` may be called twice, and all error messages come from the encoder of fields.

internal import OndolEngine
internal import OndolFoundation

/// A document that was encoded before it was written: the row that creates it, with stamps that the
/// commit fills in.
struct EncodedRow: Sendable {
  let row: StoredRow
  let names: RowNames
}

/// Types whose values were refused for their contents, such as a time that the commit sets. Further
/// values of these types would most likely be refused as well, and are not tried.
final class RefusedTypes: Sendable {
  private let types = Guarded<Set<ObjectIdentifier>>([])

  func contains(_ type: ObjectIdentifier) -> Bool { types.withLock { $0.contains(type) } }

  func insert(_ type: ObjectIdentifier) {
    types.withLock { _ = $0.insert(type) }
  }
}

/// Encodes documents of one collection, one after the other.
final class RowEncoder {
  /// How values of a type are encoded.
  private enum Kind {
    /// By their own `encode(to:)`.
    case nested
    /// In the form in which fields store them.
    case direct
    case date
    case texts
    /// A dictionary that becomes a map. No strategy changes its keys.
    case map
    /// Left out when it is a field.
    case omitted
    case refused
  }

  /// After this many refusals in a row, further values are not tried.
  private static let maximumRefusals = 8

  private let names: RowNames
  private let refusedTypes: RefusedTypes
  fileprivate var tape: RowTape
  fileprivate private(set) var strategies = DocumentEncoder()
  /// The number of the document that is being encoded. Containers kept from an earlier document
  /// write nothing.
  fileprivate private(set) var document = 0
  private var isEncoding = false
  private var refusals = 0
  /// The type that was encoded last, and whether it is refused.
  private var last: (type: ObjectIdentifier, isRefused: Bool)?
  /// The types met so far, and how they are encoded.
  private var kinds: [(type: ObjectIdentifier, kind: Kind)] = []

  init(_ symbols: SymbolTable, _ refusedTypes: RefusedTypes) {
    self.refusedTypes = refusedTypes
    names = RowNames(symbols)
    tape = RowTape(symbols)
  }

  /// The row of a document; nil when the document must be encoded as fields.
  func row<Content: Encodable>(
    of content: Content, _ strategies: DocumentEncoder
  ) -> EncodedRow? {
    guard !isEncoding, refusals < Self.maximumRefusals, !names.symbols.hasTwoSpellings,
      mayEncode(Content.self)
    else { return nil }
    isEncoding = true
    defer { isEncoding = false }
    self.strategies = strategies
    document &+= 1
    tape.begin()
    do {
      try encode(content, at: RowTape.root, isLiteral: strategies.keyStrategy == .unchanged)
    } catch {
      refusals += 1
      return nil
    }
    let row = finish()
    if tape.refusal == .form { refuse(Content.self) }
    return row
  }

  /// The row of a document with these fields; nil when it must be encoded in another way.
  func row(of fields: [String: Value]) -> EncodedRow? {
    guard !isEncoding, refusals < Self.maximumRefusals, !names.symbols.hasTwoSpellings else {
      return nil
    }
    document &+= 1
    tape.begin()
    tape.put(fields, at: RowTape.root)
    return finish()
  }

  private func finish() -> EncodedRow? {
    guard let bytes = tape.row() else {
      refusals += 1
      return nil
    }
    refusals = 0
    return EncodedRow(row: StoredRow(bytes, names.symbols), names: names)
  }

  private func mayEncode(_ type: any Any.Type) -> Bool {
    let type = ObjectIdentifier(type)
    if let last, last.type == type { return !last.isRefused }
    let isRefused = refusedTypes.contains(type)
    last = (type, isRefused)
    return !isRefused
  }

  private func refuse(_ type: any Any.Type) {
    let type = ObjectIdentifier(type)
    last = (type, true)
    refusedTypes.insert(type)
  }

  /// Encodes a value at a place.
  ///
  /// - Parameter isLiteral: whether keys are names of fields unchanged.
  fileprivate func encode<Content: Encodable>(
    _ value: Content, at place: Int, isLiteral: Bool
  ) throws {
    switch kind(Content.self) {
    case .nested, .omitted: try encodeNested(value, at: place, isLiteral: isLiteral)
    case .map: try encodeNested(value, at: place, isLiteral: true)
    case .texts: if let texts = value as? [String] { tape.put(texts, at: place) }
    case .date:
      if let date = value as? Date, let plain = try strategies.dateStrategy.encode(date).value {
        tape.put(plain, at: place)
      }
    case .direct:
      if let plain = try directInput(of: value, strategies)?.value {
        tape.put(plain, at: place)
      } else {
        tape.refuse()
      }
    case .refused: tape.refuse()
    }
  }

  private func encodeNested<Content: Encodable>(
    _ value: Content, at place: Int, isLiteral: Bool
  ) throws {
    try value.encode(
      to: PlaceEncoder(encoder: self, place: place, document: document, isLiteral: isLiteral))
  }

  private func kind<Content: Encodable>(_ type: Content.Type) -> Kind {
    let identifier = ObjectIdentifier(type)
    for known in kinds where known.type == identifier { return known.kind }
    let kind = Self.kind(of: type)
    kinds.append((identifier, kind))
    return kind
  }

  private static func kind<Content: Encodable>(of type: Content.Type) -> Kind {
    if type == Date.self { return .date }
    if type == [String].self { return .texts }
    if type == OtherFields.self { return .refused }
    if type is any OmittedFromDocuments.Type { return .omitted }
    guard type is any SpeciallyEncoded.Type else { return .nested }
    if let dictionary = type as? any EncodableDictionary.Type {
      return dictionary.isKeyed ? .map : .refused
    }
    return .direct
  }

  /// Whether a property of this type is not stored as a field.
  fileprivate func isOmitted<Content: Encodable>(_ type: Content.Type) -> Bool {
    if case .omitted = kind(type) { true } else { false }
  }
}

/// The encoder that a value writes itself into. An encoder that is kept beyond its document does
/// nothing.
private struct PlaceEncoder: Encoder {
  let encoder: RowEncoder
  let place: Int
  let document: Int
  let isLiteral: Bool

  var isCurrent: Bool { encoder.document == document }

  /// The path is not tracked. A value that asks for it is encoded as fields, where the path is
  /// known.
  var codingPath: [any CodingKey] {
    if isCurrent { encoder.tape.refuse() }
    return []
  }

  var userInfo: [CodingUserInfoKey: Any] { encoder.strategies.userInfo }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    let container = isCurrent ? encoder.tape.container(at: place, isMap: true) : 0
    return KeyedEncodingContainer(FieldsOfRow<Key>(owner: self, container: container))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    ElementsOfRow(
      owner: self, container: isCurrent ? encoder.tape.container(at: place, isMap: false) : 0)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { ValueOfRow(owner: self) }

  func at(_ place: Int) -> PlaceEncoder {
    PlaceEncoder(encoder: encoder, place: place, document: document, isLiteral: isLiteral)
  }

  /// The same encoder for a refused place: it discards what is written.
  var refused: PlaceEncoder {
    PlaceEncoder(encoder: encoder, place: place, document: -1, isLiteral: isLiteral)
  }
}

private struct FieldsOfRow<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let owner: PlaceEncoder
  let container: Int

  var codingPath: [any CodingKey] { owner.codingPath }

  /// A new field; nil when it is refused.
  private func field(_ key: some CodingKey) -> Int? {
    guard owner.isCurrent else { return nil }
    let name = key.stringValue
    return owner.encoder.tape.field(
      owner.isLiteral ? name : KeyStrategy.snakeCase(name), in: container)
  }

  private func put(_ value: Value, _ key: Key) {
    if let place = field(key) { owner.encoder.tape.put(value, at: place) }
  }

  mutating func encodeNil(forKey key: Key) throws { put(.null, key) }
  mutating func encode(_ value: Bool, forKey key: Key) throws { put(.boolean(value), key) }
  mutating func encode(_ value: Int, forKey key: Key) throws { put(.integer(Int64(value)), key) }
  mutating func encode(_ value: Int64, forKey key: Key) throws { put(.integer(value), key) }
  mutating func encode(_ value: Double, forKey key: Key) throws { put(.double(value), key) }
  mutating func encode(_ value: String, forKey key: Key) throws {
    if let place = field(key) { owner.encoder.tape.put(value, at: place) }
  }

  mutating func encode<Content: Encodable>(_ value: Content, forKey key: Key) throws {
    if owner.encoder.isOmitted(Content.self) { return }
    guard let place = field(key) else { return }
    try owner.encoder.encode(value, at: place, isLiteral: owner.isLiteral)
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    child(key).container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    child(key).unkeyedContainer()
  }

  mutating func superEncoder() -> any Encoder { child(PlainKey("super")) }
  mutating func superEncoder(forKey key: Key) -> any Encoder { child(key) }

  private func child(_ key: some CodingKey) -> PlaceEncoder {
    field(key).map(owner.at) ?? owner.refused
  }
}

private struct ElementsOfRow: UnkeyedEncodingContainer {
  let owner: PlaceEncoder
  let container: Int

  var codingPath: [any CodingKey] { owner.codingPath }
  var count: Int { owner.isCurrent ? owner.encoder.tape.count(of: container) : 0 }

  private func put(_ value: Value) {
    guard owner.isCurrent else { return }
    owner.encoder.tape.put(value, at: owner.encoder.tape.element(of: container))
  }

  mutating func encodeNil() throws { put(.null) }
  mutating func encode(_ value: String) throws { put(.string(value)) }
  mutating func encode(_ value: Int) throws { put(.integer(Int64(value))) }
  mutating func encode(_ value: Double) throws { put(.double(value)) }

  mutating func encode<Content: Encodable>(_ value: Content) throws {
    guard owner.isCurrent else { return }
    let place = owner.encoder.tape.element(of: container)
    try owner.encoder.encode(value, at: place, isLiteral: owner.isLiteral)
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) -> KeyedEncodingContainer<Nested> {
    child().container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    child().unkeyedContainer()
  }

  mutating func superEncoder() -> any Encoder { child() }

  private func child() -> PlaceEncoder {
    guard owner.isCurrent else { return owner.refused }
    return owner.at(owner.encoder.tape.element(of: container))
  }
}

private struct ValueOfRow: SingleValueEncodingContainer {
  let owner: PlaceEncoder

  var codingPath: [any CodingKey] { owner.codingPath }

  mutating func encodeNil() throws {
    if owner.isCurrent { owner.encoder.tape.put(.null, at: owner.place) }
  }

  mutating func encode<Content: Encodable>(_ value: Content) throws {
    guard owner.isCurrent else { return }
    try owner.encoder.encode(value, at: owner.place, isLiteral: owner.isLiteral)
  }
}
