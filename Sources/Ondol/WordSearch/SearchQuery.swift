// The public search: a query and the words that its documents must have. Like a query, it is a
// value.

internal import OndolEngine

/// How several words of a search are combined.
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
/// The text is what people type. Words are alternatives whose scores add up. `"…"` is a phrase and
/// `온돌*` a prefix. `+` before a word requires it, `-` or `NOT` excludes it, and `NEAR(a b, 5)`
/// requires words within five of each other. Case, accents and width are ignored. Texts in Hangul,
/// Han and Kana match by two or more characters, anywhere in a word.
///
/// Of several indexes that have all the fields, the one with the fewest fields serves the search,
/// and among those the oldest.
///
/// The result is in the order of scores (BM25), unless the query has an order of its own. Scores
/// depend on how many documents of the collection have a word. Changed and deleted documents count
/// until upkeep has removed their old entries.
public struct SearchQuery: Sendable {
  /// Where a page begins.
  struct Start: Sendable {
    var score: Double
    var tail: [UInt8]
  }

  /// The query with all other conditions.
  public let query: Query
  /// The text to search for.
  public let text: String
  /// How several words are combined.
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
        throw DatabaseError(.invalidArgument, "a search needs a field to search")
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

  /// Begins after a match of the same search, to read the next page in the order of scores. A write
  /// between two pages may change scores. In that case a document may come twice or not at all.
  ///
  /// - Parameter match: a match on the previous page.
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

  /// The documents found, all as of now: the best first, or in the query's order.
  ///
  /// - Throws: `.failedPrecondition` when there is no index of the words in these fields or it is
  ///   still being built, or when its tokenizer is not among `Options.tokenizers`;
  ///   `.invalidArgument` when a field, the query or its order is invalid; `.resourceExhausted`
  ///   when more than 1,024 words have the requested prefix; otherwise as
  ///   `QuerySource.getDocuments()`.
  /// - Complexity: O(postings of the words), and a lookup for each document of the result and for
  ///   each that is skipped. In the order of fields, a lookup for each document with the words.
  public func getMatches() async throws(DatabaseError) -> [SearchMatch] {
    try query.database.refuseReadInTransaction()
    return try await query.database.query(mayBeShort: false) {
      [self] (rows) throws(DatabaseError) in
      try matches(in: rows)
    }
  }

  /// The number of documents found, regardless of the limit.
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

  /// The matches, and the tokenizer by which they were found.
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
  ///   - text: as people type it; see `SearchQuery`. A text without a word finds nothing.
  ///   - fields: fields with texts, or paths to them. One index made by `createSearchIndex(on:)`
  ///     must have all of them.
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
  ///   - fields: at least one; with none, the call that uses the search throws `.invalidArgument`.
  ///   - matching: whether documents need one of the words or all.
  public func search(
    _ text: String, in fields: [FieldPath], matching: SearchMatching = .any
  ) -> SearchQuery {
    SearchQuery(query, text, fields, matching)
  }

  /// Words in documents of the collection that begin with the last word of the text, those in most
  /// documents first. In scripts that are searched by pairs of characters, it returns the pairs.
  ///
  /// - Parameters:
  ///   - text: the text typed so far.
  ///   - field: a field with an index of its words.
  ///   - limit: the most words to return.
  /// - Throws: as `SearchQuery.getMatches()`.
  /// - Complexity: O(words with the prefix, and documents that are not in a run yet).
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
  /// The documents that a search finds, as of this snapshot.
  ///
  /// - Throws: as `SearchQuery.getMatches()`.
  /// - Complexity: as `SearchQuery.getMatches()`.
  public func getMatches(_ search: SearchQuery) throws(DatabaseError) -> [SearchMatch] {
    try search.matches(in: rows(for: search.query.database, ""))
  }
}
