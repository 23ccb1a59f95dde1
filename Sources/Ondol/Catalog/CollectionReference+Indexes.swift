// The public side of indexes. An index belongs to all collections of one pattern: one created on
// `workInfo/u1/workHistory` serves every user's `workHistory`.

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

  /// The fields with `-` before the descending ones, separated by commas.
  public let name: String
  /// The fields, with `-` before the descending ones.
  public let fields: [String]
  /// Whether it serves queries yet.
  public let state: State
  /// Rows in the index, over all collections it serves.
  public let entries: Int
  /// Bytes of those rows, before compression.
  public let sizeBytes: Int

  /// The name.
  public var id: String { name }
}

extension CollectionReference {
  /// Creates an index on the fields, in this order, and returns when it is ready; `-` before a
  /// field means descending. Serves queries that compare its first fields with `==` or `in`, the
  /// next with a range, or sort by them. Documents are written as usual while it is built. Does
  /// nothing when there is one.
  ///
  /// The index serves this collection and those with the same names below other documents.
  ///
  /// - Returns: the index's name.
  /// - Throws: `.invalidArgument` when a field is no path or there is none, `.resourceExhausted`
  ///   when there are too many collections and indexes below one root, `.cancelled` when the task
  ///   was cancelled; then the index goes on being built when the database is opened, or when it is
  ///   created again.
  /// - Complexity: O(n log n) in the documents of all collections it serves.
  @discardableResult
  public func createIndex(on fields: [String]) async throws(DatabaseError) -> String {
    let path = try place.get()
    let pattern = CollectionPattern(path)
    var indexFields: [IndexField] = []
    for text in fields {
      indexFields.append(try IndexField(text: text))
    }
    guard !indexFields.isEmpty, Set(indexFields.map(\.path)).count == indexFields.count else {
      throw DatabaseError(
        .invalidArgument, "an index needs one field or more, each once", path: "\(path)")
    }
    let index = try await database.changeCatalog(of: pattern.root) { (edit) throws(DatabaseError) in
      try edit.declareIndex(on: indexFields, of: pattern)
    }
    let builder = IndexBuilder(database: database, pattern: pattern, keyspace: index.keyspace)
    try await builder.build()
    return index.name
  }

  /// The indexes that serve this collection.
  ///
  /// - Complexity: O(rows of the indexes), because they are counted.
  public func listIndexes() async throws(DatabaseError) -> [IndexInformation] {
    try await information(CollectionPattern(try place.get()))
  }

  @concurrent
  private func information(
    _ pattern: CollectionPattern
  ) async throws(DatabaseError) -> [IndexInformation] {
    let snapshot = try database.engineSnapshot()
    let family = try await database.catalog.family(pattern.root, at: snapshot)
    var list: [IndexInformation] = []
    for index in family?.collections[pattern]?.indexes ?? [] {
      let prefix = index.keyspace.prefix
      let range = KeyRange(lower: prefix, upper: prefix + [KeyCoding.afterAll])
      var walk = RangeWalk(snapshot, [range])
      var entries = 0
      var bytes = 0
      while try walk.next() {
        entries += 1
        bytes += walk.cursor.key.byteCount
      }
      list.append(
        IndexInformation(
          name: index.name, fields: index.fields.map(\.description),
          state: index.state == .ready ? .ready : .building, entries: entries, sizeBytes: bytes))
    }
    return list
  }
}

extension CatalogEdit {
  /// The index on exactly these fields, declared when there is none.
  mutating func declareIndex(
    on fields: [IndexField], of pattern: CollectionPattern
  ) throws(DatabaseError) -> IndexDefinition {
    let entry = try collection(pattern)
    let kind = IndexKind(fields)
    if let known = entry.indexes.first(where: { $0.kind == kind }) { return known }
    let index = IndexDefinition(
      keyspace: try takeKeyspace(), documents: entry.keyspace, kind: kind,
      state: .building(through: nil))
    put(index, in: pattern)
    return index
  }
}
