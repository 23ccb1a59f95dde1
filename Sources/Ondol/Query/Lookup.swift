// Joins: a query whose results are completed with the documents they refer to. The referenced
// documents are read from the query's own snapshot, each once however many results refer to it, and
// in the order of their keys, so that neighbours share blocks. This comes after the read path's
// last stage.

internal import OndolEngine

/// A query whose results get fields from other documents.
///
/// ```swift
/// let posts = try await database.collection("posts").order(by: "date")
///   .lookup("userId", in: "users", as: "user").getDocuments()
/// posts.documents.first?.get("user.name") as String?
/// ```
public struct LookupQuery: Sendable {
  /// The query whose results are completed.
  public let query: Query
  private(set) var steps: Result<[LookupStep], DatabaseError>

  fileprivate init(query: Query) {
    self.query = query
    steps = .success([])
  }

  /// A query with one added field, whose name need not be available to apps.
  init(query: Query, _ step: Result<LookupStep, DatabaseError>) {
    self.query = query
    steps = step.map { [$0] }
  }

  /// Adds another field. Its references may be in a field that an earlier lookup has added.
  ///
  /// - Parameters:
  ///   - field: where the references or ids are.
  ///   - collection: the path of the collection where ids are looked up.
  ///   - name: the field that is added. See `QuerySource.lookup(_:in:as:)`.
  public func lookup(_ field: FieldPath, in collection: String, as name: String) -> LookupQuery {
    var copy = self
    copy.steps = steps.flatMap { steps in
      Result { () throws(DatabaseError) in
        if let problem = ResourceName.problem(withField: name) {
          throw DatabaseError(
            .invalidArgument, "\"\(name)\" cannot name a field: \(problem)", field: name)
        }
        return steps + [
          LookupStep(
            field: try field.names(), collection: try CollectionPath(collection), name: name)
        ]
      }
    }
    return copy
  }

  /// The documents that the query finds, completed; all as of one moment.
  ///
  /// - Throws: `.invalidArgument` when a field, collection or name is wrong; otherwise as
  ///   `QuerySource.getDocuments()`.
  /// - Complexity: the query's, and one lookup for each different referenced document.
  public func getDocuments() async throws(DatabaseError) -> QuerySnapshot {
    let database = query.database
    try database.refuseReadInTransaction()
    return try await find(try database.engineSnapshot())
  }

  @concurrent
  private func find(_ snapshot: Snapshot) async throws(DatabaseError) -> QuerySnapshot {
    try await query.database.read(snapshot, canBeCancelled: true) {
      [self] (rows) throws(DatabaseError) in
      try find(in: rows)
    }
  }

  func find(in rows: Rows) throws(DatabaseError) -> QuerySnapshot {
    var executor = try Executor(try query.shape.get(), in: query.database, rows)
    let found = try executor.documents()
    // An added field may replace one that the result is ordered by.
    let end = try executor.end(of: found, keepsKeys: true)
    let completed = try complete(found, executor.rows)
    return QuerySnapshot(
      query: query, documents: completed.documents, end,
      unreadable: executor.unreadable.adding(completed.unreadable, in: query.database))
  }

  /// The documents with their added fields, the documents they refer to, and those of them that
  /// could not be upgraded.
  func complete(
    _ documents: [DocumentSnapshot], _ rows: Rows
  ) throws(DatabaseError) -> CompletedDocuments {
    var found = CompletedDocuments(documents: documents)
    let reader = DocumentReader(rows: rows)
    for step in try steps.get() {
      var wanted: Set<DocumentPath> = []
      for document in found.documents { wanted.formUnion(step.paths(in: document)) }
      for path in wanted.sorted() where found.referred.index(forKey: path) == nil {
        try found.read(path, with: reader)
      }
      for index in found.documents.indices {
        found.documents[index] = try step.complete(found.documents[index], with: found.referred)
      }
    }
    return found
  }
}

/// Documents with fields added from others.
struct CompletedDocuments {
  var documents: [DocumentSnapshot]
  var referred: ReferredDocuments = [:]
  /// Referenced documents that could not be upgraded. They count as missing.
  var unreadable: Set<DocumentPath> = []

  fileprivate mutating func read(
    _ path: DocumentPath, with reader: DocumentReader
  ) throws(DatabaseError) {
    var contents: DocumentSnapshot.Contents?
    do throws(DatabaseError) {
      contents = try reader.contents(of: path)
    } catch {
      guard error.isUnreadable else { throw error }
      unreadable.insert(path)
    }
    referred.updateValue(contents.map { .map($0.fields) }, forKey: path)
  }
}

/// One field to be added.
struct LookupStep: Sendable, Hashable {
  /// Where the references are.
  var field: FieldNames
  /// Where ids are looked up.
  var collection: CollectionPath
  /// The name of the added field.
  var name: String

  /// The document with the added field, from the documents that were found.
  ///
  /// Throws `.invalidArgument` when the document has the field in another spelling.
  func complete(
    _ document: DocumentSnapshot, with found: ReferredDocuments
  ) throws(DatabaseError) -> DocumentSnapshot {
    guard let contents = document.contents, let value = contents.value(at: field) else {
      return document
    }
    var fields = contents.fields
    do throws(DatabaseError) {
      try fields.put(completed(value, found), at: name)
    } catch {
      throw error.at(path: document.reference.path)
    }
    return DocumentSnapshot(
      reference: document.reference,
      contents: DocumentSnapshot.Contents(stamps: contents.stamps, fields: fields)
    ).marked(as: document)
  }

  /// The paths that the document refers to.
  func paths(in document: DocumentSnapshot) -> [DocumentPath] {
    references(in: document).compactMap(\.self)
  }

  /// The path that each element of the field refers to, or that the field itself does; nil for a
  /// value that is not a reference.
  func references(in document: DocumentSnapshot) -> [DocumentPath?] {
    guard let value = document.contents?.value(at: field) else { return [] }
    if case .array(let elements) = value { return elements.map { path($0) } }
    return [path(value)]
  }

  /// The path that a value refers to; nil when it is not a reference.
  private func path(_ value: Value) -> DocumentPath? {
    switch value {
    case .reference(let path): path
    case .string(let id): try? collection.document(id)
    default: nil
    }
  }

  /// The value of the added field: one document, or one for each element of an array; null for a
  /// document that does not exist.
  private func completed(_ value: Value, _ found: ReferredDocuments) -> Value {
    if case .array(let elements) = value {
      return .array(elements.map { path($0).flatMap { found[$0] ?? nil } ?? .null })
    }
    return path(value).flatMap { found[$0] ?? nil } ?? .null
  }

  static func == (left: LookupStep, right: LookupStep) -> Bool {
    ValueOrder.compareSegments(left.field, right.field) == 0
      && left.collection == right.collection && isSame(left.name, right.name)
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(segments: field)
    hasher.combine(collection)
    hasher.combine(utf8: name)
  }
}

/// The referenced documents as maps; nil for one that does not exist.
typealias ReferredDocuments = [DocumentPath: Value?]

extension QuerySource {
  /// Adds to each result the document that one of its fields refers to, as a map in the field
  /// `name`. The map is null when there is no such document. The field may hold an id in
  /// `collection`, a reference to any document, or an array of those, which becomes an array of
  /// maps. A result without the field stays unchanged.
  ///
  /// Stored data does not change, and filters do not see the added fields. Firestore has joins only
  /// in its pipelines.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps; it may be one that an earlier lookup has added.
  ///   - collection: the path of the collection where ids are looked up.
  ///   - name: the field that is added. It replaces an existing field of that name.
  public func lookup(_ field: FieldPath, in collection: String, as name: String) -> LookupQuery {
    LookupQuery(query: query).lookup(field, in: collection, as: name)
  }
}

extension DatabaseSnapshot {
  /// The documents that the query finds in this snapshot, completed.
  ///
  /// - Throws: as `LookupQuery.getDocuments()`.
  public func getDocuments(_ lookup: LookupQuery) throws(DatabaseError) -> QuerySnapshot {
    try lookup.find(in: try rows(for: lookup.query.database, ""))
  }
}
