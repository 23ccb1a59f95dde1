// The foundation of the order of values: numbers and texts. It does not depend on values, so names,
// paths and digests can be compared in the same way.

internal import OndolEngine

/// Compares values: negative, zero or positive, like `memcmp`.
enum ValueOrder {
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

  /// Exact: the double is split, and the integer is not rounded.
  static func compare(_ left: Int64, _ right: Double) -> Int {
    if right.isNaN { return 1 }
    if right >= 0x1p63 { return -1 }
    if right < -0x1p63 { return 1 }
    let whole = right.rounded(.towardZero)
    let order = sign(left, Int64(whole))
    // With a fraction, the double is below 2^53, so `right - whole` is exact.
    return order != 0 ? order : sign(0, right - whole)
  }
}

// MARK: - Texts

extension ValueOrder {
  /// UTF-8 bytes, without normalisation.
  static func compare(_ left: String, _ right: String) -> Int {
    left.compareBytes(right)
  }

  /// None first.
  static func compare(_ left: String?, _ right: String?) -> Int {
    switch (left, right) {
    case (nil, nil): 0
    case (nil, _): -1
    case (_, nil): 1
    case (let left?, let right?): compare(left, right)
    }
  }

  /// Segment by segment, then the shorter first.
  static func compareSegments(_ left: [String], _ right: [String]) -> Int {
    // By index: iterating would retain and release the texts.
    for index in 0..<min(left.count, right.count) {
      let order = compare(left[index], right[index])
      if order != 0 { return order }
    }
    return left.count - right.count
  }

  /// A map's fields in the order of their names' UTF-8.
  static func sorted<Content>(_ fields: [String: Content]) -> [(key: String, value: Content)] {
    guard fields.count > 64 else { return fields.sorted { compare($0.key, $1.key) < 0 } }
    // When there are many, a number for their beginning distinguishes most of them.
    var places = fields.indices.map { (head: head(of: fields[$0].key), place: $0) }
    places.sort { left, right in
      left.head != right.head
        ? left.head < right.head
        : compare(fields[left.place].key, fields[right.place].key) < 0
    }
    return places.map { fields[$0.place] }
  }

  /// The first eight bytes of a text as a number, followed by zeros when it is shorter.
  private static func head(of text: String) -> UInt64 {
    text.withUTF8Bytes { bytes in
      let octets = bytes.octets
      var head: UInt64 = 0
      for index in 0..<8 { head = head << 8 | (index < octets.count ? UInt64(octets[index]) : 0) }
      return head
    }
  }
}
