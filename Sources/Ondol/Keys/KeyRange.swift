// Where a walk over rows begins and ends.

internal import OndolEngine

/// A range of keys, without its upper end.
struct KeyRange: Sendable, Hashable {
  var lower: [UInt8]
  var upper: [UInt8]

  var isEmpty: Bool { lower.bytes.compare(upper.bytes) >= 0 }

  /// The part of it that is also in `other`.
  func clamped(to other: KeyRange) -> KeyRange {
    KeyRange(
      lower: lower.bytes.compare(other.lower.bytes) >= 0 ? lower : other.lower,
      upper: upper.bytes.compare(other.upper.bytes) <= 0 ? upper : other.upper)
  }
}

extension KeyRange {
  /// Everything that begins with `prefix`.
  init(prefix: [UInt8]) {
    self.init(lower: prefix, upper: prefix + [KeyCoding.afterAll])
  }
}
