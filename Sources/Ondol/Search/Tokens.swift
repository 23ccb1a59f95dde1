// The tokens of a text. They lie one behind the other in one array, because a document has hundreds
// and each would otherwise be an allocation.

/// A token: where its term and where its source lie.
struct Token: Sendable {
  /// In the bytes of the list.
  var term: Range<Int>
  /// In the UTF-8 of the text.
  var source: Range<Int>
  /// Of which kind the characters are.
  var kind: CharacterKind
  /// Whether it is the only one of its run of letters.
  var isAlone: Bool
}

/// The tokens of a text in their order; a token's place in the list is its position.
struct TokenList: Sendable {
  var bytes: [UInt8] = []
  var tokens: [Token] = []

  /// The longest term; what is longer is cut.
  static let longestTerm = 64
  /// Tokens of a text that count; what is behind them is not found.
  static let mostTokens = 1_000_000

  func term(_ place: Int) -> [UInt8] { Array(bytes[tokens[place].term]) }
}
