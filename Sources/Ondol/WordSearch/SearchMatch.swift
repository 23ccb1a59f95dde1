// The results of a search: documents, why they match, and where in their texts.

internal import OndolEngine

/// The contribution of a word or phrase of a search to a document's score.
public struct SearchTermScore: Sendable, Hashable {
  /// The word as it was typed, or the text that it is part of.
  public let text: String
  /// How often the document has it, weighted by field and normalized by the fields' lengths.
  public let frequency: Double
  /// The number of documents that have it.
  public let documents: Int
  /// Its contribution to the score.
  public let score: Double
}

/// A word with which a search may continue.
public struct SearchSuggestion: Sendable, Hashable {
  /// The word in its indexed form: without case, accents and width. In an index of English words it
  /// is the stem, and with an app's own tokenizer the term.
  public let term: String
  /// The approximate number of documents that have it: changed documents count until upkeep has
  /// processed them.
  public let documents: Int
}

/// A part of a text, with the matches in it.
public struct SearchSnippet: Sendable, Hashable {
  /// The part.
  public let text: String
  /// The matches in the part.
  public let ranges: [Range<String.Index>]
  /// Whether text before the part is left out.
  public let isCutInFront: Bool
  /// Whether text after the part is left out.
  public let isCutBehind: Bool
}

/// A document that a search has found.
public struct SearchMatch: Sendable {
  /// The document.
  public let document: DocumentSnapshot
  /// How well it matches; greater is better. Scores of different searches cannot be compared.
  public let score: Double
  /// The contribution of each word to the score. When words are excluded, or a word has several
  /// parts, these are its parts.
  public let terms: [SearchTermScore]
  let search: ParsedSearch
  let tokenizer: Tokenizer

  /// The matches in a field's text, in order. Empty when the field has none, is not a text or was
  /// not selected.
  ///
  /// - Complexity: O(n) in the text.
  public func ranges(in field: FieldPath) -> [Range<String.Index>] {
    guard let text = text(of: field) else { return [] }
    return search.ranges(in: text, tokenizer).map { range in
      text.utf8Index(range.lowerBound)..<text.utf8Index(range.upperBound)
    }
  }

  /// The part of a field's text that shows most of the matches. Empty when the field is not a text.
  ///
  /// - Parameters:
  ///   - field: a field, or a path into maps.
  ///   - length: the most characters in the part.
  /// - Complexity: O(n) in the text.
  public func snippet(of field: FieldPath, length: Int = 120) -> SearchSnippet {
    let text = text(of: field) ?? ""
    let ranges = search.ranges(in: text, tokenizer)
    let part = Snippet.part(of: text, around: ranges, length: length)
    let start = text.utf8.distance(from: text.startIndex, to: part.lowerBound)
    let end = text.utf8.distance(from: text.startIndex, to: part.upperBound)
    let shown = String(text[part])
    return SearchSnippet(
      text: shown,
      ranges: ranges.filter { $0.lowerBound < end && $0.upperBound > start }.map { range in
        shown.utf8Index(
          max(0, range.lowerBound - start))..<shown.utf8Index(min(end, range.upperBound) - start)
      }, isCutInFront: start > 0, isCutBehind: part.upperBound < text.endIndex)
  }

  private func text(of field: FieldPath) -> String? { document.get(field)?.string }
}

extension String {
  /// The position after that many bytes.
  fileprivate func utf8Index(_ offset: Int) -> Index {
    utf8.index(utf8.startIndex, offsetBy: offset, limitedBy: utf8.endIndex) ?? endIndex
  }
}
