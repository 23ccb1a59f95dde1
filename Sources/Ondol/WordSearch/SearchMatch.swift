// What a search gives: documents, why they were found, and where in their texts.

internal import OndolEngine

/// What a word or phrase of a search adds to a document's score.
public struct SearchTermScore: Sendable, Hashable {
  /// The word as it was asked for, or the text it is a part of.
  public let text: String
  /// How often the document has it, weighted by field and set off against the fields' lengths.
  public let frequency: Double
  /// Documents that have it.
  public let documents: Int
  /// What it adds.
  public let score: Double
}

/// A word that a search may go on with.
public struct SearchSuggestion: Sendable, Hashable {
  /// The word as it is in the index: without case, accents and width; in an index of English words
  /// its stem, in one of an app's own tokenizer the term.
  public let term: String
  /// Documents that have it, about: those that were changed count until upkeep has seen to them.
  public let documents: Int
}

/// A part of a text, with what was looked for.
public struct SearchSnippet: Sendable, Hashable {
  /// The part.
  public let text: String
  /// Where in it is what was looked for.
  public let ranges: [Range<String.Index>]
  /// Whether something is left out in front of it.
  public let isCutInFront: Bool
  /// Whether something is left out behind it.
  public let isCutBehind: Bool
}

/// A document that a search has found.
public struct SearchMatch: Sendable {
  /// The document.
  public let document: DocumentSnapshot
  /// How well it fits: the greater, the better. Scores of different searches cannot be compared.
  public let score: Double
  /// What the words add to the score, each for itself. Where words are excluded or a word stands
  /// for several parts, this is what it consists of.
  public let terms: [SearchTermScore]
  let search: ParsedSearch
  let tokenizer: Tokenizer

  /// Where in a field's text is what was looked for, in order. Empty when it is not in this field,
  /// or the field is no text or was not selected.
  ///
  /// - Complexity: O(n) in the text.
  public func ranges(in field: FieldPath) -> [Range<String.Index>] {
    guard let text = text(of: field) else { return [] }
    return search.ranges(in: text, tokenizer).map { range in
      text.utf8Index(range.lowerBound)..<text.utf8Index(range.upperBound)
    }
  }

  /// The part of a field's text that shows most of what was looked for. Empty when the field is no
  /// text.
  ///
  /// - Parameters:
  ///   - field: a field, or a path into maps.
  ///   - length: characters of the part, at most.
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
  /// The place behind so many bytes.
  fileprivate func utf8Index(_ offset: Int) -> Index {
    utf8.index(utf8.startIndex, offsetBy: offset, limitedBy: utf8.endIndex) ?? endIndex
  }
}
