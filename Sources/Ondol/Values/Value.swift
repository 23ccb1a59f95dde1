// The values that a field can have, without their bytes: ValueCoding has those of documents,
// KeyCoding those of index keys. ValueOrder defines how values compare.

/// The value of a field, as reads return it.
///
/// ```swift
/// let value: Value = ["name": "Lamp", "price": 30, "tags": ["oak", nil]]
/// value["name"]?.string
/// ```
///
/// Snapshots convert fields to Swift types, so this type is needed only when a field's type is
/// unknown. It may also be written, like any `FieldConvertible`.
///
/// Types are ordered as in Firestore: null, booleans, numbers, timestamps, texts, bytes,
/// references, geographical points, arrays, vectors, maps; then blobs, which Firestore lacks.
///
/// Values are equal when they compare equal in the order by which queries sort: 1 equals 1.0 and a
/// decimal of 1, NaN equals NaN and −0.0 equals 0. Texts are equal when their UTF-8 is.
public enum Value: Sendable {
  /// Null, which differs from a missing field.
  case null
  /// True or false. Never equal to a number.
  case boolean(Bool)
  /// An integer.
  case integer(Int64)
  /// A floating-point number.
  case double(Double)
  /// A number of up to 38 decimal digits, exact.
  // Indirect, so that every other value stays as small as it is.
  indirect case decimal(DecimalValue)
  /// A time, in whole microseconds, of the years 1 to 9999.
  case timestamp(Timestamp)
  /// A text, ordered by its UTF-8 bytes.
  case string(String)
  /// Bytes.
  case bytes([UInt8])
  /// A reference to a document, by its path.
  case reference(DocumentPath)
  /// A geographical point.
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
  /// The boolean; nil for another type.
  public var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
  /// The integer; nil for another type, including a double.
  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  /// The double; nil for another type, including an integer.
  public var double: Double? { if case .double(let value) = self { value } else { nil } }
  /// The decimal; nil for another type, including another number.
  public var decimal: DecimalValue? { if case .decimal(let value) = self { value } else { nil } }
  /// The timestamp; nil for another type.
  public var timestamp: Timestamp? { if case .timestamp(let value) = self { value } else { nil } }
  /// The text; nil for another type.
  public var string: String? { if case .string(let value) = self { value } else { nil } }
  /// The bytes; nil for another type.
  public var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
  /// The path of the referenced document; nil for another type.
  public var reference: DocumentPath? {
    if case .reference(let value) = self { value } else { nil }
  }
  /// The geographical point; nil for another type.
  public var geoPoint: GeoPoint? { if case .geoPoint(let value) = self { value } else { nil } }
  /// The elements; nil for another type.
  public var array: [Value]? { if case .array(let value) = self { value } else { nil } }
  /// The vector; nil for another type.
  public var vector: VectorValue? { if case .vector(let value) = self { value } else { nil } }
  /// The fields; nil for another type.
  public var map: [String: Value]? { if case .map(let value) = self { value } else { nil } }
  /// The reference to stored content; nil for another type.
  public var blob: BlobReference? { if case .blob(let value) = self { value } else { nil } }

  /// The value of a field of a map; nil when it is missing or when this is not a map.
  public subscript(name: String) -> Value? { map?[name] }

  /// Whether this value or one inside it matches.
  ///
  /// - Parameter isSought: called with values that contain no others.
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
  /// A map. When a name occurs twice, the last value counts.
  public init(dictionaryLiteral elements: (String, Value)...) {
    self = .map(Dictionary(elements) { _, last in last })
  }
}

// MARK: - Description

extension Value: CustomStringConvertible {
  /// The value, similar to JSON, for logs and messages.
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
  /// The value of a server timestamp until the commit sets it.
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
