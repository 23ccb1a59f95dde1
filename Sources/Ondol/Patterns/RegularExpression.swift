// Regular expressions for rules and pipelines: RE2's syntax as far as RegularExpressionParser names
// it. A pattern becomes a program, and a text runs through all its threads at once (Thompson's
// simulation, with the priorities of Pike's). So the time is at most the text's length times the
// program's, whatever the pattern. A backtracking engine would need exponential time for some, and
// clients choose the patterns and the texts.

/// A compiled regular expression.
package struct RegularExpression: Sendable {
  /// Instructions of a program. A pattern that needs more is refused.
  static let mostInstructions = 2_000

  enum Instruction: Sendable {
    case scalar(UInt32, foldsCase: Bool)
    /// Any scalar, or any but a line break.
    case any(includesBreaks: Bool)
    case oneOf(RegularExpressionClass)
    /// Two ways to go on. The first one is preferred.
    case fork(Int, Int)
    case jump(Int)
    case assert(RegularExpressionAssertion)
    case accept

    /// Whether the instruction waits for a scalar, and for this one.
    func takes(_ scalar: UInt32) -> Bool {
      switch self {
      case .scalar(let expected, let foldsCase):
        scalar == expected || foldsCase && scalar.folded == expected
      case .any(let includesBreaks): includesBreaks || scalar != 10
      case .oneOf(let set): set.contains(scalar)
      case .fork, .jump, .assert, .accept: false
      }
    }
  }

  let program: [Instruction]

  /// Compiles a pattern.
  ///
  /// Throws what is wrong with it, or that it is too large.
  package init(_ text: String, foldsCase: Bool = false) throws(RegularExpressionError) {
    var parser = RegularExpressionParser(text, foldsCase: foldsCase)
    var compiler = RegularExpressionCompiler()
    program = try compiler.program(of: parser.pattern())
  }

  /// Whether the pattern matches the whole text.
  ///
  /// - Parameter work: the steps that are left; fewer than none afterwards when they did not
  ///   suffice, and then the answer is false.
  package func matchesWhole(_ text: String, work: inout Int) -> Bool {
    let scalars = text.unicodeScalars.map(\.value)
    var run = RegularExpressionRun(program: program, text: scalars)
    return run.match(from: 0, isAnchored: true, isWhole: true, work: &work) != nil
  }

  /// Whether the pattern matches somewhere in the text.
  package func matchesPart(of text: String, work: inout Int) -> Bool {
    let scalars = text.unicodeScalars.map(\.value)
    var run = RegularExpressionRun(program: program, text: scalars)
    return run.match(from: 0, isAnchored: false, isWhole: false, work: &work) != nil
  }

  /// Where the pattern matches, from left to right, without overlaps. An empty match is none
  /// directly after another match.
  package func matches(in scalars: [UInt32], work: inout Int) -> [Range<Int>] {
    var run = RegularExpressionRun(program: program, text: scalars)
    var found: [Range<Int>] = []
    var start = 0
    while start <= scalars.count,
      let match = run.match(from: start, isAnchored: false, isWhole: false, work: &work)
    {
      if !match.isEmpty || match.lowerBound != found.last?.upperBound { found.append(match) }
      start = match.isEmpty ? match.upperBound + 1 : match.upperBound
    }
    return work < 0 ? [] : found
  }
}

/// What is wrong with a pattern.
package struct RegularExpressionError: Error, Sendable, Hashable {
  package let message: String
}

/// A condition on a place of the text.
enum RegularExpressionAssertion: Sendable {
  case textStart, textEnd, lineStart, lineEnd, wordBoundary, noWordBoundary

  func holds(at position: Int, in text: [UInt32]) -> Bool {
    let before = position > 0 ? text[position - 1] : nil
    let after = position < text.count ? text[position] : nil
    let lineBreak: UInt32 = 10
    switch self {
    case .textStart: return before == nil
    case .textEnd: return after == nil
    case .lineStart: return before == nil || before == lineBreak
    case .lineEnd: return after == nil || after == lineBreak
    case .wordBoundary: return Self.isWord(before) != Self.isWord(after)
    case .noWordBoundary: return Self.isWord(before) == Self.isWord(after)
    }
  }

  private static func isWord(_ scalar: UInt32?) -> Bool {
    guard let scalar else { return false }
    return RegularExpressionClass.word.contains(scalar)
  }
}

/// A set of scalars.
struct RegularExpressionClass: Sendable {
  var ranges: [ClosedRange<UInt32>] = []
  var categories: [RegularExpressionCategory] = []
  /// Classes within this one, as in `[^\W_]`.
  var parts: [RegularExpressionClass] = []
  var isNegated = false
  var foldsCase = false

  static let digit = RegularExpressionClass(ranges: [0x30...0x39])
  static let word = RegularExpressionClass(ranges: [
    0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A,
  ])
  static let space = RegularExpressionClass(ranges: [0x09...0x0A, 0x0C...0x0D, 0x20...0x20])

  var negated: RegularExpressionClass {
    var negated = self
    negated.isNegated.toggle()
    return negated
  }

  func contains(_ scalar: UInt32) -> Bool {
    var isIn = hasExactly(scalar)
    if foldsCase, !isIn {
      isIn = hasExactly(scalar.folded) || hasExactly(scalar.raised)
    }
    return isIn != isNegated
  }

  private func hasExactly(_ scalar: UInt32) -> Bool {
    ranges.contains { $0.contains(scalar) } || parts.contains { $0.contains(scalar) }
      || categories.contains { $0.contains(scalar) }
  }
}

/// The general categories of Unicode that a pattern may name, as in `\p{Lu}`.
enum RegularExpressionCategory: String, Sendable {
  case letter = "L"
  case upper = "Lu"
  case lower = "Ll"
  case number = "N"
  case digit = "Nd"
  case punctuation = "P"
  case symbol = "S"
  case separator = "Z"
  case mark = "M"

  func contains(_ scalar: UInt32) -> Bool {
    guard let category = Unicode.Scalar(scalar)?.properties.generalCategory else { return false }
    return switch category {
    case .uppercaseLetter: self == .letter || self == .upper
    case .lowercaseLetter: self == .letter || self == .lower
    case .titlecaseLetter, .modifierLetter, .otherLetter: self == .letter
    case .decimalNumber: self == .number || self == .digit
    case .letterNumber, .otherNumber: self == .number
    case .connectorPunctuation, .dashPunctuation, .openPunctuation, .closePunctuation,
      .initialPunctuation, .finalPunctuation, .otherPunctuation:
      self == .punctuation
    case .mathSymbol, .currencySymbol, .modifierSymbol, .otherSymbol: self == .symbol
    case .spaceSeparator, .lineSeparator, .paragraphSeparator: self == .separator
    case .nonspacingMark, .spacingMark, .enclosingMark: self == .mark
    default: false
    }
  }
}

extension UInt32 {
  /// The scalar in lower case, where that is one scalar.
  var folded: UInt32 {
    if self < 0x80 { return (0x41...0x5A).contains(self) ? self + 0x20 : self }
    return mapped { $0.lowercaseMapping }
  }

  /// The scalar in upper case, where that is one scalar.
  var raised: UInt32 {
    if self < 0x80 { return (0x61...0x7A).contains(self) ? self - 0x20 : self }
    return mapped { $0.uppercaseMapping }
  }

  private func mapped(_ mapping: (Unicode.Scalar.Properties) -> String) -> UInt32 {
    guard let scalar = Unicode.Scalar(self) else { return self }
    let text = mapping(scalar.properties).unicodeScalars
    return text.count == 1 ? text.first?.value ?? self : self
  }
}
