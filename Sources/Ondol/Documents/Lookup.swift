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
    return try await find(try database.engineSnapshot())
  }

  @concurrent
  private func find(_ snapshot: Snapshot) async throws(DatabaseError) -> QuerySnapshot {
    try await query.database.read(snapshot) { [self] (rows) throws(DatabaseError) in
      try find(in: rows)
    }
  }

  func find(in rows: Rows) throws(DatabaseError) -> QuerySnapshot {
    var executor = try Executor(try query.shape.get(), in: query.database, rows)
    let found = try complete(&executor)
    return QuerySnapshot(query: query, documents: found.documents, unreadable: found.unreadable)
  }

  /// The documents with their fields added, all that they refer to, and what could not be upgraded
  /// of either.
  func complete(
    _ executor: inout Executor
  ) throws(DatabaseError) -> CompletedDocuments {
    var found = CompletedDocuments(documents: try executor.documents())
    var unreadable = Set(executor.unreadable)
    for step in try steps.get() {
      found.referred.formUnion(step.paths(in: found.documents))
      let (documents, left) = try step.complete(found.documents, from: executor.rows)
      found.documents = documents
      for path in left {
        unreadable.insert(DocumentReference(database: query.database, place: .success(path)))
      }
    }
    found.unreadable = unreadable.sorted { ValueOrder.compare($0.path, $1.path) < 0 }
    return found
  }
}

/// Documents with fields added from others.
struct CompletedDocuments {
  var documents: [DocumentSnapshot]
  /// All that they refer to.
  var referred: Set<DocumentPath> = []
  var unreadable: [DocumentReference] = []
}

/// One field to be added.
struct LookupStep: Sendable, Hashable {
  /// Where the references are.
  var field: FieldNames
  /// Where ids are looked up.
  var collection: CollectionPath
  /// The field to be added.
  var name: String

  /// The documents with the field added, and what they refer to that could not be upgraded.
  func complete(
    _ documents: [DocumentSnapshot], from rows: Rows
  ) throws(DatabaseError) -> (documents: [DocumentSnapshot], unreadable: [DocumentPath]) {
    let reader = DocumentReader(rows: rows)
    var found: [DocumentPath: Value] = [:]
    var unreadable: [DocumentPath] = []
    for path in paths(in: documents).sorted() {
      do throws(DatabaseError) {
        if let contents = try reader.contents(of: path) { found[path] = .map(contents.fields) }
      } catch {
        guard error.isUnreadable else { throw error }
        unreadable.append(path)
      }
    }
    let results = documents.map { document in
      guard let contents = document.contents, let value = contents.value(at: field) else {
        return document
      }
      var fields = contents.fields
      fields[name] = completed(value, found)
      return DocumentSnapshot(
        reference: document.reference,
        contents: DocumentSnapshot.Contents(stamps: contents.stamps, fields: fields))
    }
    return (results, unreadable)
  }

  /// What the documents refer to.
  func paths(in documents: [DocumentSnapshot]) -> Set<DocumentPath> {
    var wanted: Set<DocumentPath> = []
    for document in documents {
      for path in paths(in: document.contents?.value(at: field)) { wanted.insert(path) }
    }
    return wanted
  }

  private func paths(in value: Value?) -> [DocumentPath] {
    if case .array(let elements) = value { return elements.compactMap { path($0) } }
    return value.flatMap { path($0) }.map { [$0] } ?? []
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
  private func completed(_ value: Value, _ found: [DocumentPath: Value]) -> Value {
    if case .array(let elements) = value {
      return .array(elements.map { path($0).flatMap { found[$0] } ?? .null })
    }
    return path(value).flatMap { found[$0] } ?? .null
  }
}

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
