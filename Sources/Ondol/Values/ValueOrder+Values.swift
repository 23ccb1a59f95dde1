// The one total order of values. Queries sort by it, index keys (KeyCoding) reproduce it in bytes,
// and `==` follows it, so that a filter, an index and a comparison in memory never disagree:
//
//   null < boolean < number < timestamp < string < bytes < reference < geo point
//        < array < vector < map < blob
//
// Integers, doubles and decimals are one type, compared exactly: none is ever rounded to another on
// the way.

internal import OndolEngine

extension ValueOrder {
  /// - Complexity: O(size of the smaller), and O(n log n) in the number of a map's fields.
  static func compare(_ left: Value, _ right: Value) -> Int {
    switch (left, right) {
    case (.null, .null): 0
    case (.boolean(let left), .boolean(let right)): (left ? 1 : 0) - (right ? 1 : 0)
    case (.integer(let left), .integer(let right)): sign(left, right)
    case (.integer(let left), .double(let right)): compare(left, right)
    case (.double(let left), .integer(let right)): -compare(right, left)
    case (.double(let left), .double(let right)): compare(left, right)
    case (.decimal(let left), .decimal(let right)): compare(left, right)
    case (.decimal(let left), .integer(let right)): compare(left, right)
    case (.integer(let left), .decimal(let right)): -compare(right, left)
    case (.decimal(let left), .double(let right)): compare(left, right)
    case (.double(let left), .decimal(let right)): -compare(right, left)
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

  /// The place of a value's type among the types.
  static func rank(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .boolean: 1
    case .integer, .double, .decimal: 2
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
}

// MARK: - Paths and containers

extension ValueOrder {
  static func compare(_ left: DocumentPath, _ right: DocumentPath) -> Int {
    compareSegments(left.segments, right.segments)
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
