// The public interface of indexes. An index belongs to all collections of one pattern: one created
// on `workInfo/u1/workHistory` serves every user's `workHistory`.

internal import OndolEngine

/// An index, as `listIndexes()` shows it.
public struct IndexInformation: Sendable, Hashable, Identifiable {
  /// Whether an index serves queries yet.
  public enum State: Sendable, Hashable {
    /// Documents older than the index are being added.
    case building
    /// Every document is in it.
    case ready
  }

  /// The fields with `-` before the descending ones, separated by commas, and its special
  /// properties. `dropIndex(named:)` takes this name.
  public let name: String
  /// The fields, with `-` before the descending ones and `[]` after one of elements, as
  /// `createIndex(on:)` takes them.
  public let fields: [String]
  /// Whether no two documents of a collection may have the same values in the fields.
  public let isUnique: Bool
  /// Whether documents of a unique index may agree when one of the fields is null. False for an
  /// index that is not unique.
  public let nullsDistinct: Bool
  /// Whether it is an index of the words in the fields' texts, which serves searches.
  public let isSearch: Bool
  /// Whether it serves queries yet.
  public let state: State
  /// The progress of its build, by a call or in the background after the database was opened; nil
  /// when the build has not begun, or when the index is ready.
  public let progress: IndexProgress?
  /// Rows in the index, or documents in a word index, over all collections it serves: exact up to a
  /// thousand for each collection id, otherwise an estimate. The estimate includes old versions of
  /// changed and deleted rows until compaction has removed them.
  public let entries: Int
  /// Bytes of those rows, before compression: exact when `entries` is, otherwise an estimate.
  public let sizeBytes: Int

  /// The name.
  public var id: String { name }
}

extension CollectionReference {
  /// Creates an index on the fields, in this order, and returns when it is ready. The index serves
  /// queries that compare its first fields with `==` or `in` and the next one with a range, or that
  /// sort by them. Documents can be written as usual while it is built. Does nothing when the index
  /// exists.
  ///
  /// ```swift
  /// try await items.createIndex(on: ["status", "-date"])
  /// try await items.createIndex(on: ["tags[]", "-date"])
  /// ```
  ///
  /// The second one serves queries for the newest items with a tag: `tags[]` means the elements of
  /// an array, for conditions with `arrayContains` and `arrayContainsAny`.
  ///
  /// The index serves this collection and those with the same names below other documents. A
  /// document without its first field has no row in it. Firestore makes indexes of one field
  /// automatically and refuses queries that need others. Here no index is made unless you ask for
  /// it or set `Options.automaticIndexes`, and no query is refused. Firestore has no unique and no
  /// partial indexes.
  ///
  /// - Parameters:
  ///   - fields: fields or paths into maps, each once. `-` before a field means descending, and
  ///     `[]` after one of them means the elements of the array in it. `name~folded` compares
  ///     texts, as `IndexedField` does in words. A query may also sort in the opposite direction of
  ///     all of them. Documents with the same values in all fields are in the order of their ids,
  ///     in the direction of the last field, or of a final `__name__` or `-__name__`. An index with
  ///     elements serves queries that ask for one of them, and has a row for each. A document
  ///     without an array there, or with an empty one, has no row.
  ///   - unique: refuses a write that would give two documents of a collection the same values in
  ///     all fields, with `.alreadyExists` naming the document that has the values. Documents that
  ///     lack one of the fields may agree.
  ///   - nullsDistinct: of a unique index, whether documents with null in one of the fields may
  ///     also agree, as in SQL; if false, null is a value like any other. The two are different
  ///     indexes.
  ///   - condition: only documents that meet it are in the index, which serves queries whose
  ///     conditions imply it. A unique index is unique among them.
  ///   - progress: called each time some documents were added.
  /// - Returns: the index's name.
  /// - Throws: `.invalidArgument` when no query could use the index: when a field is not a path or
  ///   there is none, when several fields are of elements or one is in a unique index, or when no
  ///   document can meet the condition; also when the condition compares times, ids or long values;
  ///   `.alreadyExists` when it is unique and two documents have the same values;
  ///   `.resourceExhausted` when there are too many collections and indexes below one root;
  ///   `.cancelled` when the task was cancelled. In that case the build continues when the database
  ///   is opened, or when the index is created again.
  /// - Complexity: O(n log n) in the documents of all collections it serves.
  @discardableResult
  public func createIndex(
    on fields: [String], unique: Bool = false, nullsDistinct: Bool = true,
    where condition: Filter? = nil, progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> String {
    let path = try place.get()
    try database.refuseInTransaction("createIndex", "\(path)")
    let kind = try IndexKind(
      validating: IndexKind(
        texts: fields, isUnique: unique, nullsDistinct: nullsDistinct, at: "\(path)"),
      condition)
    try await database.createIndex(kind, of: CollectionPattern(path), progress)
    return kind.name
  }

  /// Creates an index on the elements of a field that contains arrays, and returns when it is
  /// ready. Serves `arrayContains` and `arrayContainsAny`. Does nothing when the index exists. The
  /// same as `createIndex(on:)` with `[]` after the field.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps. A document in which it is not an array has no row.
  ///   - condition: only documents that meet it are in the index.
  ///   - progress: called each time some documents were added.
  /// - Returns: the index's name.
  /// - Throws: as `createIndex(on:unique:nullsDistinct:where:progress:)`.
  /// - Complexity: O(n log n) in the elements of all collections it serves.
  @discardableResult
  public func createIndex(
    onArray field: String, where condition: Filter? = nil,
    progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> String {
    let path = try place.get()
    try database.refuseInTransaction("createIndex", "\(path)")
    let kind = try IndexKind(
      validating: IndexKind([IndexField(FieldPath(field).names(), isOfElements: true)]), condition)
    try await database.createIndex(kind, of: CollectionPattern(path), progress)
    return kind.name
  }

  /// The indexes that serve this collection, with sizes that are approximate when they are large.
  /// None when the collection was never written.
  ///
  /// - Throws: `.invalidArgument` when the path is wrong, `.failedPrecondition` when the database
  ///   is closed.
  /// - Complexity: O(indexes), whatever their size: some rows of each are counted, the rest is
  ///   estimated.
  public func listIndexes() async throws(DatabaseError) -> [IndexInformation] {
    try await database.information([CollectionPattern(try place.get())]) { _ in true }
  }
}

extension CollectionGroup {
  /// Creates an index on the fields over all collections of the group, including future ones, and
  /// returns when it is ready. It serves queries of the group as a collection's index serves those
  /// of a collection.
  ///
  /// - Parameters:
  ///   - fields: as for an index of a collection.
  ///   - condition: only documents that meet it are in the index.
  ///   - progress: called each time some documents were added, for one collection after the other.
  /// - Returns: the index's name.
  /// - Throws: as `CollectionReference.createIndex(on:unique:nullsDistinct:where:progress:)`.
  /// - Complexity: O(n log n) in the documents of the group.
  @discardableResult
  public func createIndex(
    on fields: [String], where condition: Filter? = nil,
    progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> String {
    try await create(IndexKind(texts: fields, at: collectionID), condition, progress)
  }

  /// Creates an index on the elements of a field that contains arrays, over all collections of the
  /// group.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps.
  ///   - condition: only documents that meet it are in the index.
  ///   - progress: called each time some documents were added, for one collection after the other.
  /// - Returns: the index's name.
  /// - Throws: as `CollectionReference.createIndex(on:unique:nullsDistinct:where:progress:)`.
  /// - Complexity: O(n log n) in the elements of the group.
  @discardableResult
  public func createIndex(
    onArray field: String, where condition: Filter? = nil,
    progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> String {
    let fields = [IndexField(try FieldPath(field).names(), isOfElements: true)]
    return try await create(IndexKind(fields), condition, progress)
  }

  private func create(
    _ kind: IndexKind, _ condition: Filter?, _ progress: (IndexProgress) -> Void
  ) async throws(DatabaseError) -> String {
    _ = try source.get()
    try database.refuseInTransaction("createIndex", collectionID)
    var kind = kind
    kind.isOfGroup = true
    return try await createGroup(try IndexKind(validating: kind, condition), progress)
  }

  /// Declares an index of the group, if there is none, and builds it.
  func createGroup(
    _ kind: IndexKind, _ progress: (IndexProgress) -> Void
  ) async throws(DatabaseError) -> String {
    var valid = kind
    valid.isOfGroup = true
    let wanted = valid
    try await database.changeGroup(collectionID) { kinds in
      if !kinds.contains(wanted) { kinds.append(wanted) }
    }
    try await database.buildGroupIndex(valid, of: collectionID, progress)
    return valid.name
  }

  /// The indexes of the group, each over all its collections, with sizes that are approximate when
  /// they are large.
  ///
  /// - Throws: `.invalidArgument` when the id is wrong, `.failedPrecondition` when the database is
  ///   closed.
  /// - Complexity: O(indexes of all collections), whatever their size.
  public func listIndexes() async throws(DatabaseError) -> [IndexInformation] {
    _ = try source.get()
    let patterns = try await database.patterns(ofGroup: collectionID)
    return try await database.information(patterns) { $0.isOfGroup }
  }

  /// Drops an index of the group and frees its space. Does nothing when there is none with the
  /// name.
  ///
  /// - Parameter name: from `listIndexes()`.
  /// - Throws: `.invalidArgument` when the id is wrong; otherwise as a write.
  /// - Complexity: O(rows of the index).
  public func dropIndex(named name: String) async throws(DatabaseError) {
    _ = try source.get()
    try database.refuseInTransaction("dropIndex", collectionID)
    let wanted = ExactText(name)
    try await database.changeGroup(collectionID) { $0.removeAll { ExactText($0.name) == wanted } }
    for pattern in try await database.patterns(ofGroup: collectionID) {
      let family = try await database.family(pattern.root)
      for index in family?.collections[pattern]?.allIndexes ?? []
      where index.kind.isOfGroup && ExactText(index.name) == wanted {
        try await database.dropIndex(index.keyspace, of: pattern)
      }
    }
  }
}

// MARK: - Creating

extension IndexKind {
  /// Fields as an app writes them, perhaps followed by the direction of ids.
  fileprivate init(
    texts: [String], isUnique: Bool = false, nullsDistinct: Bool = true, at path: String
  ) throws(DatabaseError) {
    func refuse(_ reason: String) -> DatabaseError {
      DatabaseError(.invalidArgument, reason, path: path)
    }
    var texts = texts
    var idDescending: Bool?
    if let last = texts.last, ["__name__", "-__name__"].contains(exactly: last) {
      guard !isUnique else { throw refuse("a unique index does not end with documents' ids") }
      idDescending = last.utf8.first == UInt8(ascii: "-")
      texts.removeLast()
    }
    var fields: [IndexField] = []
    for text in texts { fields.append(try IndexField(text: text)) }
    guard !fields.isEmpty, Set(fields.map(\.path)).count == fields.count else {
      throw refuse("an index needs one field or more, each once")
    }
    guard fields.count(where: \.isOfElements) <= (isUnique ? 0 : 1) else {
      throw refuse(
        isUnique
          ? "the elements of arrays cannot be unique"
          : "an index can have the elements of one array only")
    }
    // A unique index must refuse two documents that differ only in ties.
    self.init(
      isUnique ? fields : fields.withTies, isUnique: isUnique, nullsDistinct: nullsDistinct)
    if let idDescending { opposesIDs = idDescending != self.idDescending }
  }

  /// The kind with a condition, if an index can have that condition.
  fileprivate init(validating kind: IndexKind, _ condition: Filter?) throws(DatabaseError) {
    self = kind
    guard let tree = try condition?.tree.get() else { return }
    guard !tree.matchesNothing else {
      throw DatabaseError(
        .invalidArgument, "no document can meet the condition, so no query could use the index")
    }
    for filter in tree.fieldFilters {
      guard filter.field != .documentID else {
        throw DatabaseError(
          .invalidArgument, "an index cannot depend on documents' ids; leave them to the query",
          field: "\(filter.field)")
      }
      guard filter.field.comparison == nil else {
        throw DatabaseError(
          .invalidArgument,
          "an index's condition compares texts by their bytes; leave the comparison to the query",
          field: "\(filter.field)")
      }
      // The time of a commit is not known when its index rows are made.
      guard !filter.condition.operands.contains(where: { $0.hasLeaf { $0.timestamp != nil } })
      else {
        throw DatabaseError(
          .invalidArgument, "an index cannot depend on a time; leave it to the query",
          field: "\(filter.field)")
      }
      for operand in filter.condition.operands {
        var writer = KeyWriter()
        guard !writer.append(operand) else {
          throw DatabaseError(
            .invalidArgument,
            "an index's condition compares values of \(KeyCoding.maximumComponentLength) bytes at"
              + " most", field: "\(filter.field)")
        }
      }
    }
    self.condition = tree
  }
}

extension Database {
  /// Declares an index, if there is none, and builds it.
  func createIndex(
    _ kind: IndexKind, of pattern: CollectionPattern, _ progress: (IndexProgress) -> Void
  ) async throws(DatabaseError) {
    while true {
      let index = try await changeCatalog(of: pattern.root) { (edit) throws(DatabaseError) in
        try edit.declareIndex(kind, of: pattern)
      }
      guard index.state != .ready else { return }
      if try await build(index, of: pattern, progress) { return }
      // It was dropped meanwhile, perhaps by another builder that found duplicates.
    }
  }

  /// Builds an index of any kind; false when the index no longer exists.
  private func build(
    _ index: IndexDefinition, of pattern: CollectionPattern, _ progress: (IndexProgress) -> Void
  ) async throws(DatabaseError) -> Bool {
    if index.kind.isOfWords {
      let packer = SearchPacker(database: self, pattern: pattern, keyspace: index.keyspace)
      return try await packer.build(progress)
    }
    let builder = IndexBuilder(database: self, pattern: pattern, keyspace: index.keyspace)
    return try await builder.build(progress)
  }

  /// The indexes of some patterns that are `wanted`, grouped by name.
  @concurrent
  fileprivate func information(
    _ patterns: [CollectionPattern], _ wanted: @escaping @Sendable (IndexKind) -> Bool
  ) async throws(DatabaseError) -> [IndexInformation] {
    try await read(try engineSnapshot()) { [builds] (rows) throws(DatabaseError) in
      let builds = builds.all
      var list: [IndexInformation] = []
      for pattern in patterns {
        let family = try rows.catalog.family(pattern.root, in: rows)
        let entry = family?.collections[pattern]
        for index in (entry?.indexes ?? []) + (entry?.searches ?? []) where wanted(index.kind) {
          var size = try rows.size(of: KeyRange(prefix: index.keyspace.prefix))
          // In a word index, a document is one entry, however many rows there are.
          if index.kind.isOfWords {
            let keys = index.searchKeys
            let places = KeyRange(lower: keys.place([]), upper: keys.state)
            size.rows = try rows.size(of: places).rows
          }
          let known = list.firstIndex { ExactText($0.name) == ExactText(index.name) }
          let information = IndexInformation(
            index, size, builds[index.keyspace], added: known.map { list[$0] })
          if let known { list[known] = information } else { list.append(information) }
        }
      }
      return list
    }
  }
}

extension IndexInformation {
  init(
    _ index: IndexDefinition, _ size: RangeSize, _ progress: IndexProgress?,
    added other: IndexInformation?
  ) {
    name = index.name
    fields = index.kind.texts
    isUnique = index.kind.isUnique
    nullsDistinct = index.kind.nullsDistinct
    isSearch = index.kind.isOfWords
    state = index.state == .ready && other?.state != .building ? .ready : .building
    self.progress = [progress, other?.progress].compactMap { $0 }.reduce(nil) { sum, part in
      IndexProgress(
        documents: part.documents + (sum?.documents ?? 0), total: part.total + (sum?.total ?? 0))
    }
    entries = size.rows + (other?.entries ?? 0)
    sizeBytes = size.bytes + (other?.sizeBytes ?? 0)
  }
}

extension CatalogEdit {
  /// The index of exactly this kind, declared when there is none.
  mutating func declareIndex(
    _ kind: IndexKind, of pattern: CollectionPattern
  ) throws(DatabaseError) -> IndexDefinition {
    let entry = try collection(pattern)
    if let known = entry.allIndexes.first(where: { $0.kind == kind }) { return known }
    let index = IndexDefinition(
      keyspace: try takeKeyspace(), documents: entry.keyspace, kind: kind,
      state: .building(through: nil))
    put(index, in: pattern)
    return index
  }
}
