// From the fields of a document to a Codable value. Every error says where (the path), what was
// wanted and what is stored, because "the data couldn't be read" has cost users of document stores
// more hours than any other message. Nothing is converted silently except where the meaning is
// equal: 1.0 reads as Int 1, an integer as Double.

internal import OndolFoundation

/// Turns the fields of a document into a `Decodable` value.
///
/// Use the strategies the document was encoded with. A number fits every type that its value fits:
/// 3.0 an `Int`, 3 a `Double`. Every error says where, what was wanted and what is stored.
public struct DocumentDecoder: Sendable {
  /// How the names of fields become the names of properties.
  public var keyStrategy: KeyStrategy
  /// How dates are stored.
  public var dateStrategy: DateStrategy
  /// Fields to assume where a document lacks them: for properties that were added after the
  /// document was written. `DocumentEncoder.encode(_:)` makes them from an example.
  public var defaults: [String: Value]

  /// Makes a decoder.
  ///
  /// - Parameters:
  ///   - keyStrategy: how the names of fields become the names of properties.
  ///   - dateStrategy: how dates are stored.
  ///   - defaults: fields to assume where a document lacks them.
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
  ///   - type: what the fields are to fit.
  ///   - fields: what `DocumentSnapshot.data()` gives, for one.
  /// - Throws: `DecodingError` with the path of the field and what stands there; whatever
  ///   `Content`'s own `init(from:)` throws.
  /// - Complexity: O(size of the fields `Content` asks for).
  public func decode<Content: Decodable>(
    _ type: Content.Type = Content.self, from fields: [String: Value]
  ) throws -> Content {
    try decode(type, from: .value(.map(fields)), of: nil)
  }

  func decode<Content: Decodable>(
    _ type: Content.Type, from source: FieldSource, of document: DocumentReference?
  ) throws -> Content {
    let context = DecodingContext(
      document: document, keyStrategy: keyStrategy, dateStrategy: dateStrategy)
    var source = source
    if !defaults.isEmpty, case .map(let fields) = source.value {
      source = .value(.map(fields.merging(defaults) { stored, _ in stored }))
    }
    return try FieldDecoder(source: source, path: .root, context: context).decode(type)
  }
}

/// What decoding knows beside the value. A class, because every container holds it.
final class DecodingContext: Sendable {
  /// The document that is decoded.
  let document: DocumentReference?
  let keyStrategy: KeyStrategy
  let dateStrategy: DateStrategy

  init(document: DocumentReference?, keyStrategy: KeyStrategy, dateStrategy: DateStrategy) {
    self.document = document
    self.keyStrategy = keyStrategy
    self.dateStrategy = dateStrategy
  }

  /// The same for values whose keys are data.
  var withPlainKeys: DecodingContext {
    DecodingContext(document: document, keyStrategy: .unchanged, dateStrategy: dateStrategy)
  }
}

/// The value as a type that fields store natively; nil when it does not fit, or when the type has
/// its own coding, which `isDirect` tells apart.
///
/// To ask whether a type conforms to a protocol costs more than all else here, so it comes last.
private func directlyDecoded<Content: Decodable>(
  _ type: Content.Type, _ source: FieldSource, _ context: DecodingContext, isDirect: inout Bool
) -> Content? {
  isDirect = true
  if type == Date.self { return context.dateStrategy.decode(source.value) as? Content }
  if type == [String].self, let texts = source.texts { return texts as? Content }
  if type == URL.self { return source.value.string.flatMap { URL(string: $0) } as? Content }
  // What is no list of texts is explained by the array's own decoding.
  guard type != [String].self, let direct = type as? any DirectlyCoded.Type else {
    isDirect = false
    return nil
  }
  return direct.decodeField(source.value, in: context) as? Content
}

struct FieldDecoder: Decoder {
  let source: FieldSource
  let path: CodingPath
  let context: DecodingContext

  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

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

  /// Decodes a whole value: natively stored types directly, all others through their own coding.
  func decode<Content: Decodable>(_ type: Content.Type) throws -> Content {
    var isDirect = false
    if let content = directlyDecoded(type, source, context, isDirect: &isDirect) { return content }
    guard !isDirect else { throw mismatch(type) }
    return try decodeNested(type)
  }

  /// Decodes a value of a type that is not stored natively.
  fileprivate func decodeNested<Content: Decodable>(_ type: Content.Type) throws -> Content {
    guard let dictionary = type as? any DecodableDictionary.Type else {
      return try Content(from: self)
    }
    // A dictionary's keys are data, and so are those of what is in it below.
    let plain = FieldDecoder(source: source, path: path, context: context.withPlainKeys)
    if let content = try dictionary.decoded(by: plain) as? Content { return content }
    return try Content(from: plain)
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

/// The fields of a map that is decoded: what a container does that does not depend on the type of
/// its keys. What does is looked up and copied at run time, so it is as little as possible.
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

  /// The field for the key with this name.
  func find(_ name: String) -> FieldSource? {
    map[context.keyStrategy == .unchanged ? name : KeyStrategy.snakeCase(name)]
  }

  /// The field as one of the types that most properties are.
  func required<Field: FieldReadable>(_ type: Field.Type, _ key: some CodingKey) throws -> Field {
    guard let source = find(key.stringValue), let field = Field(fieldValue: source.value) else {
      throw problem(type, key)
    }
    return field
  }

  /// The same for a field that may be missing or null.
  func optional<Field: FieldReadable>(
    _ type: Field.Type, _ key: any CodingKey
  ) throws -> Field? {
    guard let source = find(key.stringValue), !source.isNull else { return nil }
    guard let field = Field(fieldValue: source.value) else {
      throw decoder(key, source).mismatch(type)
    }
    return field
  }

  /// What is wrong with the key's field, which cannot be decoded.
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

  /// The keys whose fields are there. An enum is decoded by the only one.
  var allKeys: [Key] {
    let strategy = values.context.keyStrategy
    if strategy == .unchanged { return values.names.compactMap { Key(stringValue: $0) } }
    return values.names.compactMap { name in
      strategy.origins(of: name).lazy.compactMap { Key(stringValue: $0) }.first
    }
  }

  func contains(_ key: Key) -> Bool { values.find(key.stringValue) != nil }

  func decodeNil(forKey key: Key) throws -> Bool { try source(key).isNull }

  func decode<Content: Decodable>(_ type: Content.Type, forKey key: Key) throws -> Content {
    try decode(type, key, source(key))
  }

  func decodeIfPresent<Content: Decodable>(
    _ type: Content.Type, forKey key: Key
  ) throws -> Content? {
    guard let source = values.find(key.stringValue), !source.isNull else { return nil }
    return try decode(type, key, source)
  }

  /// The path to the value is only put together where it is needed.
  private func decode<Content: Decodable>(
    _ type: Content.Type, _ key: Key, _ source: FieldSource
  ) throws -> Content {
    var isDirect = false
    if let content = directlyDecoded(type, source, values.context, isDirect: &isDirect) {
      return content
    }
    guard !isDirect else { throw values.problem(type, key) }
    return try values.decoder(key, source).decodeNested(type)
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
  func superDecoder(forKey key: Key) throws -> any Decoder { superDecoder(key) }

  /// A superclass whose fields were all nil was never written, and reads as null.
  private func superDecoder(_ key: some CodingKey) -> any Decoder {
    values.decoder(key, values.find(key.stringValue) ?? .value(.null))
  }

  private func source(_ key: Key) throws -> FieldSource {
    guard let source = values.find(key.stringValue) else {
      throw values.problem(Value.self, key)
    }
    return source
  }
}

// What most properties are, without asking the type at run time what it is.
extension KeyedValues {
  func decode(_ type: String.Type, forKey key: Key) throws -> String {
    try values.required(type, key)
  }
  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
    try values.required(type, key)
  }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
    try values.required(type, key)
  }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
    try values.required(type, key)
  }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
    try values.required(type, key)
  }

  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
    try values.optional(type, key)
  }
  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
    try values.optional(type, key)
  }
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
    try values.optional(type, key)
  }
  func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
    try values.optional(type, key)
  }
  func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
    try values.optional(type, key)
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
