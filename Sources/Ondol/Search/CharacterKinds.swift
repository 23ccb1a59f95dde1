// The frozen tables, unpacked for use: what kind each character is of, and what stands for it.

/// What a character is to the tokenizer.
enum CharacterKind: UInt8 {
  /// Ends a token.
  case separator
  /// Part of a word that blanks end.
  case word
  /// Part of a run of Hangul.
  case hangul
  /// Part of a run in a script that puts no blanks between words.
  case paired
  /// Belongs to the character before it and means nothing to a search.
  case mark
}

/// The tables of tokenizer 1.
struct CharacterTables: Sendable {
  static let first = CharacterTables()

  /// For each character of the first two planes and some more; index is the character's number.
  private var kinds: [UInt8]
  /// What stands for a character of the first plane; the character itself where nothing else does.
  private var folded: [UInt16]
  /// The same behind the first plane.
  private var farFolded: [UInt32: UInt32] = [:]
  private var expanded: [UInt32: [UInt32]] = [:]

  /// What stands for a letter or a digit of ASCII, by its byte; 0 for every other byte.
  private(set) var letters = [UInt8](repeating: 0, count: 256)

  private static let limit = 0x32000
  /// Says in `folded` that several characters stand for it.
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
    unpackFoldings()
    unpackExpansions()
    for byte in 0..<0x80 where kinds[byte] == CharacterKind.word.rawValue {
      letters[byte] = UInt8(truncatingIfNeeded: folded[byte])
    }
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

  private mutating func unpackFoldings() {
    var first = 0
    for group in Self.groups(TokenTables.foldings) where group.count == 4 {
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

  private mutating func unpackExpansions() {
    var character = 0
    for group in Self.groups(TokenTables.expansions) where group.count > 1 {
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

  /// Appends what stands for the character, in UTF-8.
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
