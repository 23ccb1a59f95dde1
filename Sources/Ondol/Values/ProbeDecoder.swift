// Makes values of a Codable type that are known to differ, to determine which field a property is
// stored in. A type is decoded several times, and each time every field has one of two examples.
// The digits of the field's number determine which, so that no two fields change together in all
// passes. A property's changes then show which field it came from.

internal import OndolFoundation
internal import OndolEngine

/// A type that provides at least two different values, because its values cannot be guessed.
///
/// To find out in which field each property of a type is stored, typed collections decode the type
/// from examples. Texts, numbers, dates and similar types, enums that are `CaseIterable` and types
/// made of these need no examples. Other types that refuse most values, such as a validated e-mail
/// address or an enum with associated values, provide valid values here. Without them, a property
/// of such a type is still stored and read. Only conditions and orders on that property are
/// refused.
///
/// ```swift
/// extension Email: FieldExamples {
///   static var fieldExamples: [Email] { [Email("a@example.com")!, Email("b@example.com")!] }
/// }
/// ```
public protocol FieldExamples {
  /// At least two different values.
  static var fieldExamples: [Self] { get }
}

/// One decoding of a type from examples: which of the two each field has.
final class Probe {
  /// The number of each field by its path, in the order of the requests.
  private(set) var numbers: [String: Int] = [:]
  /// The digit of a field's number that decides; none in the first pass.
  private let digit: Int?
  let database: Database
  /// The path of the document's id, if the type has it.
  private(set) var documentIDPath: String?
  /// The document's id in this pass.
  private(set) var documentID: String?
  /// For the path of each requested map, whether one of its keys has this name.
  private(set) var keys: [String: @Sendable (String) -> Bool] = [:]

  init(digit: Int?, numbers: [String: Int], in database: Database) {
    self.digit = digit
    self.numbers = numbers
    self.database = database
  }

  /// Whether the field at `path` has its second example in this pass.
  fileprivate func isSecond(_ path: String) -> Bool {
    let number = numbers[path] ?? numbers.count + 1
    numbers[path] = number
    return digit.map { number >> $0 & 1 == 1 } ?? false
  }

  fileprivate func note<Key: CodingKey>(_ keys: Key.Type, at path: String) {
    // Keys that are data accept every name, and so give no information.
    guard Key(stringValue: "no property is called\u{0}so") == nil else { return }
    self.keys[path] = { Key(stringValue: $0) != nil }
  }

  fileprivate func note(documentID: String, at path: String) {
    documentIDPath = path
    self.documentID = documentID
  }
}

/// Why a type cannot be made from examples.
struct ProbeFailure: Error {
  var field: String
  var reason: String
}

/// Returns examples for every requested type.
struct ProbeDecoder: Decoder {
  private let probe: Probe
  let codingPath: [any CodingKey]
  let userInfo: [CodingUserInfoKey: Any]

  init(_ probe: Probe, at path: [any CodingKey] = [], userInfo: [CodingUserInfoKey: Any] = [:]) {
    self.probe = probe
    codingPath = path
    self.userInfo = userInfo
  }

  /// The depth to which types that contain themselves are made.
  private static let maximumDepth = 6

  fileprivate var isTooDeep: Bool { codingPath.count >= Self.maximumDepth }

  fileprivate func below(_ key: any CodingKey) -> ProbeDecoder {
    ProbeDecoder(probe, at: codingPath + [key], userInfo: userInfo)
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    probe.note(Key.self, at: dotted(codingPath))
    return KeyedDecodingContainer(ProbedFields<Key>(decoder: self))
  }

  func unkeyedContainer() -> any UnkeyedDecodingContainer { ProbedElements(decoder: self) }

  func singleValueContainer() -> any SingleValueDecodingContainer { ProbedValue(decoder: self) }

  /// The example of this pass.
  fileprivate func example<Content: Decodable>(_ type: Content.Type) throws -> Content {
    let path = dotted(codingPath)
    if let examples = Self.examples(of: type, in: probe.database) {
      guard let first = examples.first else {
        throw ProbeFailure(field: path, reason: "\(type) has no values")
      }
      let isSecond = probe.isSecond(path)
      return isSecond ? examples[examples.count > 1 ? 1 : 0] : first
    }
    do {
      return try Content(from: self)
    } catch let error as ProbeFailure {
      throw error
    } catch {
      throw ProbeFailure(
        field: path,
        reason: "no values of \(type) are known: conform it to FieldExamples"
          + " or, if it is an enum, to CaseIterable")
    }
  }

  /// The document's id, which is not a field.
  func documentID<ID: DocumentIDConvertible>(_ type: ID.Type) -> ID {
    let path = dotted(codingPath)
    let id = probe.isSecond(path) ? "probe-b" : "probe-a"
    probe.note(documentID: id, at: path)
    return ID.make(from: probe.database.collection("probes").document(id))
  }

  /// Two different values of a type; none when its own decoding makes them.
  private static func examples<Content>(
    of type: Content.Type, in database: Database
  ) -> [Content]? {
    if let type = type as? any FieldExamples.Type { return type.fieldExamples as? [Content] }
    if let type = type as? any CaseIterable.Type { return allCases(of: type) as? [Content] }
    return pair(of: type, in: database) as? [Content]
  }

  private static func allCases<Cases: CaseIterable>(of type: Cases.Type) -> [Cases] {
    Array(type.allCases)
  }

  /// Texts and dates are chosen such that values computed from them seldom equal them.
  private static func pair(of type: any Any.Type, in database: Database) -> Any? {
    switch type {
    case is String.Type: [" Probe Ä b ", " pRobe é C "]
    case is Bool.Type: [false, true]
    case is Date.Type: [1_000_003.5, 86_400_007.25].map { Date(timeIntervalSince1970: $0) }
    case is Data.Type: [Data([0x70, 0]), Data([0x71, 1, 0])]
    case is URL.Type: ["probe://a.example/B?c#d", "probe://e.example/F?g#h"].compactMap(URL.init)
    case is UUID.Type:
      ["9B5A6C1E-0D3F-4E57-8A11-6C2B7D90E4F3", "2F4D1E80-77AA-4C1B-9E02-51D3C8B6A7F0"]
        .compactMap(UUID.init(uuidString:))
    case is Timestamp.Type: [1_234_567, 7_654_321].map { Timestamp(unchecked: $0) }
    case is Decimal.Type: [Decimal(7), Decimal(11)]
    case is DecimalValue.Type: [DecimalValue(Int64(7)), DecimalValue(Int64(11))]
    case is GeoPoint.Type: [1.5, 3.5].compactMap { try? GeoPoint(latitude: $0, longitude: $0 + 1) }
    case is VectorValue.Type: [VectorValue([1.5]), VectorValue([2.5])]
    case is DocumentReference.Type:
      ["a", "b"].map { database.collection("probes").document($0) }
    case is BlobDigest.Type: digests
    case is BlobReference.Type:
      digests.compactMap { try? BlobReference(digest: $0, length: 7, contentType: "probe/a") }
    case is Value.Type: [Value.string(" Probe Ä b "), Value.string(" pRobe é C ")]
    default: numbers(of: type)
    }
  }

  private static let digests = [UInt8(0x0B), 0x0C].compactMap { byte in
    BlobDigest(bytes: repeatElement(byte, count: BlobDigest.length))
  }

  private static func numbers(of type: any Any.Type) -> Any? {
    if let type = type as? any BinaryInteger.Type { return integers(of: type) }
    if let type = type as? any BinaryFloatingPoint.Type { return fractions(of: type) }
    return nil
  }

  private static func integers<Number: BinaryInteger>(of type: Number.Type) -> [Number] {
    [Number(clamping: 7), Number(clamping: 11)]
  }

  private static func fractions<Number: BinaryFloatingPoint>(of type: Number.Type) -> [Number] {
    [Number(7.25), Number(11.75)]
  }
}

/// Fields that all exist.
private struct ProbedFields<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let decoder: ProbeDecoder

  var codingPath: [any CodingKey] { decoder.codingPath }

  /// Used by types whose keys are data, and by enums with associated values.
  var allKeys: [Key] {
    if decoder.isTooDeep { return [] }
    return Key(stringValue: "probe").map { [$0] } ?? []
  }

  func contains(_ key: Key) -> Bool { !decoder.isTooDeep }

  func decodeNil(forKey key: Key) -> Bool { decoder.isTooDeep }

  func decode<Content: Decodable>(_ type: Content.Type, forKey key: Key) throws -> Content {
    try decoder.below(key).example(type)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedDecodingContainer<Nested> {
    decoder.below(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer {
    decoder.below(key).unkeyedContainer()
  }

  func superDecoder() -> any Decoder { decoder.below(PlainKey("super")) }

  func superDecoder(forKey key: Key) -> any Decoder { decoder.below(key) }
}

/// A list of one element, or of more when more are requested.
private struct ProbedElements: UnkeyedDecodingContainer {
  let decoder: ProbeDecoder
  private(set) var currentIndex = 0

  init(decoder: ProbeDecoder) {
    self.decoder = decoder
  }

  var codingPath: [any CodingKey] { decoder.codingPath }
  var count: Int? { decoder.isTooDeep ? 0 : 1 }
  var isAtEnd: Bool { decoder.isTooDeep || currentIndex >= 1 }

  private mutating func step() -> ProbeDecoder {
    defer { currentIndex += 1 }
    return decoder.below(PlainKey(currentIndex))
  }

  mutating func decodeNil() -> Bool { false }

  mutating func decode<Content: Decodable>(_ type: Content.Type) throws -> Content {
    try step().example(type)
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) -> KeyedDecodingContainer<Nested> {
    step().container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer {
    step().unkeyedContainer()
  }

  mutating func superDecoder() -> any Decoder { step() }
}

/// A single value.
private struct ProbedValue: SingleValueDecodingContainer {
  let decoder: ProbeDecoder

  var codingPath: [any CodingKey] { decoder.codingPath }

  func decodeNil() -> Bool { decoder.isTooDeep }

  func decode<Content: Decodable>(_ type: Content.Type) throws -> Content {
    try decoder.example(type)
  }
}
