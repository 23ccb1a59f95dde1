// Letters that combine with the previous letter: in Hangul into a syllable, in Kana into a voiced
// letter. Part of the frozen tables with which tokens and keys of texts are made.

/// Composition of Kana with voicing marks.
enum Kana {
  /// The letter that a letter and a voicing mark combine to; nil when they do not combine.
  static func voiced(_ letter: UInt32, by mark: UInt32) -> UInt32? {
    guard mark == 0x3099 || mark == 0x309a else { return nil }
    if (0x306f...0x307d).contains(letter) || (0x30cf...0x30dd).contains(letter) {
      return letter + (mark == 0x3099 ? 1 : 2)
    }
    guard mark == 0x3099 else { return nil }
    let hasVoice = (0x304b...0x3062).contains(letter) || (0x30ab...0x30c2).contains(letter)
    if hasVoice
      || [0x3064, 0x3066, 0x3068].contains(letter)
      || [0x30c4, 0x30c6, 0x30c8].contains(letter)
    {
      return letter + 1
    }
    return letter == 0x3046 || letter == 0x30a6 ? letter + 0x4e : nil
  }
}

/// Composition of syllables.
enum Hangul {
  /// The syllable that two characters combine to: a leading consonant and a vowel, or a syllable
  /// without a final consonant and a final consonant. Nil when they do not combine.
  static func compose(_ left: UInt32, _ right: UInt32) -> UInt32? {
    if (0x1100...0x1112).contains(left), (0x1161...0x1175).contains(right) {
      return 0xac00 + ((left - 0x1100) * 21 + (right - 0x1161)) * 28
    }
    if (0xac00...0xd7a3).contains(left), (left - 0xac00) % 28 == 0,
      (0x11a8...0x11c2).contains(right)
    {
      return left + (right - 0x11a7)
    }
    return nil
  }
}
