// Equality and order of values. Integers and floats compare as numbers, exactly. Texts compare by
// their bytes. Values of different types are never equal. Sets need equal values to have equal
// hashes, so 1 and 1.0 have the same one.

#if Server
  extension RuleValue: Hashable {
    static func == (one: RuleValue, other: RuleValue) -> Bool {
      switch (one, other) {
      case (.null, .null): true
      case (.bool(let a), .bool(let b)): a == b
      case (.int(let a), .int(let b)): a == b
      case (.float(let a), .float(let b)): a == b
      case (.int(let a), .float(let b)), (.float(let b), .int(let a)): Double(exactly: a) == b
      case (.string(let a), .string(let b)): isExactly(a, b)
      case (.bytes(let a), .bytes(let b)): a == b
      case (.list(let a), .list(let b)): a == b
      case (.map(let a), .map(let b)): isSame(a, b)
      case (.set(let a), .set(let b)): a == b
      case (.timestamp(let a), .timestamp(let b)): a == b
      case (.duration(let a), .duration(let b)): a == b
      case (.path(let a), .path(let b)): a.elementsEqual(b, by: isExactly)
      case (.latlng(let a), .latlng(let b)): a == b
      case (.document(let a), .document(let b)):
        a.path.elementsEqual(b.path, by: isExactly) && a.data == b.data
      case (.difference(let a), .difference(let b)): a == b
      default: false
      }
    }

    private static func isSame(_ one: [String: RuleValue], _ other: [String: RuleValue]) -> Bool {
      one.count == other.count && one.allSatisfy { key, value in other.field(key) == value }
    }

    func hash(into hasher: inout Hasher) {
      switch self {
      case .null: hasher.combine(0)
      case .bool(let value): hasher.combine(value)
      case .int(let value):
        if let double = Double(exactly: value) {
          hasher.combine(double)
        } else {
          hasher.combine(value)
        }
      case .float(let value): hasher.combine(value)
      case .string(let value): hasher.combine(value)
      case .bytes(let value): hasher.combine(value)
      case .list(let value): hasher.combine(value)
      case .map(let value): hasher.combine(value)
      case .set(let value): hasher.combine(value)
      case .timestamp(let value): hasher.combine(value)
      case .duration(let value): hasher.combine(value)
      case .path(let value): hasher.combine(value)
      case .latlng(let value): hasher.combine(value)
      case .document(let value): hasher.combine(value.path)
      case .difference(let value): hasher.combine(value)
      case .unknown: hasher.combine(1)
      }
    }
  }

  extension RuleValue {
    /// The order of two numbers, texts, timestamps or durations: -1, 0 or 1. Nil if they have no
    /// order: a number and a text have none, and neither do NaN and anything else.
    func order(to other: RuleValue) -> Int? {
      switch (self, other) {
      case (.int(let a), .int(let b)): Self.order(a, b)
      case (.float(let a), .float(let b)): a.isNaN || b.isNaN ? nil : Self.order(a, b)
      case (.int(let a), .float(let b)): Self.order(a, b)
      case (.float(let a), .int(let b)): Self.order(b, a).map { -$0 }
      case (.string(let a), .string(let b)): Self.order(a, b)
      case (.timestamp(let a), .timestamp(let b)): Self.order(a.instant, b.instant)
      case (.duration(let a), .duration(let b)): Self.order(a.length, b.length)
      default: nil
      }
    }

    private static func order<Element: Comparable>(_ one: Element, _ other: Element) -> Int {
      one < other ? -1 : one == other ? 0 : 1
    }

    /// The order of bytes in UTF-8, which is that of Unicode's scalars.
    private static func order(_ one: String, _ other: String) -> Int {
      if isExactly(one, other) { return 0 }
      return one.utf8.lexicographicallyPrecedes(other.utf8) ? -1 : 1
    }

    /// Exact even if a double cannot represent the integer.
    private static func order(_ integer: Int64, _ double: Double) -> Int? {
      if double.isNaN { return nil }
      if let exact = Int64(exactly: double) { return order(integer, exact) }
      if double >= 0x1p63 { return -1 }
      if double < -0x1p63 { return 1 }
      // The double is between two integers, of which the lower one is exact.
      let lower = Int64(exactly: double.rounded(.down)) ?? .max
      return integer <= lower ? -1 : 1
    }
  }
#endif
