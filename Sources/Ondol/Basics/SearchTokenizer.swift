// How a word index splits texts into words: the library's tokenizers, and an app's own. The app
// gives its tokenizers when it opens the database; the catalog stores their names.

/// How a word index makes terms from texts; see `createSearchIndex(on:)`.
public enum SearchTokenization: Sendable, Hashable {
  /// Words as they are written, in any script, without case, accents and width.
  case plain
  /// Like `plain`, with stems of English words: `lamp` finds `lamps`, and `heated` finds `heating`.
  /// Words of other scripts, and words with letters other than a to z, stay whole.
  case english
  /// The newest tokenizer of this name in `Database.Options.tokenizers`.
  case custom(named: String)
}

/// A searchable part of a text, as an app's own tokenizer returns it.
public struct SearchToken: Sendable, Hashable {
  /// The searchable term: texts and searches with the same term match. Bytes of UTF-8 beyond the
  /// first 64 are ignored; an empty term is left out.
  public var term: String
  /// The position of its source in the text's UTF-8, for highlighting.
  public var source: Range<Int>

  /// A token whose source is given by byte positions.
  ///
  /// - Parameters:
  ///   - term: the searchable term.
  ///   - source: the position of its source in the text's UTF-8. The part outside the text is cut
  ///     off.
  public init(_ term: String, at source: Range<Int>) {
    self.term = term
    self.source = source
  }

  /// A token whose source is given as a range of the text.
  ///
  /// - Parameters:
  ///   - term: the searchable term.
  ///   - source: the position of its source; a range of `text`.
  ///   - text: the text.
  /// - Complexity: O(n) in the text.
  public init(_ term: String, at source: Range<String.Index>, in text: String) {
    let utf8 = text.utf8
    let start = utf8.distance(from: utf8.startIndex, to: source.lowerBound)
    self.init(
      term, at: start..<(start + utf8.distance(from: source.lowerBound, to: source.upperBound)))
  }
}

/// Splits texts into tokens: an app's own definition of words, for
/// `SearchTokenization.custom(named:)`.
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
/// An index stores the name and the version of its tokenizer but not the tokenizer itself, which
/// must be among the options whenever the index is searched or its fields are written. The same
/// text must always have the same tokens. A tokenizer with other results needs another version, for
/// which `createSearchIndex(on:)` makes another index.
public protocol SearchTokenizer: Sendable {
  /// Its name in the database: 1 to 64 ASCII letters, digits, dots, hyphens and underscores.
  var name: String { get }
  /// The version of its rules, 1 or more. Several versions with one name may be present, each for
  /// the indexes that were made with it.
  var version: Int { get }

  /// The tokens of a text, in order. Phrases and nearness use a token's place among them. Called
  /// with texts of documents, and with searched words. Must not block.
  func tokens(of text: String) -> [SearchToken]
}

/// The catalog's name of a tokenizer.
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
          .invalidArgument, "a tokenizer cannot have the name '\(name)'",
          suggestion: "use letters, digits, dots, hyphens and underscores, at most 64", path: path)
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
