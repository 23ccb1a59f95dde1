// Stems of English words, by the rules of Porter's second stemmer. It is part of tokenizer 2 and as
// frozen as its tables, because an index's rows are made with it. The word is changed in place; no
// rule makes it longer.

/// Letters of the rules.
private struct Letters: ExpressibleByStringLiteral, Sendable {
  let bytes: [UInt8]

  init(stringLiteral text: String) {
    bytes = Array(text.utf8)
  }
}

/// Makes stems of English words.
struct EnglishStemmer {
  /// The word, in lower case; a consonant `y` is a `Y` while the rules are applied.
  private var word: [UInt8] = []
  /// Where the regions begin in which endings may be removed.
  private var first = 0
  private var second = 0

  /// The stem of a word that consists of the letters a to z.
  static func stem(_ word: String) -> String {
    var stemmer = EnglishStemmer()
    var bytes = Array(word.utf8)
    let length = stemmer.stem(&bytes, 0..<bytes.count)
    return String(decoding: bytes[..<length], as: UTF8.self)
  }

  /// Writes the stem of the word at `place` to where the word begins, and returns its length. A
  /// word with letters other than a to z is its own stem.
  mutating func stem(_ bytes: inout [UInt8], _ place: Range<Int>) -> Int {
    guard place.count > 2 else { return place.count }
    word.removeAll(keepingCapacity: true)
    for byte in bytes[place] {
      guard byte >= 0x61, byte <= 0x7a else { return place.count }
      word.append(byte)
    }
    apply()
    for (offset, byte) in word.enumerated() {
      bytes[place.lowerBound + offset] = byte == Self.consonantY ? 0x79 : byte
    }
    return word.count
  }

  private mutating func apply() {
    if word.count <= 6, let special = Self.special.first(where: { isWord($0.word) }) {
      replace(word.count, special.stem)
      return
    }
    markConsonants()
    findRegions()
    removePlural()
    if Self.whole.contains(where: { isWord($0) }) { return }
    removePast()
    if let last = word.last, last == 0x79 || last == Self.consonantY, word.count > 2,
      !isVowel(word.count - 2)
    {
      word[word.count - 1] = UInt8(ascii: "i")
    }
    shortenSecond()
    shortenThird()
    removeFourth()
    removeEnd()
  }

  // MARK: - Letters

  private static let consonantY = UInt8(ascii: "Y")

  private func isVowel(_ place: Int) -> Bool {
    switch word[place] {
    case 0x61, 0x65, 0x69, 0x6f, 0x75, 0x79: true
    default: false
    }
  }

  /// A `y` at the beginning or after a vowel is a consonant.
  private mutating func markConsonants() {
    for place in word.indices where word[place] == 0x79 {
      if place == 0 || isVowel(place - 1) { word[place] = Self.consonantY }
    }
  }

  private mutating func findRegions() {
    first = word.count
    for beginning in Self.beginnings where starts(with: beginning) {
      first = beginning.bytes.count
    }
    if first == word.count { first = region(from: 0) }
    second = region(from: first)
  }

  /// The position after the first consonant that follows a vowel.
  private func region(from start: Int) -> Int {
    var place = start + 1
    while place < word.count {
      if !isVowel(place), isVowel(place - 1) { return place + 1 }
      place += 1
    }
    return word.count
  }

  /// Whether the part before `end` ends with a short syllable.
  private func endsShort(before end: Int) -> Bool {
    if end == 2 { return isVowel(0) && !isVowel(1) }
    guard end > 2, !isVowel(end - 3), isVowel(end - 2), !isVowel(end - 1) else { return false }
    let last = word[end - 1]
    return last != 0x77 && last != 0x78 && last != Self.consonantY
  }

  private func hasVowel(before end: Int) -> Bool {
    (0..<max(0, end)).contains { isVowel($0) }
  }

  // MARK: - Endings

  @inline(__always)
  private func ends(with ending: Letters) -> Bool {
    let start = word.count - ending.bytes.count
    guard start >= 0 else { return false }
    var place = ending.bytes.count - 1
    while place >= 0 {
      guard word[start + place] == ending.bytes[place] else { return false }
      place -= 1
    }
    return true
  }

  private func starts(with beginning: Letters) -> Bool { word.starts(with: beginning.bytes) }

  private func isWord(_ other: Letters) -> Bool {
    word.count == other.bytes.count && ends(with: other)
  }

  /// Replaces the last `count` letters with an ending.
  private mutating func replace(_ count: Int, _ ending: Letters) {
    word.removeLast(count)
    word.append(contentsOf: ending.bytes)
  }

  private mutating func removePlural() {
    guard word.last == UInt8(ascii: "s") || word.last == UInt8(ascii: "d") else { return }
    if ends(with: Self.sses) {
      word.removeLast(2)
    } else if ends(with: Self.ied) || ends(with: Self.ies) {
      word.removeLast(word.count > 4 ? 2 : 1)
    } else if word.last == UInt8(ascii: "s"), !ends(with: Self.us), !ends(with: Self.ss),
      hasVowel(before: word.count - 2)
    {
      word.removeLast()
    }
  }

  private mutating func removePast() {
    if ends(with: Self.eedly) || ends(with: Self.eed) {
      let count = ends(with: Self.eed) ? 3 : 5
      if word.count - count >= first { replace(count, "ee") }
      return
    }
    guard let ending = Self.past.first(where: { ends(with: $0) }) else { return }
    let count = ending.bytes.count
    guard hasVowel(before: word.count - count) else { return }
    word.removeLast(count)
    if ends(with: Self.at) || ends(with: Self.bl) || ends(with: Self.iz) {
      word.append(UInt8(ascii: "e"))
    } else if word.count > 1, word[word.count - 1] == word[word.count - 2],
      Self.doubles.contains(word[word.count - 1])
    {
      word.removeLast()
    } else if word.count <= first, endsShort(before: word.count) {
      word.append(UInt8(ascii: "e"))
    }
  }

  private typealias Rule = (ending: Letters, stem: Letters)

  /// The rule of the longest ending that the word has.
  private func rule(_ rules: [[Rule]]) -> Rule? {
    guard let last = word.last, last >= 0x61, last <= 0x7a else { return nil }
    return rules[Int(last) - 0x61].first { ends(with: $0.ending) }
  }

  private mutating func shortenSecond() {
    guard let rule = rule(Self.secondStep) else { return shortenLy() }
    guard word.count - rule.ending.bytes.count >= first else { return }
    // An "ogi" is shortened only after an l.
    guard !ends(with: Self.ogi) || ends(with: Self.logi) else { return }
    replace(rule.ending.bytes.count, rule.stem)
  }

  /// Removes "li" after certain letters.
  private mutating func shortenLy() {
    guard ends(with: Self.li), word.count - 2 >= first, word.count > 2 else { return }
    if Self.beforeLi.contains(word[word.count - 3]) { word.removeLast(2) }
  }

  private mutating func shortenThird() {
    guard let rule = rule(Self.thirdStep), word.count - rule.ending.bytes.count >= first else {
      return
    }
    guard !ends(with: Self.ative) || word.count - rule.ending.bytes.count >= second else { return }
    replace(rule.ending.bytes.count, rule.stem)
  }

  private mutating func removeFourth() {
    guard let rule = rule(Self.fourthStep), word.count - rule.ending.bytes.count >= second else {
      return
    }
    guard !ends(with: Self.ion) || ends(with: Self.sion) || ends(with: Self.tion) else { return }
    word.removeLast(rule.ending.bytes.count)
  }

  private mutating func removeEnd() {
    let end = word.count - 1
    if word.last == UInt8(ascii: "e") {
      if end >= second || end >= first && !endsShort(before: end) { word.removeLast() }
    } else if word.last == UInt8(ascii: "l"), end >= second, end > 0,
      word[end - 1] == UInt8(ascii: "l")
    {
      word.removeLast()
    }
  }

  // MARK: - Tables

  private static let past: [Letters] = ["ingly", "edly", "ing", "ed"]
  private static let at: Letters = "at"
  private static let ative: Letters = "ative"
  private static let bl: Letters = "bl"
  private static let eed: Letters = "eed"
  private static let eedly: Letters = "eedly"
  private static let ied: Letters = "ied"
  private static let ies: Letters = "ies"
  private static let ion: Letters = "ion"
  private static let iz: Letters = "iz"
  private static let li: Letters = "li"
  private static let logi: Letters = "logi"
  private static let ogi: Letters = "ogi"
  private static let sion: Letters = "sion"
  private static let ss: Letters = "ss"
  private static let sses: Letters = "sses"
  private static let tion: Letters = "tion"
  private static let us: Letters = "us"
  private static let doubles = Array("bdfgmnprt".utf8)
  private static let beforeLi = Array("cdeghkmnrt".utf8)
  private static let beginnings: [Letters] = ["gener", "commun", "arsen"]
  /// Words that the rules would stem wrongly.
  private static let special: [(word: Letters, stem: Letters)] = [
    ("skis", "ski"), ("skies", "sky"), ("dying", "die"), ("lying", "lie"), ("tying", "tie"),
    ("idly", "idl"), ("gently", "gentl"), ("ugly", "ugli"), ("early", "earli"), ("only", "onli"),
    ("singly", "singl"), ("sky", "sky"), ("news", "news"), ("howe", "howe"), ("atlas", "atlas"),
    ("cosmos", "cosmos"), ("bias", "bias"), ("andes", "andes"),
  ]
  /// Words that stay unchanged once their plural ending is removed.
  private static let whole: [Letters] = [
    "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed",
  ]

  /// Rules by the last letter of their endings, the longest first.
  private static func rules(_ texts: [(Letters, Letters)]) -> [[Rule]] {
    var rules = [[Rule]](repeating: [], count: 26)
    for (ending, stem) in texts.sorted(by: { $0.0.bytes.count > $1.0.bytes.count }) {
      let last = ending.bytes.last ?? 0x61
      rules[Int(last) - 0x61].append((ending, stem))
    }
    return rules
  }

  private static let secondStep = rules([
    ("ational", "ate"), ("fulness", "ful"), ("iveness", "ive"), ("ization", "ize"),
    ("ousness", "ous"), ("biliti", "ble"), ("lessli", "less"), ("tional", "tion"),
    ("alism", "al"), ("aliti", "al"), ("ation", "ate"), ("entli", "ent"), ("fulli", "ful"),
    ("iviti", "ive"), ("ousli", "ous"), ("abli", "able"), ("alli", "al"), ("anci", "ance"),
    ("ator", "ate"), ("enci", "ence"), ("izer", "ize"), ("bli", "ble"), ("ogi", "og"),
  ])
  private static let thirdStep = rules([
    ("ational", "ate"), ("tional", "tion"), ("alize", "al"), ("icate", "ic"), ("iciti", "ic"),
    ("ative", ""), ("ical", "ic"), ("ness", ""), ("ful", ""),
  ])
  private static let fourthStep = rules([
    ("ement", ""), ("able", ""), ("ance", ""), ("ence", ""), ("ible", ""), ("ment", ""),
    ("ant", ""), ("ate", ""), ("ent", ""), ("ion", ""), ("ism", ""), ("iti", ""), ("ive", ""),
    ("ize", ""), ("ous", ""), ("al", ""), ("er", ""), ("ic", ""),
  ])
}
