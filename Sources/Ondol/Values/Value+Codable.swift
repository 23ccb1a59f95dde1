// Values with coders that are not a document's, such as JSON's. A document's coders never come
// here: a field stores a value natively.

internal import OndolFoundation

extension Value: Codable {
  /// Reads null, a boolean, a number, a text, a list or a dictionary. Values of other types are
  /// read as the type that they were written as.
  ///
  /// - Throws: what the decoder throws for anything else.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .boolean(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .double(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([Value].self) {
      self = .array(value)
    } else {
      self = .map(try container.decode([String: Value].self))
    }
  }

  /// Writes the value in the encoder's form: a timestamp as the encoder writes a `Date`, bytes as
  /// `Data`, a reference as its path, a vector as a list of numbers.
  ///
  /// - Throws: what the encoder throws, as `JSONEncoder` does for NaN.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .boolean(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .double(let value): try container.encode(value)
    case .decimal(let value): try container.encode(value.decimal)
    case .timestamp: try container.encode(Date(fieldValue: self))
    case .string(let value): try container.encode(value)
    case .bytes(let value): try container.encode(Data(value))
    case .reference(let path): try container.encode("\(path)")
    case .geoPoint(let value): try container.encode(value)
    case .array(let values): try container.encode(values)
    case .vector(let value): try container.encode(value)
    case .map(let fields): try container.encode(fields)
    case .blob(let value): try container.encode(value)
    }
  }
}
