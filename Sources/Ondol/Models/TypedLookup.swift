// Joins of typed collections: the untyped lookup with a field that no document can have. The field
// is removed again and decoded with the type of the other collection.

internal import OndolEngine

/// A typed query whose results come with the documents that a property refers to.
///
/// ```swift
/// let orders = try await orders.lookup(\.customerID, in: customers).getDocuments()
/// for order in orders { print(order.document.total, order.found?.name ?? "nobody") }
/// ```
public struct TypedLookupQuery<Model: Codable & Sendable, Found: Sendable>: Sendable {
  /// The field that holds the found documents until they are decoded. Apps cannot use this name.
  fileprivate static var place: String { "__found__" }

  private let lookup: LookupQuery
  private let decoder: DocumentDecoder
  private let step: Result<LookupStep, DatabaseError>
  /// The documents found for one result, decoded.
  private let found: @Sendable ([DocumentSnapshot]) throws(DatabaseError) -> Found

  fileprivate init(
    _ typed: TypedQuery<Model>, _ field: Result<FieldPath, DatabaseError>, _ collection: String,
    _ found: @escaping @Sendable ([DocumentSnapshot]) throws(DatabaseError) -> Found
  ) {
    step = Result { () throws(DatabaseError) in
      LookupStep(
        field: try field.get().names(), collection: try CollectionPath(collection),
        name: Self.place)
    }
    lookup = LookupQuery(query: typed.query, step)
    decoder = typed.fields.decoder
    self.found = found
  }

  /// The documents that the query finds, with the documents they refer to; all as of one moment.
  ///
  /// - Throws: as `LookupQuery.getDocuments()`, and `.failedPrecondition` for the first document
  ///   that does not fit its type.
  /// - Complexity: as `LookupQuery.getDocuments()`.
  public func getDocuments() async throws(DatabaseError) -> [TypedLookupResult<Model, Found>] {
    var results: [TypedLookupResult<Model, Found>] = []
    for result in self.results(of: try await lookup.getDocuments()) {
      results.append(try result.get())
    }
    return results
  }

  /// The result, and every later state of it, including changes of the referenced documents. For
  /// each document it has both, or why one of them does not fit its type. See
  /// `LookupQuery.snapshots`.
  public var snapshots: Updates<[Result<TypedLookupResult<Model, Found>, DatabaseError>]> {
    lookup.snapshots.map { [self] in results(of: $0) }
  }

  private func results(
    of snapshot: QuerySnapshot
  ) -> [Result<TypedLookupResult<Model, Found>, DatabaseError>] {
    snapshot.documents.map { completed in
      Result { () throws(DatabaseError) in
        let (document, referred) = try step.get().taken(from: completed)
        return TypedLookupResult(
          document: try document.data(as: Model.self, decoder: decoder),
          found: try found(referred))
      }
    }
  }
}

/// A document, and the documents that one of its properties refers to.
public struct TypedLookupResult<Model: Sendable, Found: Sendable>: Sendable {
  /// The document that the query found.
  public let document: Model
  /// The referenced document, nil when it does not exist. For a property with several ids, those of
  /// the documents that exist.
  public let found: Found
}

extension TypedLookupResult: Equatable where Model: Equatable, Found: Equatable {}
extension TypedLookupResult: Hashable where Model: Hashable, Found: Hashable {}

extension LookupStep {
  /// The document without the added field, and the documents that were found.
  fileprivate func taken(
    from completed: DocumentSnapshot
  ) -> (document: DocumentSnapshot, referred: [DocumentSnapshot]) {
    guard let contents = completed.contents, let added = contents.fields[name] else {
      return (completed, [])
    }
    var fields = contents.fields
    fields[name] = nil
    let document = DocumentSnapshot(
      reference: completed.reference,
      contents: DocumentSnapshot.Contents(stamps: contents.stamps, fields: fields))
    let database = completed.reference.database
    let values = added.array ?? [added]
    let referred = zip(references(in: document), values).compactMap { path, value in
      guard let path, case .map(let fields) = value else { return nil as DocumentSnapshot? }
      return DocumentSnapshot(
        reference: DocumentReference(database: database, place: .success(path)),
        contents: DocumentSnapshot.Contents(stamps: contents.stamps, fields: fields))
    }
    return (document, referred)
  }
}

extension TypedQuerySource {
  /// The documents with the one that a property refers to, by its id in the other collection or by
  /// a reference. See `QuerySource.lookup(_:in:as:)`.
  ///
  /// - Parameters:
  ///   - property: the id or reference; when it is nil, nothing is found.
  ///   - collection: where ids are looked up, and the type of the found documents.
  public func lookup<Reference: Encodable, Other>(
    _ property: any KeyPath<Model, Reference> & Sendable, in collection: TypedCollection<Other>
  ) -> TypedLookupQuery<Model, Other?> {
    let fields = collection.fields
    return TypedLookupQuery(
      typedQuery, typedQuery.path(of: property), collection.collection.path
    ) { (found) throws(DatabaseError) in
      guard let first = found.first else { return nil }
      return try fields.model(of: first)
    }
  }

  /// The documents with those that a property refers to, by their ids in the other collection or by
  /// references.
  ///
  /// - Parameters:
  ///   - property: the ids or references.
  ///   - collection: where ids are looked up, and the type of the found documents. Missing
  ///     documents are left out.
  public func lookup<Reference: Encodable, Other>(
    _ property: any KeyPath<Model, [Reference]> & Sendable, in collection: TypedCollection<Other>
  ) -> TypedLookupQuery<Model, [Other]> {
    let fields = collection.fields
    return TypedLookupQuery(
      typedQuery, typedQuery.path(of: property), collection.collection.path
    ) { (found) throws(DatabaseError) in
      var models: [Other] = []
      for document in found {
        if let model = try fields.model(of: document) { models.append(model) }
      }
      return models
    }
  }
}
