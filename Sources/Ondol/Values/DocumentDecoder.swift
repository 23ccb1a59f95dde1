// Decodes the fields of a document into a Codable value. Every error gives the path, the expected
// type and the stored value, because "the data couldn't be read" has cost users of document stores
// more hours than any other message. Values are converted silently only when the meaning is equal:
// 1.0 reads as Int 1, an integer as Double.

internal import OndolFoundation

/// Turns the fields of a document into a `Decodable` value.
///
/// Use the strategies with which the document was encoded. A number fits every type that its value
/// fits: 3.0 an `Int`, 3 a `Double`. Every error gives the path, the expected type and the stored
/// value.
public struct DocumentDecoder: Sendable {
  /// How the names of fields become the names of properties.
  public var keyStrategy: KeyStrategy
  /// How dates are stored.
  public var dateStrategy: DateStrategy
  /// Fields to assume when a document lacks them: for properties that were added after the document
  /// was written. `DocumentEncoder.encode(_:)` makes them from an example.
  public var defaults: [String: Value]
  /// The `userInfo` of the decoder that types receive.
  public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

  /// Makes a decoder.
  ///
  /// - Parameters:
  ///   - keyStrategy: how the names of fields become the names of properties.
  ///   - dateStrategy: how dates are stored.
  ///   - defaults: fields to assume when a document lacks them.
  public init(
    keyStrategy: KeyStrategy = .unchanged, dateStrategy: DateStrategy = .timestamp,
    defaults: [String: Value] = [:]
  ) {
    self.keyStrategy = keyStrategy
    self.dateStrategy = dateStrategy
    self.defaults = defaults
  }

  /// The value of type `Content` in `fields`. There is no document here, so a ``DocumentID`` is
  /// nil.
  ///
  /// - Parameters:
  ///   - type: the type to decode.
  ///   - fields: for example those of `DocumentSnapshot.data()`.
  /// - Throws: `DecodingError` with the path of the field and its value; whatever `Content`'s own
  ///   `init(from:)` throws.
  /// - Complexity: O(size of the fields `Content` asks for).
  public func decode<Content: Decodable>(
    _ type: Content.Type = Content.self, from fields: [String: Value]
  ) throws -> Content {
    try decode(type, from: .value(.map(fields)), of: nil)
  }

  /// - Parameter hints: from the documents decoded before, when this is one of many.
  func decode<Content: Decodable>(
    _ type: Content.Type, from source: FieldSource, of document: DocumentReference?,
    _ hints: DecodingHints? = nil
  ) throws -> Content {
    hints?.begin()
    let context = DecodingContext(
      document: document, keyStrategy: keyStrategy, dateStrategy: dateStrategy,
      userInfo: userInfo, hints: hints)
    var source = source
    if !defaults.isEmpty, case .map(let fields) = source.value {
      source = .value(.map(fields.merging(defaults) { stored, _ in stored }))
    }
    return try FieldDecoder(source: source, path: .root, context: context).decode(type)
  }
}

/// What decoding one document of a result shows for the next. A type asks for the same fields in
/// the same order each time, so the nth field it asks for is usually the nth of the previous
/// document. Checking that takes a tenth of the time of finding the field.
final class DecodingHints {
  /// The most fields and types that are remembered; further ones are looked up each time.
  private static let limit = 64

  /// The numbers of the requested fields, in order.
  private var symbols: [UInt32] = []
  private var next = 0
  /// The types met so far, and how they are decoded.
  private var kinds: [(type: ObjectIdentifier, kind: DecodedKind)] = []
  private var nextKind = 0

  /// Call this before each document.
  fileprivate func begin() {
    next = 0
    nextKind = 0
  }

  /// The number of the next requested name; nil when the row's table lacks it. Takes the row,
  /// because passing a table would retain each of its parts.
  fileprivate func symbol(_ name: String, in row: StoredRow) -> UInt32? {
    let place = next
    next += 1
    if place < symbols.count, row.symbols.isCertainly(name, symbols[place]) {
      return symbols[place]
    }
    guard let symbol = row.symbols.symbol(name) else {
      // So that later places stay those of later fields.
      if place == symbols.count, place < Self.limit { symbols.append(.max) }
      return nil
    }
    if place < symbols.count {
      symbols[place] = symbol
    } else if place == symbols.count, place < Self.limit {
      symbols.append(symbol)
    }
    return symbol
  }

  /// How the next requested type is decoded.
  fileprivate func kind(_ type: any Any.Type) -> DecodedKind {
    let place = nextKind
    nextKind += 1
    let identifier = ObjectIdentifier(type)
    if place < kinds.count, kinds[place].type == identifier { return kinds[place].kind }
    let kind = DecodedKind(type)
    if place < kinds.count {
      kinds[place] = (identifier, kind)
    } else if place == kinds.count, place < Self.limit {
      kinds.append((identifier, kind))
    }
    return kind
  }
}

/// How values of a type are decoded.
private enum DecodedKind {
  case date, url, texts
  /// In the form in which fields store it.
  case direct(any DirectlyCoded.Type)
  case dictionary(any DecodableDictionary.Type)
  /// By its own coding.
  case nested

  /// Checking whether a type conforms to a protocol costs more than everything else here, so it
  /// comes last.
  init(_ type: any Any.Type) {
    if type == Date.self {
      self = .date
    } else if type == [String].self {
      self = .texts
    } else if type == URL.self {
      self = .url
    } else if let direct = type as? any DirectlyCoded.Type {
      self = .direct(direct)
    } else if let dictionary = type as? any DecodableDictionary.Type {
      self = .dictionary(dictionary)
    } else {
      self = .nested
    }
  }
}

/// Decodes a whole value: natively stored types directly, all others through their own coding.
///
/// Nothing in here has the type `Content?`, which would have to be looked up at run time.
///
/// - Parameter decoder: the location of the value; made only when it is needed.
private func decoded<Content: Decodable>(
  _ type: Content.Type, _ source: FieldSource, _ context: DecodingContext,
  _ decoder: () -> FieldDecoder
) throws -> Content {
  switch context.hints?.kind(type) ?? DecodedKind(type) {
  case .date:
    let date = context.dateStrategy.decode(source.value)
    if let date, let content = date as? Content { return content }
  case .url:
    let url = source.text.flatMap { URL(string: $0) }
    if let url, let content = url as? Content { return content }
  case .direct(let direct):
    let value = direct.decodeField(source.value, in: context)
    if let value, let content = value as? Content { return content }
  case .texts:
    if let texts = source.texts, let content = texts as? Content { return content }
    // If this is not a list of texts, the array's own decoding explains why.
    return try Content(from: decoder())
  case .dictionary(let dictionary):
    // A dictionary's keys are data, and so are the keys inside it.
    var plain = decoder()
    plain.context = context.withPlainKeys
    if let content = try dictionary.decoded(by: plain) as? Content { return content }
    return try Content(from: plain)
  case .nested:
    return try Content(from: decoder())
  }
  throw decoder().mismatch(type)
}

struct FieldDecoder: Decoder {
  let source: FieldSource
  let path: CodingPath
  fileprivate(set) var context: DecodingContext
  /// The fields beside this one that its type has no properties for.
  fileprivate(set) var otherFields: (() -> [String: Value])?

  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { context.userInfo }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard let map = source.map else { throw mismatch([String: Value].self) }
    return KeyedDecodingContainer(
      KeyedValues<Key>(values: MapValues(map: map, path: path, context: context)))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard let list = source.list else { throw mismatch([Value].self) }
    return UnkeyedValues(elements: list, path: path, context: context)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer {
    SingleValue(decoder: self)
  }

  /// Decodes the whole value.
  func decode<Content: Decodable>(_ type: Content.Type) throws -> Content {
    try decoded(type, source, context) { self }
  }

  func mismatch(_ wanted: any Any.Type) -> DecodingError {
    let place = path.keys
    let value = source.value
    let field = place.isEmpty ? "The document" : "Field '\(dotted(place))'"
    if case .null = value {
      return .valueNotFound(
        wanted, .init(codingPath: place, debugDescription: "\(field) is null, not \(wanted)"))
    }
    return .typeMismatch(
      wanted,
      .init(
        codingPath: place,
        debugDescription: "\(field) holds \(value.kindDescription), which is not \(wanted)"))
  }
}

/// The fields of a decoded map: the part of a container that does not depend on the type of its
/// keys. The dependent part is looked up and copied at run time, so it is as small as possible.
private final class MapValues {
  private let map: MapSource
  let path: CodingPath
  let context: DecodingContext

  init(map: MapSource, path: CodingPath, context: DecodingContext) {
    self.map = map
    self.path = path
    self.context = context
  }

  var names: [String] { map.names }

  /// The fields whose names are wanted.
  func fields(where isWanted: (String) -> Bool) -> [String: Value] {
    var fields: [String: Value] = [:]
    for name in map.names where isWanted(name) {
      if let field = map[name] { _ = try? fields.put(field.value, at: name) }
    }
    return fields
  }

  /// The field for the key with this name.
  func find(_ name: String) -> FieldSource? {
    let name = context.keyStrategy == .unchanged ? name : KeyStrategy.snakeCase(name)
    guard let hints = context.hints, case .row(let row, let layout) = map, !layout.isNamed else {
      return map[name]
    }
    guard let symbol = hints.symbol(name, in: row) else { return nil }
    return row.place(ofSymbol: symbol, in: layout).map { .row(row, $0) }
  }

  /// The field for the key with this name, unless it is missing or null.
  func present(_ name: String) -> FieldSource? {
    guard let source = find(name), !source.isNull else { return nil }
    return source
  }

  /// The error for the key's field, which cannot be decoded.
  func problem(_ wanted: any Any.Type, _ key: any CodingKey) -> DecodingError {
    if let source = find(key.stringValue) { return decoder(key, source).mismatch(wanted) }
    let place = dotted(path.keys + [key])
    return .keyNotFound(
      key, .init(codingPath: path.keys, debugDescription: "Field '\(place)' is missing"))
  }

  func decoder(_ key: any CodingKey, _ source: FieldSource) -> FieldDecoder {
    FieldDecoder(source: source, path: path.appending(key), context: context)
  }
}

private struct KeyedValues<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let values: MapValues

  var codingPath: [any CodingKey] { values.path.keys }

  /// The keys whose fields exist. An enum is decoded by the only one.
  var allKeys: [Key] { values.names.compactMap { propertyKey(of: $0) } }

  func contains(_ key: Key) -> Bool { values.find(key.stringValue) != nil }

  func decodeNil(forKey key: Key) throws -> Bool { try source(key).isNull }

  func decode<Content: Decodable>(_ type: Content.Type, forKey key: Key) throws -> Content {
    let source = try source(key)
    return try decoded(type, source, values.context) { values.decoder(key, source) }
  }

  func decodeIfPresent<Content: Decodable>(
    _ type: Content.Type, forKey key: Key
  ) throws -> Content? {
    guard let source = values.present(key.stringValue) else { return nil }
    return try decoded(type, source, values.context) { values.decoder(key, source) }
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    try values.decoder(key, source(key)).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try values.decoder(key, source(key)).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder { superDecoder(PlainKey("super")) }

  func superDecoder(forKey key: Key) throws -> any Decoder {
    var decoder = superDecoder(key)
    decoder.otherFields = { values.fields { propertyKey(of: $0) == nil } }
    return decoder
  }

  /// A superclass whose fields were all nil was never written, and reads as null.
  private func superDecoder(_ key: some CodingKey) -> FieldDecoder {
    values.decoder(key, values.find(key.stringValue) ?? .value(.null))
  }

  /// The key of a field; nil when the type has none.
  private func propertyKey(of name: String) -> Key? {
    let strategy = values.context.keyStrategy
    if strategy == .unchanged { return Key(stringValue: name) }
    return strategy.origins(of: name).lazy.compactMap { Key(stringValue: $0) }.first
  }

  private func source(_ key: Key) throws -> FieldSource {
    guard let source = values.find(key.stringValue) else {
      throw values.problem(Value.self, key)
    }
    return source
  }
}

// The types of most properties, decoded without checking the type at run time and without an
// intermediate `Value`.
extension KeyedValues {
  func decode(_ type: String.Type, forKey key: Key) throws -> String {
    let field = values.find(key.stringValue)?.text
    guard let field else { throw values.problem(type, key) }
    return field
  }
  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
    let field = values.find(key.stringValue)?.boolean
    guard let field else { throw values.problem(type, key) }
    return field
  }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
    let field = values.find(key.stringValue)?.wholeNumber.flatMap { Int(exactly: $0) }
    guard let field else { throw values.problem(type, key) }
    return field
  }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
    let field = values.find(key.stringValue)?.wholeNumber
    guard let field else { throw values.problem(type, key) }
    return field
  }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
    let field = values.find(key.stringValue)?.number
    guard let field else { throw values.problem(type, key) }
    return field
  }

  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
    guard let source = values.present(key.stringValue) else { return nil }
    let field = source.text
    guard let field else { throw values.problem(type, key) }
    return field
  }
  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
    guard let source = values.present(key.stringValue) else { return nil }
    let field = source.boolean
    guard let field else { throw values.problem(type, key) }
    return field
  }
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
    guard let source = values.present(key.stringValue) else { return nil }
    let field = source.wholeNumber.flatMap { Int(exactly: $0) }
    guard let field else { throw values.problem(type, key) }
    return field
  }
  func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
    guard let source = values.present(key.stringValue) else { return nil }
    let field = source.wholeNumber
    guard let field else { throw values.problem(type, key) }
    return field
  }
  func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
    guard let source = values.present(key.stringValue) else { return nil }
    let field = source.number
    guard let field else { throw values.problem(type, key) }
    return field
  }
}

private struct UnkeyedValues: UnkeyedDecodingContainer {
  let elements: ListSource
  let path: CodingPath
  let context: DecodingContext
  private(set) var currentIndex = 0

  var codingPath: [any CodingKey] { path.keys }
  var count: Int? { elements.count }
  var isAtEnd: Bool { currentIndex >= elements.count }

  mutating func decodeNil() throws -> Bool {
    guard try decoder(for: Value.self).source.isNull else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode<Content: Decodable>(_ type: Content.Type) throws -> Content {
    let decoded = try decoder(for: type).decode(type)
    currentIndex += 1  // only now, so that a failed element can be tried as another type
    return decoded
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) throws -> KeyedDecodingContainer<Nested> {
    let nested = try decoder(for: [String: Value].self).container(keyedBy: type)
    currentIndex += 1
    return nested
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    let nested = try decoder(for: [Value].self).unkeyedContainer()
    currentIndex += 1
    return nested
  }

  mutating func superDecoder() throws -> any Decoder {
    let decoder = try decoder(for: Value.self)
    currentIndex += 1
    return decoder
  }

  private func decoder(for wanted: any Any.Type) throws -> FieldDecoder {
    let place = path.appending(PlainKey(currentIndex))
    guard currentIndex < elements.count else {
      let context = DecodingError.Context(
        codingPath: place.keys,
        debugDescription: "'\(dotted(path.keys))' has only \(elements.count) elements")
      throw DecodingError.valueNotFound(wanted, context)
    }
    return FieldDecoder(source: elements[currentIndex], path: place, context: context)
  }
}

private struct SingleValue: SingleValueDecodingContainer {
  let decoder: FieldDecoder

  var codingPath: [any CodingKey] { decoder.codingPath }

  func decodeNil() -> Bool { decoder.source.isNull }

  func decode<Content: Decodable>(_ type: Content.Type) throws -> Content {
    try decoder.decode(type)
  }
}
