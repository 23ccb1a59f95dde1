// The texts and the questions, made from their numbers, so that none has to be downloaded. Three of
// four texts have made-up words in Latin letters, the fourth has Hangul. The words' frequencies are
// as uneven as those of a language (Zipf), so there are words in a third of all texts and words in
// a handful.

import Peers

/// Numbers that are the same in each run.
struct Sequence64 {
  private var state: UInt64

  init(_ seed: UInt64) {
    state = (seed &+ 1) &* 0x9e37_79b9_7f4a_7c15
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }

  mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
}

/// Words, the most frequent first.
struct Vocabulary: Sendable {
  let words: [String]
  private let sums: [Double]

  init(_ words: [String]) {
    self.words = words
    var sum = 0.0
    sums = words.indices.map { rank in
      sum += 1 / (Double(rank) + 2.7)
      return sum
    }
  }

  /// Words of two to four syllables, the frequent ones short.
  static let latin = Vocabulary(
    (0..<60_000).map { rank in
      rank < 4_000
        ? syllables(rank * 1_657 % 4_900, 2)
        : syllables(rank * 7_919 % 343_000, rank % 3 == 0 ? 4 : 3)
    })

  private static func syllables(_ number: Int, _ count: Int) -> String {
    let consonants = Array("bcdfghjklmnprst".unicodeScalars.prefix(14))
    let vowels = Array("aeiou".unicodeScalars)
    var text = String.UnicodeScalarView()
    var rest = number
    for _ in 0..<count {
      text.append(consonants[rest % 14])
      text.append(vowels[rest / 14 % 5])
      rest = rest / 70 + (count == 4 ? 1 : 0)
    }
    return String(text)
  }

  /// Words of two or three syllables, some with a particle.
  static let hangul = Vocabulary(
    (0..<20_000).map { rank in
      var number = rank * 7_919 % 1_000_000
      var text = String.UnicodeScalarView()
      for _ in 0..<(rank % 4 == 0 ? 3 : 2) {
        let syllable = 0xac00 + UInt32(number % 1_000 * 11)
        text.append(Unicode.Scalar(syllable) ?? "가")
        number = number / 1_000 + rank % 7
      }
      return String(text)
    })

  func rank(_ random: inout Sequence64) -> Int {
    let wanted = Double(random.next() >> 11) / Double(1 << 53) * (sums.last ?? 1)
    var (low, high) = (0, sums.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if sums[middle] < wanted { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

enum Texts {
  private static let particles = ["", "", "은", "이", "을", "에서", "에", "의", "도", "로"]

  static func text(_ number: Int) -> String {
    var random = Sequence64(UInt64(number))
    let isHangul = number % 4 == 3
    let vocabulary = isHangul ? Vocabulary.hangul : .latin
    let count = isHangul ? 40 + random.below(120) : 60 + random.below(280)
    var text = ""
    for place in 0..<count {
      if place > 0 { text += place % 12 == 0 ? ". " : " " }
      text += vocabulary.words[vocabulary.rank(&random)]
      if isHangul { text += particles[random.below(particles.count)] }
    }
    return text
  }

  /// The number of words in the texts. Searches listen to the words after them.
  static let oftenWritten = 10_000

  /// Returns a text of frequent words only.
  static func oftenWritten(_ number: Int) -> String {
    var random = Sequence64(UInt64(number))
    let vocabulary = Vocabulary.latin
    return (0..<60 + random.below(280)).map { _ in
      vocabulary.words[vocabulary.rank(&random) % oftenWritten]
    }.joined(separator: " ")
  }

  static func batch(_ numbers: Range<Int>) -> [SearchedText] {
    numbers.map { SearchedText(id: $0, text: text($0)) }
  }

  /// Returns the questions of a row.
  static func questions(_ workload: Workload, _ count: Int) -> [SearchQuestion] {
    let (latin, hangul) = (Vocabulary.latin.words, Vocabulary.hangul.words)
    return (0..<count).map { number in
      switch workload {
      case .rareWord: .words([latin[20_000 + 37 * number]])
      case .commonWords: .words([latin[20 + 3 * number % 80], latin[25 + 7 * number % 80]])
      case .phrase: .phrase([latin[10 + number % 40], latin[12 + 11 * number % 60]])
      case .prefix: .prefix(String(latin[100 + 61 * number % 3_000].prefix(4)))
      case .syllables: .syllables(String(hangul[50 + 211 * number % 9_000].prefix(2)))
      default: .words([])
      }
    }
  }
}
