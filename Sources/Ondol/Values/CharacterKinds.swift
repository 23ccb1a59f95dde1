// The frozen tables, unpacked for use: the kind of each character, and what it folds to.

/// What a character is to the tokenizer.
enum CharacterKind: UInt8 {
  /// Ends a token.
  case separator
  /// Part of a word that spaces end.
  case word
  /// Part of a run of Hangul.
  case hangul
  /// Part of a run in a script that puts no spaces between words.
  case paired
  /// Belongs to the character before it and is ignored by searches.
  case mark
}

/// The tables of tokenizer 1.
struct CharacterTables: Sendable {
  static let first = CharacterTables()

  /// For each character of the first two planes and some more; the index is the character's number.
  private var kinds: [UInt8]
  /// What a character of the first plane folds to; itself when it has no folding.
  private var folded: [UInt16]
  /// The same beyond the first plane.
  private var farFolded: [UInt32: UInt32] = [:]
  private var expanded: [UInt32: [UInt32]] = [:]

  /// What a letter or a digit of ASCII folds to, by its byte; 0 for every other byte.
  private(set) var letters = [UInt8](repeating: 0, count: 256)

  private static let limit = 0x32000
  /// In `folded`: the character folds to several characters.
  private static let isExpanded: UInt16 = 0xffff

  private init() {
    kinds = [UInt8](repeating: CharacterKind.separator.rawValue, count: Self.limit)
    folded = (0...UInt16.max).map { $0 }
    for letter in 0x61...0x7a {
      kinds[letter] = CharacterKind.word.rawValue
      kinds[letter - 0x20] = CharacterKind.word.rawValue
      folded[letter - 0x20] = UInt16(letter)
    }
    for digit in 0x30...0x39 { kinds[digit] = CharacterKind.word.rawValue }
    unpackKinds()
    unpack(foldings: TokenTables.foldings)
    unpack(expansions: TokenTables.expansions)
    for byte in 0..<0x80 where kinds[byte] == CharacterKind.word.rawValue {
      letters[byte] = UInt8(truncatingIfNeeded: folded[byte])
    }
  }

  /// The tables of case alone: every other difference stays.
  static let casing = CharacterTables(
    foldings: CaseTables.foldings, expansions: CaseTables.expansions)

  private init(foldings: String, expansions: String) {
    kinds = []
    folded = (0...UInt16.max).map { $0 }
    unpack(foldings: foldings)
    unpack(expansions: expansions)
  }

  private static func groups(_ text: String) -> [[Int]] {
    text.split(separator: " ").map { group in
      group.split(separator: ".").map { Int($0, radix: 36) ?? 0 }
    }
  }

  private mutating func unpackKinds() {
    var last = 0
    for group in Self.groups(TokenTables.kinds) where group.count == 3 {
      let first = last + group[0]
      last = first + group[1]
      for character in first...last where character < Self.limit {
        kinds[character] = UInt8(group[2])
      }
    }
  }

  private mutating func unpack(foldings: String) {
    var first = 0
    for group in Self.groups(foldings) where group.count == 4 {
      first += group[0]
      for step in 0..<group[1] {
        let character = first + step * group[2]
        let target = character + group[3]
        if character < folded.count, target < Int(Self.isExpanded) {
          folded[character] = UInt16(target)
        } else {
          farFolded[UInt32(character)] = UInt32(target)
          if character < folded.count { folded[character] = Self.isExpanded }
        }
      }
    }
  }

  private mutating func unpack(expansions: String) {
    var character = 0
    for group in Self.groups(expansions) where group.count > 1 {
      character += group[0]
      expanded[UInt32(character)] = group.dropFirst().map { UInt32($0) }
      if character < folded.count { folded[character] = Self.isExpanded }
    }
  }

  @inline(__always)
  func kind(of character: UInt32) -> CharacterKind {
    guard character < UInt32(Self.limit) else { return .separator }
    return CharacterKind(rawValue: kinds[Int(character)]) ?? .separator
  }

  /// The one character that `character` folds to; nil when it folds to several.
  @inline(__always)
  func folded(_ character: UInt32) -> UInt32? {
    if character < 0x10000, folded[Int(character)] != Self.isExpanded {
      return UInt32(folded[Int(character)])
    }
    return expanded[character] == nil ? farFolded[character] ?? character : nil
  }

  /// The characters that a character folds to, if there are several.
  func expansion(of character: UInt32) -> [UInt32] { expanded[character] ?? [] }

  /// Appends the folding of the character, in UTF-8.
  @inline(__always)
  func fold(_ character: UInt32, into bytes: inout [UInt8]) {
    if character < 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: folded[Int(character)]))
    } else if character < 0x10000, folded[Int(character)] != Self.isExpanded {
      bytes.append(utf8: UInt32(folded[Int(character)]))
    } else if let several = expanded[character] {
      for one in several { bytes.append(utf8: one) }
    } else {
      bytes.append(utf8: farFolded[character] ?? character)
    }
  }
}

extension CharacterTables {
  /// The character at `offset`, which moves past it. Texts are valid UTF-8; invalid bytes count as
  /// separators.
  @inline(__always)
  static func character(in bytes: [UInt8], at offset: inout Int) -> UInt32 {
    let first = UInt32(bytes[offset])
    offset += 1
    if first < 0x80 { return first }
    let more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3
    guard offset + more <= bytes.count else { return 0 }
    var character = first & (0x3f >> UInt32(more))
    for place in offset..<(offset + more) {
      character = character << 6 | UInt32(bytes[place] & 0x3f)
    }
    offset += more
    return character
  }
}

extension [UInt8] {
  /// Appends a character.
  @inline(__always)
  mutating func append(utf8 character: UInt32) {
    func tail(_ shift: UInt32) -> UInt8 {
      0x80 | UInt8(truncatingIfNeeded: character >> shift) & 0x3f
    }
    if character < 0x80 {
      append(UInt8(truncatingIfNeeded: character))
    } else if character < 0x800 {
      append(0xc0 | UInt8(truncatingIfNeeded: character >> 6))
      append(tail(0))
    } else if character < 0x10000 {
      append(0xe0 | UInt8(truncatingIfNeeded: character >> 12))
      append(tail(6))
      append(tail(0))
    } else {
      append(0xf0 | UInt8(truncatingIfNeeded: character >> 18))
      append(tail(12))
      append(tail(6))
      append(tail(0))
    }
  }
}
