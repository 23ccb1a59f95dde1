// Shared by the document encoder and decoder: which Swift types a field stores natively, how the
// path to a value is kept, and how a message shows it.

internal import OndolFoundation

/// The keys from the document's root to a value, kept as a list that grows at its end. So
/// descending one level costs one object, and nothing is copied until a message needs the path.
final class CodingPath: Sendable {
  private let parent: CodingPath?
  private let key: (any CodingKey)?

  static let root = CodingPath(parent: nil, key: nil)

  private init(parent: CodingPath?, key: (any CodingKey)?) {
    self.parent = parent
    self.key = key
  }

  func appending(_ key: any CodingKey) -> CodingPath {
    CodingPath(parent: self, key: key)
  }

  var keys: [any CodingKey] {
    var reversed: [any CodingKey] = []
    var place: CodingPath? = self
    while let current = place {
      if let key = current.key { reversed.append(key) }
      place = current.parent
    }
    return reversed.reversed()
  }
}

/// A key that the coder itself makes: an array's index, or "super".
struct PlainKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(_ name: String) {
    stringValue = name
    intValue = nil
  }

  init(_ index: Int) {
    stringValue = "\(index)"
    intValue = index
  }

  init?(stringValue: String) { self.init(stringValue) }
  init?(intValue: Int) { self.init(intValue) }
}

/// A path in messages: `address.lines[2]`.
func dotted(_ keys: [any CodingKey]) -> String {
  var text = ""
  for key in keys {
    if let index = key.intValue {
      text += "[\(index)]"
    } else {
      text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
    }
  }
  return text
}

/// The stored form of `value` without calling its `encode(to:)`; nil for all other types.
func directInput<Content: Encodable>(
  of value: Content, _ strategies: DocumentEncoder
) throws(DatabaseError) -> FieldInput? {
  switch value {
  case let value as Date: try strategies.dateStrategy.encode(value)
  case let value as any DirectlyCoded: try value.encodeField()
  case let value as URL: FieldInput(.string(value.absoluteString))
  default: nil
  }
}

/// A type that is not encoded only by its own `encode(to:)`.
protocol SpeciallyEncoded {}

/// A type that a field stores natively, whatever its own coding does.
protocol DirectlyCoded: FieldContent, SpeciallyEncoded {
  /// Returns nil when the value has another type or does not fit.
  static func decodeField(_ value: Value, in context: DecodingContext) -> Self?
}

extension DirectlyCoded where Self: FieldReadable {
  static func decodeField(_ value: Value, in context: DecodingContext) -> Self? {
    Self(fieldValue: value)
  }
}

extension Bool: DirectlyCoded {}
extension String: DirectlyCoded {}
extension Int: DirectlyCoded {}
extension Int8: DirectlyCoded {}
extension Int16: DirectlyCoded {}
extension Int32: DirectlyCoded {}
extension Int64: DirectlyCoded {}
extension UInt: DirectlyCoded {}
extension UInt8: DirectlyCoded {}
extension UInt16: DirectlyCoded {}
extension UInt32: DirectlyCoded {}
extension UInt64: DirectlyCoded {}
extension Double: DirectlyCoded {}
extension Float: DirectlyCoded {}
extension Date: DirectlyCoded {}
extension Data: DirectlyCoded {}
extension Array: DirectlyCoded, SpeciallyEncoded where Element == UInt8 {}
extension Value: DirectlyCoded {}
extension Timestamp: DirectlyCoded {}
extension GeoPoint: DirectlyCoded {}
extension VectorValue: DirectlyCoded {}
extension DocumentPath: DirectlyCoded {}
extension BlobReference: DirectlyCoded {}
extension URL: SpeciallyEncoded {}
extension Decimal: DirectlyCoded {}
extension DecimalValue: DirectlyCoded {}
