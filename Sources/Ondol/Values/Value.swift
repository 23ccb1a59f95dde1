// The values a field can have, and nothing about bytes: those are in ValueCoding (documents) and
// KeyCoding (index keys). How values compare is in ValueOrder.

/// The value of a field, as reads give it back.
///
/// ```swift
/// let value: Value = ["name": "Lamp", "price": 30, "tags": ["oak", nil]]
/// value["name"]?.string
/// ```
///
/// Reads of snapshots convert to Swift types, so this is needed where the type is not known. It may
/// also be written, as any `FieldConvertible`.
///
/// Types are ordered as in Firestore: null, booleans, numbers, timestamps, texts, bytes,
/// references, places, arrays, vectors, maps; behind them blobs, which Firestore lacks.
///
/// Values are equal when they compare equal in the order that queries sort by: 1 equals 1.0 and a
/// decimal of 1, NaN equals NaN and −0.0 equals 0. Texts are equal when their UTF-8 is.
public enum Value: Sendable {
  /// Null, which is not the same as a field that is missing.
  case null
  /// True or false. Never equal to a number.
  case boolean(Bool)
  /// A whole number.
  case integer(Int64)
  /// A floating-point number.
  case double(Double)
  /// A number of up to 38 decimal digits, exact.
  // Indirect, so that every other value stays as small as it is.
  indirect case decimal(DecimalValue)
  /// A moment, in whole microseconds, of the years 1 to 9999.
  case timestamp(Timestamp)
  /// A text, ordered by its UTF-8 bytes.
  case string(String)
  /// Bytes.
  case bytes([UInt8])
  /// A reference to a document, by its path.
  case reference(DocumentPath)
  /// A place on Earth.
  case geoPoint(GeoPoint)
  /// A list of values of any types.
  case array([Value])
  /// A vector of numbers.
  case vector(VectorValue)
  /// Values by name.
  case map([String: Value])
  /// A reference to stored content, which the document holds.
  // Indirect, so that this rare and large case does not make every value large.
  indirect case blob(BlobReference)
}

extension Value {
  /// Whether this is null.
  public var isNull: Bool { if case .null = self { true } else { false } }
  /// The boolean, or nil when this is something else.
  public var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
  /// The integer, or nil when this is something else, be it a double.
  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  /// The double, or nil when this is something else, be it an integer.
  public var double: Double? { if case .double(let value) = self { value } else { nil } }
  /// The decimal, or nil when this is something else, be it another number.
  public var decimal: DecimalValue? { if case .decimal(let value) = self { value } else { nil } }
  /// The timestamp, or nil when this is something else.
  public var timestamp: Timestamp? { if case .timestamp(let value) = self { value } else { nil } }
  /// The text, or nil when this is something else.
  public var string: String? { if case .string(let value) = self { value } else { nil } }
  /// The bytes, or nil when this is something else.
  public var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
  /// The path of the document referred to, or nil when this is something else.
  public var reference: DocumentPath? {
    if case .reference(let value) = self { value } else { nil }
  }
  /// The place, or nil when this is something else.
  public var geoPoint: GeoPoint? { if case .geoPoint(let value) = self { value } else { nil } }
  /// The elements, or nil when this is something else.
  public var array: [Value]? { if case .array(let value) = self { value } else { nil } }
  /// The vector, or nil when this is something else.
  public var vector: VectorValue? { if case .vector(let value) = self { value } else { nil } }
  /// The fields, or nil when this is something else.
  public var map: [String: Value]? { if case .map(let value) = self { value } else { nil } }
  /// The reference to stored content, or nil when this is something else.
  public var blob: BlobReference? { if case .blob(let value) = self { value } else { nil } }

  /// The value of a field of a map; nil when it is missing or when this is not a map.
  public subscript(name: String) -> Value? { map?[name] }

  /// Whether what is sought is this value or, where it holds others, anywhere in it.
  ///
  /// - Parameter isSought: asked of values that hold no others.
  func hasLeaf(_ isSought: (Value) -> Bool) -> Bool {
    switch self {
    case .array(let elements): elements.contains { $0.hasLeaf(isSought) }
    case .map(let fields): fields.values.contains { $0.hasLeaf(isSought) }
    default: isSought(self)
    }
  }
}

// MARK: - Literals

extension Value: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral
{
  /// Null.
  public init(nilLiteral: ()) { self = .null }
  /// A boolean.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// An integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }
  /// A double.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// A text.
  public init(stringLiteral value: String) { self = .string(value) }
  /// An array.
  public init(arrayLiteral elements: Value...) { self = .array(elements) }
  /// A map. When a name stands twice, the last value counts.
  public init(dictionaryLiteral elements: (String, Value)...) {
    self = .map(Dictionary(elements) { _, last in last })
  }
}

// MARK: - Description

extension Value: CustomStringConvertible {
  /// The value, much as it would stand in JSON, for logs and messages.
  public var description: String {
    switch self {
    case .null: "null"
    case .boolean(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .double(let value): "\(value)"
    case .decimal(let value): "\(value)m"
    case .timestamp(let value): "\(value)"
    case .string(let value): "\"\(value)\""
    case .bytes(let value): "\(value.count) bytes"
    case .reference(let value): "reference(\(value))"
    case .geoPoint(let value): "\(value)"
    case .array(let elements): "[\(elements.map(\.description).joined(separator: ", "))]"
    case .vector(let value): "\(value)"
    case .map(let fields): "{\(Self.describe(fields))}"
    case .blob(let value): "\(value)"
    }
  }

  private static func describe(_ fields: [String: Value]) -> String {
    ValueOrder.sorted(fields).map { "\"\($0.key)\": \($0.value)" }.joined(separator: ", ")
  }
}

extension Value {
  /// The value of a server timestamp while its commit is on its way.
  static let pendingTimestamp = Value.timestamp(.pending)

  /// The value with every pending timestamp replaced by `moment`, once the commit is known.
  func resolvingPending(with moment: Timestamp) -> Value {
    switch self {
    case .timestamp(let value): value.isPending ? .timestamp(moment) : self
    case .array(let elements): .array(elements.map { $0.resolvingPending(with: moment) })
    case .map(let fields): .map(fields.mapValues { $0.resolvingPending(with: moment) })
    default: self
    }
  }
}
