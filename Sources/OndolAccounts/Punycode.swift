// Domain names have two spellings: the Unicode that people read and the ASCII that the network
// carries, which is `xn--` and the rest by RFC 3492. People who copy an address from a mail's
// header get the ASCII. Comparing needs only the decoding. The input is untrusted, so every sum is
// checked.

/// The coding of domains' labels in ASCII.
enum Punycode {
  /// The prefix of labels in this coding.
  static let prefix = "xn--"

  private static let base = 36
  private static let least = 1
  private static let most = 26
  private static let skew = 38
  private static let damping = 700
  private static let firstBias = 72
  private static let firstScalar = 0x80
  /// The largest number of letters in a label: 63.
  private static let mostLetters = 63

  /// Decodes the text after a label's prefix; nil if it is invalid.
  ///
  /// - Parameter label: in lower case, without the prefix.
  /// - Complexity: O(n²) in the letters, at most 63.
  static func decode(_ label: some StringProtocol) -> String? {
    let letters = Array(label.utf8)
    guard letters.count <= mostLetters, letters.allSatisfy({ $0 < 0x80 }) else { return nil }
    let hyphen = letters.lastIndex(of: UInt8(ascii: "-"))
    var scalars = letters.prefix(hyphen ?? 0).map { Unicode.Scalar($0) }
    var rest = letters.dropFirst(hyphen.map { $0 + 1 } ?? 0)
    guard !rest.isEmpty else { return nil }
    var number = firstScalar
    var place = 0
    var bias = firstBias
    while !rest.isEmpty {
      guard let step = nextInteger(&rest, bias) else { return nil }
      let count = scalars.count + 1
      bias = adapted(to: step, count, isFirst: place == 0)
      let (sum, isOver) = place.addingReportingOverflow(step)
      let (next, isFar) = number.addingReportingOverflow(sum / count)
      guard !isOver, !isFar, let value = UInt32(exactly: next), let scalar = Unicode.Scalar(value)
      else { return nil }
      number = next
      place = sum % count
      scalars.insert(scalar, at: place)
      place += 1
    }
    return String(String.UnicodeScalarView(scalars))
  }

  /// Removes an integer of variable length from the front.
  private static func nextInteger(_ letters: inout ArraySlice<UInt8>, _ bias: Int) -> Int? {
    var sum = 0
    var weight = 1
    var position = base
    while let digit = letters.popFirst().flatMap(digit) {
      let (part, isHuge) = digit.multipliedReportingOverflow(by: weight)
      let (next, isOver) = sum.addingReportingOverflow(part)
      guard !isHuge, !isOver else { return nil }
      sum = next
      let threshold = min(max(position - bias, least), most)
      if digit < threshold { return sum }
      let (heavier, isHeavy) = weight.multipliedReportingOverflow(by: base - threshold)
      guard !isHeavy else { return nil }
      weight = heavier
      position += base
    }
    return nil
  }

  private static func digit(_ letter: UInt8) -> Int? {
    switch letter {
    case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(letter - UInt8(ascii: "a"))
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(letter - UInt8(ascii: "0")) + 26
    default: nil
    }
  }

  private static func adapted(to step: Int, _ count: Int, isFirst: Bool) -> Int {
    var delta = isFirst ? step / damping : step / 2
    delta += delta / count
    var position = 0
    while delta > (base - least) * most / 2 {
      delta /= base - least
      position += base
    }
    return position + (base - least + 1) * delta / (delta + skew)
  }
}
