// Two equalities. `==` follows the order: it decides what filters, unions and removals match.
// `isIdentical` also distinguishes 1 from 1.0 and −0.0 from 0: it decides whether a write changed a
// document.

internal import OndolEngine

extension Value: Hashable {
  /// Whether the two compare equal in the order of values.
  public static func == (left: Value, right: Value) -> Bool {
    ValueOrder.compare(left, right) == 0
  }

  /// Hashes equal values alike, so 1 and 1.0 have the same hash.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(ValueOrder.rank(self))
    switch self {
    case .null: break
    case .boolean(let value): hasher.combine(value)
    case .integer(let value): hasher.combine(value)
    case .double(let value): value.hashAsNumber(into: &hasher)
    case .decimal(let value): value.hashAsNumber(into: &hasher)
    case .timestamp(let value): hasher.combine(value)
    case .string(let value): hasher.combine(utf8: value)
    case .bytes(let value): hasher.combine(value.bytes)
    case .reference(let value): hasher.combine(value)
    case .geoPoint(let value): hasher.combine(value)
    case .array(let elements): hasher.combine(elements)
    case .vector(let value): hasher.combine(value)
    case .map(let fields):
      hasher.combine(fields.count)
      for (name, value) in ValueOrder.sorted(fields) {
        hasher.combine(utf8: name)
        hasher.combine(value)
      }
    case .blob(let value): hasher.combine(value)
    }
  }
}

extension Double {
  /// Hashes all numbers with one place in the order alike.
  func hashAsNumber(into hasher: inout Hasher) {
    if let whole = Int64(exactly: self) {
      hasher.combine(whole)
    } else {
      hasher.combine(isNaN ? Double.nan.bitPattern : bitPattern)
    }
  }
}

extension DecimalValue {
  /// Hashes all numbers with one place in the order alike.
  func hashAsNumber(into hasher: inout Hasher) {
    if let whole = whole(Int64.self) { return hasher.combine(whole) }
    let below = magnitudeBelow
    guard below.isExact else { return hasher.combine(self) }
    (isNegative ? -below.double : below.double).hashAsNumber(into: &hasher)
  }
}

extension Value {
  /// Whether the two are the same to the last bit: same types, same bits.
  func isIdentical(to other: Value) -> Bool {
    switch (self, other) {
    case (.double(let left), .double(let right)): left.bitPattern == right.bitPattern
    case (.integer, .double), (.double, .integer): false
    case (.decimal(let left), .decimal(let right)): left == right
    case (.decimal, _), (_, .decimal): false
    case (.array(let left), .array(let right)):
      left.count == right.count && zip(left, right).allSatisfy { $0.isIdentical(to: $1) }
    case (.vector(let left), .vector(let right)):
      left.components.elementsEqual(right.components) { $0.bitPattern == $1.bitPattern }
    case (.map(let left), .map(let right)): left.isIdentical(to: right)
    default: self == other
    }
  }
}

extension [String: Value] {
  /// Whether the two have the same names with values that are the same to the last bit.
  func isIdentical(to other: [String: Value]) -> Bool {
    count == other.count
      && allSatisfy { name, value in
        guard let index = other.index(forKey: name) else { return false }
        return ValueOrder.compare(other[index].key, name) == 0
          && value.isIdentical(to: other[index].value)
      }
  }
}
