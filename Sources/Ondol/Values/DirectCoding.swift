// How each natively stored type is read out of a value. Conversions that lose nothing are allowed, all
// others are nil, which the decoder turns into an error with the path.

internal import FoundationEssentials

extension Value {
  /// The type's name for a message.
  var kindDescription: String {
    switch self {
    case .null: "null"
    case .boolean(let value): "the boolean \(value)"
    case .integer(let value): "the number \(value)"
    case .double(let value): "the number \(value)"
    case .timestamp: "a timestamp"
    case .string(let value): "the string \"\(value.prefix(40))\(value.count > 40 ? "…" : "")\""
    case .bytes(let value): "\(value.count) bytes"
    case .reference(let path): "a reference to \(path)"
    case .geoPoint: "a geopoint"
    case .array(let elements): "an array of \(elements.count) elements"
    case .vector(let vector): "a vector of \(vector.elements.count) dimensions"
    case .map(let fields): "a map of \(fields.count) fields"
    }
  }
}

extension DirectlyDecoded where Self: FixedWidthInteger {
  static func decodeField(_ value: Value, in context: DecodingContext) -> Self? {
    switch value {
    case .integer(let number): Self(exactly: number)
    case .double(let number): Self(exactly: number)
    default: nil
    }
  }
}

extension Int: DirectlyDecoded {}
extension Int8: DirectlyDecoded {}
extension Int16: DirectlyDecoded {}
extension Int32: DirectlyDecoded {}
extension Int64: DirectlyDecoded {}
extension UInt: DirectlyDecoded {}
extension UInt8: DirectlyDecoded {}
extension UInt16: DirectlyDecoded {}
extension UInt32: DirectlyDecoded {}
extension UInt64: DirectlyDecoded {}

extension Double: DirectlyDecoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> Double? {
    switch value {
    case .integer(let number): Double(number)
    case .double(let number): number
    default: nil
    }
  }
}

extension Float: DirectlyDecoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> Float? {
    guard let wide = Double.decodeField(value, in: context) else { return nil }
    let narrow = Float(wide)
    // Rounding is what Float is for; turning a finite number into infinity is not.
    return narrow.isInfinite && wide.isFinite ? nil : narrow
  }
}

extension Bool: DirectlyDecoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> Bool? {
    if case .boolean(let flag) = value { flag } else { nil }
  }
}

extension String: DirectlyDecoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> String? {
    if case .string(let text) = value { text } else { nil }
  }
}

extension Date: DirectlyDecoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> Date? {
    if case .timestamp(let time) = value { time.date } else { nil }
  }
}

extension Data: DirectlyDecoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> Data? {
    if case .bytes(let bytes) = value { Data(bytes) } else { nil }
  }
}

extension URL: DirectlyDecoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> URL? {
    if case .string(let text) = value { URL(string: text) } else { nil }
  }
}

extension Value: DirectlyDecoded, DirectlyEncoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> Value? { value }
}

extension Timestamp: DirectlyDecoded, DirectlyEncoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> Timestamp? {
    if case .timestamp(let time) = value { time } else { nil }
  }
}

extension GeoPoint: DirectlyDecoded, DirectlyEncoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> GeoPoint? {
    if case .geoPoint(let point) = value { point } else { nil }
  }
}

extension VectorValue: DirectlyDecoded, DirectlyEncoded {
  static func decodeField(_ value: Value, in context: DecodingContext) -> VectorValue? {
    if case .vector(let vector) = value { vector } else { nil }
  }
}
