// Repeatable random numbers. Every random decision of a simulation comes from one of these, so its
// seed alone repeats a failure.

/// Random numbers that are the same for the same seed.
///
/// A generator for everything in the standard library that takes one, as in
/// `items.randomElement(using: &random)`. The algorithm is SplitMix64: good enough to scatter test
/// cases, and not secure.
public struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Makes a generator at the beginning of the seed's numbers.
  public init(seed: UInt64) {
    state = seed
  }

  /// Returns sixty-four random bits.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return Self.scramble(state)
  }

  /// Returns a number in `0..<bound`; `bound` is positive.
  package mutating func below(_ bound: Int) -> Int {
    Int(truncatingIfNeeded: next() % UInt64(bound))
  }

  /// Returns true in `favourable` of `cases` draws.
  package mutating func chance(_ favourable: Int, in cases: Int) -> Bool {
    below(cases) < favourable
  }

  /// Returns one of `elements`, which must not be empty.
  package mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[below(elements.count)]
  }

  /// Returns at most a number of `elements`, as far from each other as possible; all of them
  /// without a number.
  package mutating func evenlySpread<Element>(
    _ count: Int?, of elements: [Element]
  ) -> [Element] {
    guard let count, elements.count > count else { return elements }
    let step = (elements.count + count - 1) / count
    return stride(from: below(step), to: elements.count, by: step).map { elements[$0] }
  }

  package mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      var word = next()
      for _ in 0..<8 {
        bytes.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  /// Returns a seed of its own for every pair of numbers, so that one case does not shift the
  /// random numbers of another.
  package static func derive(_ seed: UInt64, _ number: Int) -> UInt64 {
    scramble(seed ^ scramble(UInt64(truncatingIfNeeded: number) &+ 0x9E37_79B9_7F4A_7C15))
  }

  private static func scramble(_ value: UInt64) -> UInt64 {
    var mixed = value
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
