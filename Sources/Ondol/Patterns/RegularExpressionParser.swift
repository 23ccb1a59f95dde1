// The syntax of patterns, RE2's without what rules do not need: characters, `.`, classes with
// ranges and [:alpha:], \d \w \s \p{L} and their opposites, ^ $ \A \z \b \B, groups, (?i) (?s)
// (?m), |, and the repetitions * + ? {n} {n,} {n,m}, each also lazy. Backreferences and lookaround
// are none of RE2's, and are refused.

/// A parsed pattern.
indirect enum RegularExpressionTree: Sendable {
  case empty
  case scalar(UInt32, foldsCase: Bool)
  case any(includesBreaks: Bool)
  case oneOf(RegularExpressionClass)
  case assert(RegularExpressionAssertion)
  case sequence([RegularExpressionTree])
  case choice([RegularExpressionTree])
  case repeated(RegularExpressionTree, least: Int, most: Int?, isLazy: Bool)
}

struct RegularExpressionParser {
  /// Groups within each other.
  private static let mostNesting = 50
  /// RE2's limit of a counted repetition.
  private static let mostRepetitions = 1_000
  private static let mostScalars = 4_096

  private struct Flags {
    var foldsCase = false
    var dotIncludesBreaks = false
    var hasLines = false
  }

  private let scalars: [UInt32]
  private var position = 0
  private var flags = Flags()
  private var depth = 0

  init(_ text: String, foldsCase: Bool) {
    scalars = text.unicodeScalars.prefix(Self.mostScalars + 1).map(\.value)
    flags.foldsCase = foldsCase
  }

  mutating func pattern() throws(RegularExpressionError) -> RegularExpressionTree {
    guard scalars.count <= Self.mostScalars else {
      throw RegularExpressionError(message: "a pattern has at most \(Self.mostScalars) characters")
    }
    let tree = try choice()
    guard position == scalars.count else { throw error("there is a ) without its (") }
    return tree
  }

  // MARK: - Structure

  private mutating func choice() throws(RegularExpressionError) -> RegularExpressionTree {
    var ways = [try sequence()]
    while take("|") { ways.append(try sequence()) }
    return ways.count == 1 ? ways[0] : .choice(ways)
  }

  private mutating func sequence() throws(RegularExpressionError) -> RegularExpressionTree {
    var items: [RegularExpressionTree] = []
    while let next = peek, next != "|", next != ")" {
      let start = position
      let item = try atom()
      items.append(try repeated(item, isRepeatable: scalars[start] != UInt32(ascii: "^")))
    }
    return items.count == 1 ? items[0] : items.isEmpty ? .empty : .sequence(items)
  }

  private mutating func repeated(
    _ item: RegularExpressionTree, isRepeatable: Bool
  ) throws(RegularExpressionError) -> RegularExpressionTree {
    guard let (least, most) = try repetition() else { return item }
    guard isRepeatable else { throw error("^ cannot be repeated") }
    let isLazy = take("?")
    if try repetition() != nil { throw error("a repetition is repeated") }
    return .repeated(item, least: least, most: most, isLazy: isLazy)
  }

  private mutating func repetition() throws(RegularExpressionError) -> (least: Int, most: Int?)? {
    if take("*") { return (0, nil) }
    if take("+") { return (1, nil) }
    if take("?") { return (0, 1) }
    guard peek == "{" else { return nil }
    let start = position
    position += 1
    guard let least = number() else {
      // RE2 takes a brace that begins no repetition for itself.
      position = start
      return nil
    }
    var most: Int? = least
    if take(",") { most = peek == "}" ? nil : number() ?? -1 }
    guard take("}") else {
      position = start
      return nil
    }
    guard max(least, most ?? 0) <= Self.mostRepetitions, (most ?? least) >= least else {
      throw error("a repetition has at most \(Self.mostRepetitions) times, the lower bound first")
    }
    return (least, most)
  }

  /// Nil where there are no digits. A number beyond all limits stays beyond them.
  private mutating func number() -> Int? {
    var value: Int?
    while let digit = peek, ("0"..."9").contains(digit) {
      value = min((value ?? 0) * 10 + Int(digit.value - 0x30), 1_000_000)
      position += 1
    }
    return value
  }

  private mutating func atom() throws(RegularExpressionError) -> RegularExpressionTree {
    guard let next = peek else { return .empty }
    position += 1
    switch next {
    case ".": return .any(includesBreaks: flags.dotIncludesBreaks)
    case "^": return .assert(flags.hasLines ? .lineStart : .textStart)
    case "$": return .assert(flags.hasLines ? .lineEnd : .textEnd)
    case "(": return try group()
    case "[": return .oneOf(try characterClass())
    case "\\": return try escape()
    case "*", "+", "?": throw error("\(next) has nothing to repeat")
    default: return .scalar(next.value, foldsCase: flags.foldsCase)
    }
  }

  private mutating func group() throws(RegularExpressionError) -> RegularExpressionTree {
    guard depth < Self.mostNesting else {
      throw error("groups are nested more than \(Self.mostNesting) deep")
    }
    let outer = flags
    if take("?") {
      if take("P") {
        guard take("<") else { throw error("(?P is followed by <name>") }
        while let next = peek, next != ">" { position += next == ")" ? scalars.count : 1 }
        guard take(">") else { throw error("a group's name has no end") }
      } else if try !modifiers() {
        // (?i) holds for the rest of the group that it is in.
        return .empty
      }
    }
    depth += 1
    let tree = try choice()
    depth -= 1
    guard take(")") else { throw error("a ( has no )") }
    flags = outer
    return tree
  }

  /// Reads `i-s:` or `i)`; whether a group follows.
  private mutating func modifiers() throws(RegularExpressionError) -> Bool {
    var value = true
    while let next = peek {
      position += 1
      switch next {
      case "i": flags.foldsCase = value
      case "s": flags.dotIncludesBreaks = value
      case "m": flags.hasLines = value
      case "-": value = false
      case ":": return true
      case ")": return false
      default: throw error("(?\(next) is not of the syntax")
      }
    }
    throw error("a ( has no )")
  }

  // MARK: - Characters

  private mutating func escape() throws(RegularExpressionError) -> RegularExpressionTree {
    guard let next = peek else { throw error("a \\ is followed by a character") }
    if let named = try namedClass() { return .oneOf(named) }
    switch next {
    case "b", "B", "A", "z":
      position += 1
      let assertions: [Unicode.Scalar: RegularExpressionAssertion] = [
        "b": .wordBoundary, "B": .noWordBoundary, "A": .textStart, "z": .textEnd,
      ]
      return assertions[next].map { .assert($0) } ?? .empty
    default: return .scalar(try escaped(), foldsCase: flags.foldsCase)
    }
  }

  /// `\d`, `\w`, `\s`, `\p{L}` and their opposites, after the backslash; nil for another escape.
  private mutating func namedClass() throws(RegularExpressionError) -> RegularExpressionClass? {
    guard let next = peek else { return nil }
    switch next {
    case "d", "D", "w", "W", "s", "S":
      position += 1
      let lower = Unicode.Scalar(next.value | 0x20)
      let known: RegularExpressionClass = lower == "d" ? .digit : lower == "w" ? .word : .space
      return next == lower ? known : known.negated
    case "p", "P":
      position += 1
      var name = ""
      if take("{") {
        while let letter = peek, letter != "}" {
          name.unicodeScalars.append(letter)
          position += 1
        }
        guard take("}") else { throw error("\\p{ has no }") }
      } else if let letter = peek {
        name.unicodeScalars.append(letter)
        position += 1
      }
      guard let category = RegularExpressionCategory(rawValue: name) else {
        throw error("\\p{\(name)} is no class here")
      }
      return RegularExpressionClass(categories: [category], isNegated: next == "P")
    default: return nil
    }
  }

  /// The scalar that an escape stands for, after the backslash.
  private mutating func escaped() throws(RegularExpressionError) -> UInt32 {
    guard let next = peek else { throw error("a \\ is followed by a character") }
    position += 1
    switch next {
    case "n": return 10
    case "t": return 9
    case "r": return 13
    case "f": return 12
    case "v": return 11
    case "a": return 7
    case "x": return try hexadecimal()
    case "0"..."9", "A"..."Z", "a"..."z": throw error("\\\(next) is not of the syntax")
    default: return next.value
    }
  }

  /// `41` or `{1F600}`.
  private mutating func hexadecimal() throws(RegularExpressionError) -> UInt32 {
    let isBraced = take("{")
    var value: UInt32 = 0
    var count = 0
    while let digit = peek, count < (isBraced ? 6 : 2),
      let number = Character(digit).hexDigitValue
    {
      value = value * 16 + UInt32(number)
      position += 1
      count += 1
    }
    guard count > 0, !isBraced || take("}"), isBraced || count == 2 else {
      throw error("\\x is followed by two hexadecimal digits, or by up to six in braces")
    }
    return value
  }

  private mutating func characterClass() throws(RegularExpressionError) -> RegularExpressionClass {
    var set = RegularExpressionClass(isNegated: take("^"), foldsCase: flags.foldsCase)
    var isFirst = true
    while let next = peek, next != "]" || isFirst {
      isFirst = false
      if next == "[", let named = try posixClass() {
        set.parts.append(named)
        continue
      }
      position += 1
      if next == "\\", let named = try namedClass() {
        set.parts.append(named)
        continue
      }
      let first = next == "\\" ? try escaped() : next.value
      set.ranges.append(first...(try rangeEnd(from: first)))
    }
    guard take("]") else { throw error("a [ has no ]") }
    return set
  }

  /// The end of a range in a class; `first` where there is none.
  private mutating func rangeEnd(from first: UInt32) throws(RegularExpressionError) -> UInt32 {
    guard peek == "-", position + 1 < scalars.count,
      scalars[position + 1] != UInt32(ascii: "]")
    else { return first }
    position += 1
    guard let next = peek else { return first }
    position += 1
    let last = next == "\\" ? try escaped() : next.value
    guard last >= first else { throw error("a range in a class ends before it begins") }
    return last
  }

  /// `[:alpha:]`; nil where there is none.
  private mutating func posixClass() throws(RegularExpressionError) -> RegularExpressionClass? {
    guard position + 1 < scalars.count, scalars[position + 1] == UInt32(ascii: ":") else {
      return nil
    }
    var end = position + 2
    while end < scalars.count, scalars[end] != UInt32(ascii: ":") { end += 1 }
    guard end + 1 < scalars.count, scalars[end + 1] == UInt32(ascii: "]") else { return nil }
    var name = String(
      String.UnicodeScalarView(scalars[(position + 2)..<end].compactMap { Unicode.Scalar($0) }))
    let isNegated = name.hasPrefix("^")
    if isNegated { name.removeFirst() }
    guard let ranges = Self.posix[name] else { throw error("[:\(name):] is no class") }
    position = end + 2
    return RegularExpressionClass(ranges: ranges, isNegated: isNegated)
  }

  private static let posix: [String: [ClosedRange<UInt32>]] = [
    "alnum": [0x30...0x39, 0x41...0x5A, 0x61...0x7A], "alpha": [0x41...0x5A, 0x61...0x7A],
    "digit": [0x30...0x39], "lower": [0x61...0x7A], "upper": [0x41...0x5A],
    "punct": [0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E],
    "space": [0x09...0x0D, 0x20...0x20], "xdigit": [0x30...0x39, 0x41...0x46, 0x61...0x66],
    "word": RegularExpressionClass.word.ranges,
  ]

  // MARK: - The text

  private var peek: Unicode.Scalar? {
    position < scalars.count ? Unicode.Scalar(scalars[position]) : nil
  }

  private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
    guard peek == scalar else { return false }
    position += 1
    return true
  }

  private func error(_ message: String) -> RegularExpressionError {
    RegularExpressionError(message: "\(message) (character \(min(position, scalars.count)))")
  }
}

extension UInt32 {
  fileprivate init(ascii scalar: Unicode.Scalar) { self = scalar.value }
}
