// Bytes as decisions: a target that builds something takes from its input what it would otherwise
// take from a seed, so that a change of the bytes changes the result.

/// Takes decisions from bytes, one after another. After the end of the bytes every decision is the
/// first possible one, so that the construction also ends.
package struct FuzzInput: Sendable {
  private let bytes: [UInt8]
  private var offset = 0

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  package var isSpent: Bool { offset >= bytes.count }

  package mutating func byte() -> UInt8 {
    guard offset < bytes.count else { return 0 }
    defer { offset += 1 }
    return bytes[offset]
  }

  /// Low byte first.
  package mutating func word() -> UInt64 {
    (0..<8).reduce(0) { word, index in word | UInt64(byte()) << UInt64(8 * index) }
  }

  /// Returns a number in `0..<bound`; `bound` is from 1 to 65,536.
  package mutating func below(_ bound: Int) -> Int {
    let number = bound <= 256 ? Int(byte()) : Int(byte()) | Int(byte()) << 8
    return number % bound
  }

  package mutating func flag() -> Bool { byte() & 1 == 1 }

  /// Returns true once in `count` times.
  package mutating func oneIn(_ count: Int) -> Bool { below(count) == count - 1 }

  /// Returns one of `elements`, which must not be empty.
  package mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[below(elements.count)]
  }

  /// Returns the remaining bytes, at most `count`.
  package mutating func take(_ count: Int) -> [UInt8] {
    let end = min(bytes.count, offset + count)
    defer { offset = end }
    return Array(bytes[offset..<end])
  }

  /// Returns all remaining bytes.
  package mutating func rest() -> [UInt8] { take(bytes.count) }

  /// Returns a number near the usual places of mistakes, or any number.
  package mutating func edge() -> UInt64 {
    switch below(8) {
    case 0: 0
    case 1: UInt64(byte())
    case 2: UInt64.max - UInt64(byte())
    case 3: (1 << UInt64(below(64))) &+ UInt64(byte()) &- 128
    case 4: UInt64(Int64.max) &+ UInt64(byte()) &- 128
    case 5: UInt64(UInt32.max) &+ UInt64(byte()) &- 128
    case 6: UInt64(byte()) | UInt64(byte()) << 8
    default: word()
    }
  }
}
