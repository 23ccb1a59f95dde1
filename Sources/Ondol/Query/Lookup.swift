// Joins: a query whose results are completed with the documents they refer to. The referenced
// documents are read from the query's own snapshot, each once however many results refer to it, and
// in the order of their keys, so that neighbours share blocks. After the read path's last stage.

internal import OndolEngine

/// A query with fields to be added from other documents.
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

  /// A query with one field to be added, which need not be one that apps can name.
  init(query: Query, _ step: Result<LookupStep, DatabaseError>) {
    self.query = query
    steps = step.map { [$0] }
  }

  /// Adds another field, also from a field that a lookup before has added.
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

  /// The documents the query finds, completed; all as of one moment.
  ///
  /// - Throws: `.invalidArgument` when a field, collection or name is wrong; otherwise as
  ///   `QuerySource.getDocuments()`.
  /// - Complexity: the query's, and one lookup for each different document referred to.
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
    // A field that is added may stand in the place of one that the result is ordered by.
    let end = try executor.end(of: found, keepsKeys: true)
    let completed = try complete(found, executor.rows)
    return QuerySnapshot(
      query: query, documents: completed.documents, end,
      unreadable: executor.unreadable.adding(completed.unreadable, in: query.database))
  }

  /// The documents with their fields added, what they refer to, and what of that could not be
  /// upgraded.
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
  /// Those that they refer to and that could not be upgraded: they count as not there.
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
  /// The field to be added.
  var name: String

  /// The document with the field added, from documents that were found.
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
      contents: DocumentSnapshot.Contents(stamps: contents.stamps, fields: fields))
  }

  /// What the document refers to.
  func paths(in document: DocumentSnapshot) -> [DocumentPath] {
    references(in: document).compactMap(\.self)
  }

  /// What each element of the field refers to, or the field itself; nil where that is nothing.
  func references(in document: DocumentSnapshot) -> [DocumentPath?] {
    guard let value = document.contents?.value(at: field) else { return [] }
    if case .array(let elements) = value { return elements.map { path($0) } }
    return [path(value)]
  }

  /// The document a value refers to; nil when it refers to none.
  private func path(_ value: Value) -> DocumentPath? {
    switch value {
    case .reference(let path): path
    case .string(let id): try? collection.document(id)
    default: nil
    }
  }

  /// What the added field holds: one document, or one for each element of an array; null where
  /// there is none.
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

/// What documents that results refer to hold, as maps; nil where there is none.
typealias ReferredDocuments = [DocumentPath: Value?]

extension QuerySource {
  /// Adds to each result the document that one of its fields refers to: as a map in the field
  /// `name`, or null when there is no such document. The field may hold an id in `collection`, a
  /// reference to a document anywhere, or an array of those, which becomes an array of maps. A
  /// result without the field is left as it is.
  ///
  /// What is stored does not change, and filters do not see the added fields. Firestore has no
  /// joins outside of its pipelines.
  ///
  /// - Parameters:
  ///   - field: a field or a path into maps, also one that an earlier lookup has added.
  ///   - collection: the path of the collection where ids are looked up.
  ///   - name: the field that is added, in the place of one that is there.
  public func lookup(_ field: FieldPath, in collection: String, as name: String) -> LookupQuery {
    LookupQuery(query: query).lookup(field, in: collection, as: name)
  }
}

extension DatabaseSnapshot {
  /// The documents the query finds in this snapshot, completed.
  ///
  /// - Throws: as `LookupQuery.getDocuments()`.
  public func getDocuments(_ lookup: LookupQuery) throws(DatabaseError) -> QuerySnapshot {
    try lookup.find(in: try rows(for: lookup.query.database, ""))
  }
}
