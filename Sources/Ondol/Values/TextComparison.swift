// Comparisons of texts for people: without case, without accents and width, with numbers in them by
// their value. A comparison is a function from a text to another one, its key, and keys are
// compared by their bytes like all texts. So an index stores keys beside texts, a sort in memory
// and a live result compare the same keys, and no other code knows the details.
//
// Frozen: a write makes the rows of an index with it, and they must be the same when they are made
// again years later. The tables are those of the search's tokenizer, and CaseTables. The catalog
// identifies a comparison by a number for this comparison with these tables; another table gets
// another number.
//
//   caseInsensitive   characters by their full case folding; nothing else
//   folded            characters by the tokenizer's table, which leaves out case, accents and
//                     width; marks are left out; letters of Hangul are composed to syllables, and
//                     Kana with its voicing marks; full-width punctuation is that of ASCII
//   natural           folded, and each run of ASCII digits is 0, then the number of digits without
//                     leading zeros, then those digits
//
// The number of digits is one character from 21 ("!", none) on; for each 90 of them there is a 7E
// before it. So longer numbers come after shorter ones, and numbers are where digits are.

internal import OndolEngine

/// How texts are compared, when not by their bytes.
///
/// ```swift
/// items.order(by: "name", comparing: .folded)
/// items.whereField("name", isEqualTo: "elan", comparing: .folded)  // finds "Élan"
/// ```
///
/// The rules are the same on every system and in every later version, so that an index may be made
/// with them: `createIndex(on: [.ascending("name", comparing: .folded)])`. They do not depend on a
/// language, because the rules of a language's dictionary would change with its tables, under an
/// existing index. Values that are not texts compare as usual.
public enum TextComparison: String, Sendable, Hashable, CaseIterable {
  /// Ignores case: `"Apple"` equals `"APPLE"`, and `"straße"` equals `"STRASSE"`. Accents count.
  case caseInsensitive
  /// Ignores case, accents and width: `"Élan"` equals `"elan"`, and `"ＡＢＣ"` equals `"abc"`.
  case folded
  /// Like `folded`, and digits count as numbers: `"Apple 2"` is before `"Apple 10"`, however long
  /// the numbers are. `"007"` equals `"7"`.
  case natural

  /// The comparison's result for a value: a text's key, and any other value itself.
  func value(of value: Value) -> Value {
    if case .string(let text) = value { .string(key(of: text)) } else { value }
  }

  /// The text by which `text` is compared.
  ///
  /// - Complexity: O(n) in the bytes of the text.
  func key(of text: String) -> String {
    String(decoding: key(of: Array(text.utf8)), as: UTF8.self)
  }

  /// The same of a text in UTF-8.
  func key(of text: [UInt8]) -> [UInt8] {
    switch self {
    case .caseInsensitive: TextKey.key(of: text, .casing, isFolded: false)
    case .folded: TextKey.key(of: text, .first, isFolded: true)
    case .natural: TextKey.numbered(TextKey.key(of: text, .first, isFolded: true))
    }
  }
}

// MARK: - As bytes

extension TextComparison {
  /// A number for each, part of the file format.
  var code: UInt8 {
    switch self {
    case .caseInsensitive: 1
    case .folded: 2
    case .natural: 3
    }
  }

  init?(code: UInt8) {
    guard let known = Self.allCases.first(where: { $0.code == code }) else { return nil }
    self = known
  }

  /// The suffix of a field's name for this comparison. In a path, `~` is allowed only in backticks.
  var suffix: String { "~" + rawValue }

  /// The field that a text names, and its comparison: `name~folded`. Without a suffix, by bytes.
  static func split(_ text: some StringProtocol) -> (field: String, comparison: TextComparison?) {
    for comparison in allCases where text.utf8.count > comparison.suffix.utf8.count {
      let end = comparison.suffix.utf8
      if text.utf8.suffix(end.count).elementsEqual(end) {
        return (String(text.dropLast(comparison.suffix.count)), comparison)
      }
    }
    return (String(text), nil)
  }
}

/// Makes the key of one text.
private struct TextKey {
  private var bytes: [UInt8] = []
  /// The last character, with which the next one may be composed.
  private var last: UInt32?

  static func key(of text: [UInt8], _ tables: CharacterTables, isFolded: Bool) -> [UInt8] {
    var key = TextKey()
    key.bytes.reserveCapacity(text.count)
    var offset = 0
    while offset < text.count {
      let octet = text[offset]
      if octet < 0x80 {
        key.flush()
        let isCapital = octet &- 0x41 < 26
        key.bytes.append(isCapital ? octet | 0x20 : octet)
        offset += 1
        continue
      }
      let character = CharacterTables.character(in: text, at: &offset)
      if isFolded { key.fold(character, tables) } else { key.put(character, tables) }
    }
    key.flush()
    return key.bytes
  }

  private mutating func put(_ character: UInt32, _ tables: CharacterTables) {
    tables.fold(character, into: &bytes)
  }

  private mutating func fold(_ character: UInt32, _ tables: CharacterTables) {
    if tables.kind(of: character) == .mark { return }
    if let wide = Self.narrowed(character) { return compose(wide, tables) }
    guard let folded = tables.folded(character) else {
      for one in tables.expansion(of: character) { compose(one, tables) }
      return
    }
    compose(folded, tables)
  }

  /// The narrow form of a space or of full-width punctuation; letters and digits are in the table.
  private static func narrowed(_ character: UInt32) -> UInt32? {
    if character == 0x3000 { return 0x20 }
    guard (0xff01...0xff5e).contains(character) else { return nil }
    let narrow = character - 0xfee0
    return (0x41...0x5a).contains(narrow) ? narrow + 0x20 : narrow
  }

  private mutating func compose(_ character: UInt32, _ tables: CharacterTables) {
    if let last, let one = Hangul.compose(last, character) ?? Kana.voiced(last, by: character) {
      self.last = one
      return
    }
    flush()
    last = character
  }

  private mutating func flush() {
    guard let last else { return }
    bytes.append(utf8: last)
    self.last = nil
  }

  /// The key with its runs of digits in the order of their numbers.
  static func numbered(_ key: [UInt8]) -> [UInt8] {
    var numbered: [UInt8] = []
    numbered.reserveCapacity(key.count + 4)
    var offset = 0
    while offset < key.count {
      guard isDigit(key[offset]) else {
        numbered.append(key[offset])
        offset += 1
        continue
      }
      while offset < key.count, key[offset] == 0x30 { offset += 1 }
      let start = offset
      while offset < key.count, isDigit(key[offset]) { offset += 1 }
      let digits = key[start..<offset]
      numbered.append(0x30)
      numbered.append(contentsOf: repeatElement(0x7e, count: digits.count / 90))
      numbered.append(0x21 + UInt8(digits.count % 90))
      numbered.append(contentsOf: digits)
    }
    return numbered
  }

  private static func isDigit(_ octet: UInt8) -> Bool { octet &- 0x30 < 10 }
}
