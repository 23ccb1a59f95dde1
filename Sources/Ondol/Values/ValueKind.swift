// The names of types in messages about a value of an unexpected type.

extension Value {
  /// The type's name for a message.
  var kindDescription: String {
    switch self {
    case .null: "null"
    case .boolean(let value): "the boolean \(value)"
    case .integer(let value): "the number \(value)"
    case .double(let value): "the number \(value)"
    case .decimal(let value): "the decimal \(value)"
    case .timestamp: "a timestamp"
    case .string(let value): "the string \"\(value.prefix(40))\(value.count > 40 ? "…" : "")\""
    case .bytes(let value): "\(value.count) bytes"
    case .reference(let path): "a reference to \(path)"
    case .geoPoint: "a geopoint"
    case .array(let elements): "an array of \(elements.count) elements"
    case .vector(let vector): "a vector of \(vector.components.count) dimensions"
    case .map(let fields): "a map of \(fields.count) fields"
    case .blob: "a blob"
    }
  }
}
