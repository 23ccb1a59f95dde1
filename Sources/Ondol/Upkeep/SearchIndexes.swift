// The public interface of word indexes.

internal import OndolEngine

extension IndexKind {
  /// An index of the words in some fields.
  fileprivate init(
    searching fields: [String], _ weights: [String: Double], _ tokenizer: TokenizerName,
    at path: String
  ) throws(DatabaseError) {
    var indexed: [IndexField] = []
    for field in fields { indexed.append(IndexField(try FieldPath(field).names())) }
    guard !indexed.isEmpty, indexed.count <= FreshRow.mostFields,
      Set(indexed.map(\.path)).count == indexed.count
    else {
      throw DatabaseError(
        .invalidArgument,
        "an index of words needs one to \(FreshRow.mostFields) fields, each once", path: path)
    }
    self.init(indexed)
    var counts = [Int](repeating: 1_000, count: indexed.count)
    for (field, weight) in weights {
      let names = try FieldPath(field).names()
      guard let place = indexed.firstIndex(of: IndexField(names)) else {
        throw DatabaseError(
          .invalidArgument, "the weight is of a field that the index does not have", path: path,
          field: field)
      }
      let limit = Double(SearchKind.greatestWeight)
      guard weight * 1_000 >= 1, weight * 1_000 <= limit else {
        throw DatabaseError(
          .invalidArgument, "a weight is from 0.001 to 1000, and not \(weight)", path: path,
          field: field)
      }
      counts[place] = Int((weight * 1_000).rounded())
    }
    search = SearchKind(tokenizer: tokenizer, weights: counts)
  }
}

extension CollectionReference {
  /// Creates an index of the words in fields with texts, and returns when it is ready. Serves
  /// `search(_:in:)`. Documents can be written as usual while it is built. Does nothing when the
  /// index exists.
  ///
  /// The next search finds what a commit wrote, and so does a search in the transaction that writes
  /// it. A write costs one additional row, whatever the number of words. Written documents are
  /// gathered in the background.
  ///
  /// - Parameters:
  ///   - fields: fields or paths into maps, each once, at most 32. Values that are not texts are
  ///     not found.
  ///   - weights: how much a word in a field counts, from 0.001 to 1000; by default 1.
  ///   - tokenization: how words are made from the texts. The same fields may have indexes of
  ///     several kinds; see `SearchQuery` for the one that serves a search.
  ///   - progress: called each time some documents were added.
  /// - Returns: the index's name, which `listIndexes()` shows and `dropIndex(named:)` takes.
  /// - Throws: `.invalidArgument` for an invalid field or weight, or when `Options.tokenizers` has
  ///   no tokenizer with the name; otherwise as
  ///   `createIndex(on:unique:nullsDistinct:where:progress:)`.
  /// - Complexity: O(n log n) in the words of all documents of the collections it serves.
  @discardableResult
  public func createSearchIndex(
    on fields: [String], weights: [String: Double] = [:],
    tokenization: SearchTokenization = .plain, progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> String {
    let path = try place.get()
    try database.refuseInTransaction("createSearchIndex", "\(path)")
    let kind = try IndexKind(
      searching: fields, weights, database.tokenizerName(tokenization), at: "\(path)")
    try await database.createIndex(kind, of: CollectionPattern(path), progress)
    return kind.name
  }
}

extension CollectionGroup {
  /// Creates an index of the words in fields with texts over all collections of the group, and
  /// returns when it is ready. Serves searches of the group.
  ///
  /// - Parameters:
  ///   - fields: as for a collection.
  ///   - weights: as for a collection.
  ///   - tokenization: as for a collection.
  ///   - progress: called each time some documents were added, for one collection after the other.
  /// - Returns: the index's name.
  /// - Throws: as `CollectionReference.createSearchIndex(on:weights:tokenization:progress:)`.
  /// - Complexity: O(n log n) in the words of all documents of the group.
  @discardableResult
  public func createSearchIndex(
    on fields: [String], weights: [String: Double] = [:],
    tokenization: SearchTokenization = .plain, progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> String {
    _ = try source.get()
    try database.refuseInTransaction("createSearchIndex", collectionID)
    return try await createGroup(
      try IndexKind(
        searching: fields, weights, database.tokenizerName(tokenization), at: collectionID),
      progress)
  }
}

extension Database {
  /// The catalog's name of a tokenization.
  fileprivate func tokenizerName(
    _ tokenization: SearchTokenization
  ) throws(DatabaseError) -> TokenizerName {
    switch tokenization {
    case .plain: return .plain
    case .english: return .english
    case .custom(let name):
      let versions = options.tokenizers.filter { $0.name.compareBytes(name) == 0 }.map(\.version)
      guard let newest = versions.max() else {
        throw DatabaseError(
          .invalidArgument, "the database was opened without a tokenizer '\(name)'",
          suggestion: "pass it in Options.tokenizers")
      }
      return .own(name, version: newest)
    }
  }

  /// Gathers all remaining documents of a word index, and merges its runs into one; for tests and
  /// benchmarks, which compare the state after all upkeep.
  package func gatherSearchIndexes(of path: String) async throws(DatabaseError) {
    let pattern = CollectionPattern(try collection(path).place.get())
    let entry = try await family(pattern.root)?.collections[pattern]
    for index in entry?.searches ?? [] {
      try await SearchPacker(database: self, pattern: pattern, keyspace: index.keyspace)
        .gatherEverything()
    }
  }
  /// Gathers what is due in a word index, as upkeep would; for benchmarks that include this work.
  package func settleSearchIndexes(of path: String) async throws(DatabaseError) {
    let pattern = CollectionPattern(try collection(path).place.get())
    let entry = try await family(pattern.root)?.collections[pattern]
    for index in entry?.searches ?? [] {
      try await SearchPacker(database: self, pattern: pattern, keyspace: index.keyspace).gather()
    }
  }
}
