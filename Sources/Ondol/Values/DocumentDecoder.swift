// From the fields of a document to a Codable value. Every error says where (the path), what was
// wanted and what is stored, because "the data couldn't be read" has cost users of document stores
// more hours than any other message. Nothing is converted silently except where the meaning is
// equal: 1.0 reads as Int 1, an integer as Double.

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Turns the fields of a document into a `Decodable` value.
public struct DocumentDecoder: Sendable {
  /// Makes a decoder.
  public init() {}

  /// The value of type `Content` in `fields`.
  ///
  /// - Throws: `DecodingError` with the path of the field and what stands there; whatever
  ///   `Content`'s own `init(from:)` throws.
  /// - Complexity: O(size of the fields `Content` asks for).
  public func decode<Content: Decodable>(
    _ type: Content.Type = Content.self, from fields: [String: Value]
  ) throws -> Content {
    try decode(type, from: .map(fields), in: DecodingContext())
  }

  func decode<Content: Decodable>(
    _ type: Content.Type, from value: Value, in context: DecodingContext
  ) throws -> Content {
    try FieldDecoder(value: value, path: .root, context: context).decode(type)
  }
}

/// What decoding knows beside the value.
struct DecodingContext: Sendable {
  /// The database that references found in the document belong to.
  var database: Database?
}

private struct FieldDecoder: Decoder {
  let value: Value
  let path: CodingPath
  let context: DecodingContext

  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .map(let fields) = value else { throw mismatch([String: Value].self) }
    return KeyedDecodingContainer(KeyedValues<Key>(fields: fields, path: path, context: context))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    switch value {
    case .array(let elements):
      return UnkeyedValues(elements: elements, path: path, context: context)
    case .vector(let vector):
      let elements = vector.components.map { Value.double($0) }
      return UnkeyedValues(elements: elements, path: path, context: context)
    default: throw mismatch([Value].self)
    }
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer {
    SingleValue(decoder: self)
  }

  /// Decodes a whole value: natively stored types directly, all others through their own coding.
  func decode<Content: Decodable>(_ type: Content.Type) throws -> Content {
    let found: Any?
    switch type {
    case let direct as any DirectlyCoded.Type: found = direct.decodeField(value, in: context)
    case is URL.Type: found = value.string.flatMap { URL(string: $0) }
    default: return try Content(from: self)
    }
    guard let result = found as? Content else { throw mismatch(type) }
    return result
  }

  func mismatch(_ wanted: any Any.Type) -> DecodingError {
    let place = path.keys
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

private struct KeyedValues<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let fields: [String: Value]
  let path: CodingPath
  let context: DecodingContext

  var codingPath: [any CodingKey] { path.keys }
  var allKeys: [Key] { fields.keys.compactMap { Key(stringValue: $0) } }

  func contains(_ key: Key) -> Bool { fields[key.stringValue] != nil }

  func decodeNil(forKey key: Key) throws -> Bool {
    if case .null = try value(key) { true } else { false }
  }

  func decode<Content: Decodable>(_ type: Content.Type, forKey key: Key) throws -> Content {
    try decoder(key).decode(type)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    try decoder(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try decoder(key).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder { superDecoder(PlainKey("super")) }
  func superDecoder(forKey key: Key) throws -> any Decoder { superDecoder(key) }

  /// A superclass whose fields were all nil was never written, and reads as null.
  private func superDecoder(_ key: some CodingKey) -> any Decoder {
    FieldDecoder(
      value: fields[key.stringValue] ?? .null, path: path.appending(key), context: context)
  }

  private func decoder(_ key: Key) throws -> FieldDecoder {
    FieldDecoder(value: try value(key), path: path.appending(key), context: context)
  }

  private func value(_ key: Key) throws -> Value {
    guard let value = fields[key.stringValue] else {
      let place = dotted(path.keys + [key])
      throw DecodingError.keyNotFound(
        key, .init(codingPath: path.keys, debugDescription: "Field '\(place)' is missing"))
    }
    return value
  }
}

private struct UnkeyedValues: UnkeyedDecodingContainer {
  let elements: [Value]
  let path: CodingPath
  let context: DecodingContext
  private(set) var currentIndex = 0

  init(elements: [Value], path: CodingPath, context: DecodingContext) {
    self.elements = elements
    self.path = path
    self.context = context
  }

  var codingPath: [any CodingKey] { path.keys }
  var count: Int? { elements.count }
  var isAtEnd: Bool { currentIndex >= elements.count }

  mutating func decodeNil() throws -> Bool {
    guard case .null = try decoder(for: Value.self).value else { return false }
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
    return FieldDecoder(value: elements[currentIndex], path: place, context: context)
  }
}

private struct SingleValue: SingleValueDecodingContainer {
  let decoder: FieldDecoder

  var codingPath: [any CodingKey] { decoder.codingPath }

  func decodeNil() -> Bool {
    if case .null = decoder.value { true } else { false }
  }

  func decode<Content: Decodable>(_ type: Content.Type) throws -> Content {
    try decoder.decode(type)
  }
}
