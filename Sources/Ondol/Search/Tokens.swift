// The tokens of a text. They are stored consecutively in one array, because a document has hundreds
// and each would otherwise be an allocation.

/// A token: the positions of its term and of its source.
struct Token: Sendable {
  /// In the bytes of the list.
  var term: Range<Int>
  /// In the UTF-8 of the text.
  var source: Range<Int>
  /// The kind of its characters.
  var kind: CharacterKind
  /// Whether it is the only one of its run of letters.
  var isAlone: Bool
}

/// The tokens of a text in their order; a token's place in the list is its position.
struct TokenList: Sendable {
  var bytes: [UInt8] = []
  var tokens: [Token] = []

  /// The longest term in bytes; longer ones are cut.
  static let longestTerm = 64
  /// The most tokens of a text; later ones are not indexed.
  static let mostTokens = 1_000_000

  func term(_ place: Int) -> [UInt8] { Array(bytes[tokens[place].term]) }

  /// Replaces English words with their stems.
  mutating func stem() {
    var stemmer = EnglishStemmer()
    for place in tokens.indices where tokens[place].kind == .word {
      let term = tokens[place].term
      let length = stemmer.stem(&bytes, term)
      tokens[place].term = term.lowerBound..<(term.lowerBound + length)
    }
  }

  /// Adds a token of an app's own tokenizer.
  mutating func append(_ token: SearchToken, inTextOf count: Int) {
    guard tokens.count < Self.mostTokens, !token.term.isEmpty else { return }
    let start = bytes.count
    bytes.append(contentsOf: token.term.utf8)
    cutTerm(from: start)
    let lower = min(max(0, token.source.lowerBound), count)
    tokens.append(
      Token(
        term: start..<bytes.count, source: lower..<min(max(lower, token.source.upperBound), count),
        kind: .word, isAlone: true))
  }

  /// Cuts the last term in the bytes, if it is too long, between two characters.
  mutating func cutTerm(from start: Int) {
    guard bytes.count - start > Self.longestTerm else { return }
    var end = start + Self.longestTerm
    while bytes[end] & 0xc0 == 0x80 { end -= 1 }
    bytes.removeLast(bytes.count - end)
  }
}
