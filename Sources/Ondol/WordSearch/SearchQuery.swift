// The public search: a query and the words that its documents must have. A value, as a query is.

internal import OndolEngine

/// What several words of a search mean together.
public enum SearchMatching: Sendable, Hashable {
  /// A document needs one of them, and those with more of them come first.
  case any
  /// A document needs all of them.
  case all
}

/// The documents of a query that have words in their texts.
///
/// ```swift
/// let notes = database.collection("notes")
/// try await notes.createSearchIndex(on: ["title", "body"])
/// let found = try await notes.whereField("owner", isEqualTo: "mina")
///   .search("온돌 방", in: "body").getMatches()
/// for match in found { print(match.score, match.snippet(of: "body").text) }
/// ```
///
/// The text is what people type: words are alternatives that add up, `"…"` is a phrase, `온돌*` a
/// beginning, `+` in front of a word demands it and `-` or `NOT` excludes it, and `NEAR(a b, 5)`
/// wants words within five of each other. Case, accents and width do not count. Texts in Hangul,
/// Han and Kana are found by two characters and more, wherever they are in a word.
///
/// Of several indexes that have all the fields, the one with the fewest serves the search, and of
/// those the one that was made first.
///
/// The result is in the order of scores (BM25), unless the query has an order of its own. Scores
/// depend on how many documents of the collection have a word; documents that were changed or
/// deleted count there until upkeep has removed what they left.
public struct SearchQuery: Sendable {
  /// Where a page begins.
  struct Start: Sendable {
    var score: Double
    var tail: [UInt8]
  }

  /// The query with all other conditions.
  public let query: Query
  /// What is looked for.
  public let text: String
  /// What several words mean together.
  public let matching: SearchMatching
  private let paths: Result<[FieldNames], DatabaseError>
  private(set) var start: Start?

  var fields: [FieldNames] { if case .success(let fields) = paths { fields } else { [] } }

  fileprivate init(
    _ query: Query, _ text: String, _ fields: [FieldPath], _ matching: SearchMatching
  ) {
    self.query = query
    self.text = text
    self.matching = matching
    paths = Result { () throws(DatabaseError) in
      guard !fields.isEmpty else {
        throw DatabaseError(.invalidArgument, "a search needs a field to look in")
      }
      var names: [FieldNames] = []
      for field in fields { names.append(try field.names()) }
      return names
    }
  }

  /// The query's shape, if it can be searched.
  func shape() throws(DatabaseError) -> QueryShape {
    _ = try paths.get()
    let shape = try query.shape.get()
    guard shape.orders.isEmpty else { return shape }
    guard shape.start == nil, shape.end == nil, !shape.isLimitToLast else {
      throw DatabaseError(
        .invalidArgument,
        "a result in the order of scores begins with start(after:) of a match, and is limited from"
          + " its beginning; order(by:) has all other places")
    }
    return shape
  }

  /// Begins behind a match of the same search: how pages in the order of scores follow each other.
  /// A write between two pages may change scores, and then a document may come twice or not.
  ///
  /// - Parameter match: one of the page before.
  public func start(after match: SearchMatch) -> SearchQuery {
    var copy = self
    guard let path = try? match.document.reference.place.get() else { return copy }
    var writer = KeyWriter([])
    for place in stride(from: 1, to: path.segments.count, by: 2) {
      writer.append(id: path.segments[place])
    }
    copy.start = Start(score: match.score, tail: writer.bytes)
    return copy
  }

  /// The documents found, all as they are now: the best first, or in the query's order.
  ///
  /// - Throws: `.failedPrecondition` when there is no index of the words in these fields or it is
  ///   being built, or when its tokenizer is not among `Options.tokenizers`; `.invalidArgument`
  ///   when a field, the query or its order cannot be;
  ///   `.resourceExhausted` when more than 1,024 words have the beginning asked for; otherwise as
  ///   `QuerySource.getDocuments()`.
  /// - Complexity: O(postings of the words), and a lookup for each document of the result and for
  ///   each that is passed over. In the order of fields, a lookup for each document with the words.
  public func getMatches() async throws(DatabaseError) -> [SearchMatch] {
    try query.database.refuseReadInTransaction()
    return try await query.database.query(mayBeShort: false) {
      [self] (rows) throws(DatabaseError) in
      try matches(in: rows)
    }
  }

  /// The number of documents found, whatever the limit.
  ///
  /// - Throws: as `getMatches()`.
  /// - Complexity: O(postings of the words), and a lookup for each document.
  public func count() async throws(DatabaseError) -> Int {
    try query.database.refuseReadInTransaction()
    return try await query.database.query(mayBeShort: false) {
      [self] (rows) throws(DatabaseError) in
      var executor = try SearchExecutor(self, rows)
      return try executor.count()
    }
  }

  func matches(in rows: Rows) throws(DatabaseError) -> [SearchMatch] {
    try matchesAndTokenizer(in: rows).matches
  }

  /// What is found, and what the words it was found by are made with.
  func matchesAndTokenizer(
    in rows: Rows
  ) throws(DatabaseError) -> (matches: [SearchMatch], tokenizer: Tokenizer) {
    var executor = try SearchExecutor(self, rows)
    return (try executor.matches(), executor.tokenizer)
  }
}

extension QuerySource {
  /// The documents that have the words, among those that meet all conditions so far.
  ///
  /// - Parameters:
  ///   - text: as people type it; see `SearchQuery`. Of a text without a word nothing is found.
  ///   - fields: fields of texts, or paths to them, that one index made by
  ///     `createSearchIndex(on:)` has all of.
  ///   - matching: whether documents need one of the words or all.
  public func search(
    _ text: String, in fields: FieldPath..., matching: SearchMatching = .any
  ) -> SearchQuery {
    SearchQuery(query, text, fields, matching)
  }

  /// The documents that have the words in any of a list of fields; see `search(_:in:matching:)`.
  ///
  /// - Parameters:
  ///   - text: as people type it.
  ///   - fields: at least one; otherwise the call throws `.invalidArgument` that uses the search.
  ///   - matching: whether documents need one of the words or all.
  public func search(
    _ text: String, in fields: [FieldPath], matching: SearchMatching = .any
  ) -> SearchQuery {
    SearchQuery(query, text, fields, matching)
  }

  /// Words that are in documents of the collection and begin as the last word of the text does,
  /// those in most documents first. In scripts that are searched by pairs of characters, the pairs.
  ///
  /// - Parameters:
  ///   - text: what was typed so far.
  ///   - field: a field with an index of its words.
  ///   - limit: at most so many.
  /// - Throws: as `SearchQuery.getMatches()`.
  /// - Complexity: O(words with the beginning, and documents that are not gathered yet).
  public func searchSuggestions(
    for text: String, in field: FieldPath, limit: Int = 10
  ) async throws(DatabaseError) -> [SearchSuggestion] {
    let search = query.search("", in: field)
    try query.database.refuseReadInTransaction()
    return try await query.database.query(mayBeShort: false) { (rows) throws(DatabaseError) in
      try SearchExecutor(search, rows).suggestions(for: text, limit: limit)
    }
  }
}

extension DatabaseSnapshot {
  /// The documents that a search finds, as they were at this moment.
  ///
  /// - Throws: as `SearchQuery.getMatches()`.
  /// - Complexity: as `SearchQuery.getMatches()`.
  public func getMatches(_ search: SearchQuery) throws(DatabaseError) -> [SearchMatch] {
    try search.matches(in: rows(for: search.query.database, ""))
  }
}
