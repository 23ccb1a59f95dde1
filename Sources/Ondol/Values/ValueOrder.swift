// The one total order of values. Queries sort by it, index keys (KeyCoding) reproduce it in bytes,
// and `==` follows it, so that a filter, an index and a comparison in memory never disagree:
//
//   null < boolean < number < timestamp < string < bytes < reference < geo point
//        < array < vector < map < blob
//
// Integers and doubles are one type, compared exactly: no integer is ever rounded to a double on
// the way.

internal import OndolEngine

/// Compares values: negative, zero or positive, as `memcmp`.
enum ValueOrder {
  /// - Complexity: O(size of the smaller), and O(n log n) in the number of a map's fields.
  static func compare(_ left: Value, _ right: Value) -> Int {
    switch (left, right) {
    case (.null, .null): 0
    case (.boolean(let left), .boolean(let right)): (left ? 1 : 0) - (right ? 1 : 0)
    case (.integer(let left), .integer(let right)): sign(left, right)
    case (.integer(let left), .double(let right)): compare(left, right)
    case (.double(let left), .integer(let right)): -compare(right, left)
    case (.double(let left), .double(let right)): compare(left, right)
    case (.timestamp(let left), .timestamp(let right)):
      sign(left.microsecondsSince1970, right.microsecondsSince1970)
    case (.string(let left), .string(let right)): compare(left, right)
    case (.bytes(let left), .bytes(let right)): left.bytes.compare(right.bytes)
    case (.reference(let left), .reference(let right)): compare(left, right)
    case (.geoPoint(let left), .geoPoint(let right)): compare(left, right)
    case (.array(let left), .array(let right)): compare(left, right)
    case (.vector(let left), .vector(let right)): compare(left, right)
    case (.map(let left), .map(let right)): compare(left, right)
    case (.blob(let left), .blob(let right)): compare(left, right)
    default: rank(left) - rank(right)
    }
  }

  /// Where a value's type stands among the types.
  static func rank(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .boolean: 1
    case .integer, .double: 2
    case .timestamp: 3
    case .string: 4
    case .bytes: 5
    case .reference: 6
    case .geoPoint: 7
    case .array: 8
    case .vector: 9
    case .map: 10
    case .blob: 11
    }
  }

  /// A map's fields in the order of their names' UTF-8.
  static func sorted<Content>(_ fields: [String: Content]) -> [(key: String, value: Content)] {
    guard fields.count > 64 else { return fields.sorted { compare($0.key, $1.key) < 0 } }
    // Of many, most are told apart by a number for how they begin.
    var places = fields.indices.map { (head: head(of: fields[$0].key), place: $0) }
    places.sort { left, right in
      left.head != right.head
        ? left.head < right.head
        : compare(fields[left.place].key, fields[right.place].key) < 0
    }
    return places.map { fields[$0.place] }
  }

  /// The first eight bytes of a text as a number, zeros behind it where it is shorter.
  private static func head(of text: String) -> UInt64 {
    let octets = text.utf8Span.span
    var head: UInt64 = 0
    for index in 0..<8 { head = head << 8 | (index < octets.count ? UInt64(octets[index]) : 0) }
    return head
  }
}

// MARK: - Numbers

extension ValueOrder {
  static func sign<Number: Comparable>(_ left: Number, _ right: Number) -> Int {
    left < right ? -1 : (left == right ? 0 : 1)
  }

  /// NaN equals NaN and is below every other number; −0.0 equals 0.
  static func compare(_ left: Double, _ right: Double) -> Int {
    if left < right { return -1 }
    if left > right { return 1 }
    if left == right { return 0 }
    return (left.isNaN ? 0 : 1) - (right.isNaN ? 0 : 1)
  }

  /// Exact: the double is taken apart instead of the integer being rounded.
  static func compare(_ left: Int64, _ right: Double) -> Int {
    if right.isNaN { return 1 }
    if right >= 0x1p63 { return -1 }
    if right < -0x1p63 { return 1 }
    let whole = right.rounded(.towardZero)
    let order = sign(left, Int64(whole))
    // Where there is a fraction the double is below 2^53, so `right - whole` is exact.
    return order != 0 ? order : sign(0, right - whole)
  }
}

// MARK: - Texts, paths and containers

extension ValueOrder {
  /// UTF-8 bytes, without normalisation.
  static func compare(_ left: String, _ right: String) -> Int {
    left.utf8Bytes.compare(right.utf8Bytes)
  }

  static func compare(_ left: DocumentPath, _ right: DocumentPath) -> Int {
    compareSegments(left.segments, right.segments)
  }

  /// Segment by segment, then the shorter first.
  static func compareSegments(_ left: [String], _ right: [String]) -> Int {
    // By index: iterating would count references to the texts.
    for index in 0..<min(left.count, right.count) {
      let order = compare(left[index], right[index])
      if order != 0 { return order }
    }
    return left.count - right.count
  }

  private static func compare(_ left: GeoPoint, _ right: GeoPoint) -> Int {
    let order = sign(left.latitude, right.latitude)
    return order != 0 ? order : sign(left.longitude, right.longitude)
  }

  /// Element by element, then the shorter first.
  private static func compare(_ left: [Value], _ right: [Value]) -> Int {
    for (left, right) in zip(left, right) {
      let order = compare(left, right)
      if order != 0 { return order }
    }
    return left.count - right.count
  }

  /// The fewer dimensions first, then component by component.
  private static func compare(_ left: VectorValue, _ right: VectorValue) -> Int {
    guard left.components.count == right.components.count else {
      return left.components.count - right.components.count
    }
    for (left, right) in zip(left.components, right.components) {
      let order = compare(left, right)
      if order != 0 { return order }
    }
    return 0
  }

  /// Name, value, name, value… in the order of the names, then the fewer fields first.
  private static func compare(_ left: [String: Value], _ right: [String: Value]) -> Int {
    for (left, right) in zip(sorted(left), sorted(right)) {
      let names = compare(left.key, right.key)
      if names != 0 { return names }
      let values = compare(left.value, right.value)
      if values != 0 { return values }
    }
    return left.count - right.count
  }
}
