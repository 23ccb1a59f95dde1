// How an index of words makes words of texts: what the library brings, and what an app may bring
// itself. An app's tokenizers are chosen when the database is opened; the catalog keeps their
// names.

/// How an index of words makes terms of texts; see `createSearchIndex(on:)`.
public enum SearchTokenization: Sendable, Hashable {
  /// Words as they are written, in any script, without case, accents and width.
  case plain
  /// As `plain`, and of English words the stem: `lamps` is found by `lamp`, and `heating` by
  /// `heated`. Words of other scripts, and words with other letters than a to z, stay whole.
  case english
  /// The newest tokenizer of this name in `Database.Options.tokenizers`.
  case custom(named: String)
}

/// A part of a text that can be found, as a tokenizer of an app's own names it.
public struct SearchToken: Sendable, Hashable {
  /// What is found: texts and searches that give the same term find each other. Of more than 64
  /// bytes of UTF-8 the rest does not count; an empty one is left out.
  public var term: String
  /// Where its source is in the text's UTF-8, for highlighting.
  public var source: Range<Int>

  /// A token whose source is known by its bytes.
  ///
  /// - Parameters:
  ///   - term: what is found.
  ///   - source: where its source is in the text's UTF-8. What is not in the text is cut off.
  public init(_ term: String, at source: Range<Int>) {
    self.term = term
    self.source = source
  }

  /// A token whose source is known by its place in the text.
  ///
  /// - Parameters:
  ///   - term: what is found.
  ///   - source: where its source is; a range of `text`.
  ///   - text: the text.
  /// - Complexity: O(n) in the text.
  public init(_ term: String, at source: Range<String.Index>, in text: String) {
    let utf8 = text.utf8
    let start = utf8.distance(from: utf8.startIndex, to: source.lowerBound)
    self.init(
      term, at: start..<(start + utf8.distance(from: source.lowerBound, to: source.upperBound)))
  }
}

/// Makes tokens of texts: an app's own way to words, for `SearchTokenization.custom(named:)`.
///
/// ```swift
/// /// Part numbers such as AB-1200/3 are one word.
/// struct PartNumbers: SearchTokenizer {
///   let name = "parts"
///   let version = 1
///
///   func tokens(of text: String) -> [SearchToken] {
///     text.split(separator: " ").map { part in
///       SearchToken(part.lowercased(), at: part.startIndex..<part.endIndex, in: text)
///     }
///   }
/// }
///
/// var options = Database.Options()
/// options.tokenizers = [PartNumbers()]
/// ```
///
/// An index keeps the name and the version of its tokenizer and not the tokenizer itself, which
/// must be among the options whenever the index is searched or its fields are written. One and the
/// same text must have the same tokens always: what gives others is another version, for which
/// `createSearchIndex(on:)` makes another index.
public protocol SearchTokenizer: Sendable {
  /// What it is called in the database: 1 to 64 letters, digits, dots, hyphens and underscores of
  /// ASCII.
  var name: String { get }
  /// Which rules it follows, 1 or more. Tokenizers of one name and several versions may be there
  /// side by side, each for the indexes that were made with it.
  var version: Int { get }

  /// The tokens of a text, in order; a token's place among them is what phrases and nearness go
  /// by. Called with texts of documents, and with words that are searched. Must not block.
  func tokens(of text: String) -> [SearchToken]
}

/// What the catalog knows a tokenizer by.
enum TokenizerName: Sendable, Hashable {
  case plain
  case english
  case own(String, version: Int)

  static let greatestVersion = Int(Int32.max)

  static func isValid(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f: true
        default: false
        }
      }
  }
}

extension TokenizerName: CustomStringConvertible {
  var description: String {
    switch self {
    case .plain: "plain"
    case .english: "english"
    case .own(let name, let version): "tokenizer \(name) \(version)"
    }
  }
}

extension Database.Options {
  /// Throws `.invalidArgument` for tokenizers that no index can name.
  func checkTokenizers(_ path: String) throws(DatabaseError) {
    var names: Set<TokenizerName> = []
    for tokenizer in tokenizers {
      let (name, version) = (tokenizer.name, tokenizer.version)
      guard TokenizerName.isValid(name) else {
        throw DatabaseError(
          .invalidArgument, "a tokenizer cannot be called '\(name)'",
          suggestion: "take letters, digits, dots, hyphens and underscores, 64 at most", path: path)
      }
      guard (1...TokenizerName.greatestVersion).contains(version) else {
        throw DatabaseError(
          .invalidArgument, "the tokenizer '\(name)' cannot have the version \(version)", path: path
        )
      }
      guard names.insert(.own(name, version: version)).inserted else {
        throw DatabaseError(
          .invalidArgument, "there are two tokenizers '\(name)' of the version \(version)",
          path: path)
      }
    }
  }
}
