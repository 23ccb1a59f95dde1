// The approximate memory of decoded values, so that caches of them can be bounded by bytes.

extension Value {
  /// Bytes of one value in a map or an array, of any type.
  static let inlineBytes = 48

  /// The approximate memory of the value in bytes, without the place that it is in.
  ///
  /// - Complexity: O(values in it), none of which is copied.
  var memoryBytes: Int {
    switch self {
    case .null, .boolean, .integer, .double, .timestamp, .geoPoint: 0
    case .decimal: Self.inlineBytes
    case .string(let text): text.utf8.count
    case .bytes(let bytes): bytes.count
    case .reference(let path): path.segments.reduce(0) { $0 + $1.utf8.count + Self.inlineBytes }
    case .array(let values): values.reduce(0) { $0 + $1.memoryBytes + Self.inlineBytes }
    case .vector(let vector): vector.components.count * MemoryLayout<Double>.stride
    case .map(let fields): fields.memoryBytes
    case .blob: 2 * Self.inlineBytes
    }
  }
}

extension [String: Value] {
  /// The approximate memory of the fields in bytes.
  var memoryBytes: Int {
    reduce(0) { $0 + $1.key.utf8.count + $1.value.memoryBytes + Value.inlineBytes }
  }
}
