// Collections whose documents are values of one type.

public import OndolFoundation

/// A collection whose documents are values of a type, and the query for all of them.
///
/// ```swift
/// let items = try database.collection("items", of: Item.self)
/// try await items.document("lamp").setData(Item(name: "Lamp", price: 30))
/// let cheap = try await items.where(\.price < 50).order(by: \.name).getDocuments()
/// ```
///
/// Properties replace field names, so a misspelled name or a value of another type does not
/// compile. The stored data is the same as without a type, and you can mix both: the `collection`
/// is the same collection.
public struct TypedCollection<Model: Codable & Sendable>: TypedQuerySource {
  /// The same collection without the type.
  public let collection: CollectionReference
  let fields: ModelFields<Model>

  /// All documents of the collection.
  public var typedQuery: TypedQuery<Model> { TypedQuery(collection.query, fields) }

  /// A reference for a new document, with an automatic id. See `CollectionReference.document()`.
  public func document() -> TypedDocumentReference<Model> {
    TypedDocumentReference(collection.document(), fields)
  }

  /// A document of this collection. See `CollectionReference.document(_:)`.
  ///
  /// - Parameter id: the document's id.
  public func document(_ id: String) -> TypedDocumentReference<Model> {
    TypedDocumentReference(collection.document(id), fields)
  }

  /// Adds a document with an automatic id, and returns its reference.
  ///
  /// - Throws: as `CollectionReference.addDocument(from:durability:encoder:)`.
  @discardableResult
  public func addDocument(
    _ model: Model, durability: Durability? = nil
  ) async throws(DatabaseError) -> TypedDocumentReference<Model> {
    let document = document()
    try await document.create(model, durability: durability)
    return document
  }

  /// The documents with these ids, in this order; nil for a missing one.
  ///
  /// - Throws: as `CollectionReference.getDocuments(ids:)`, and `.failedPrecondition` for the first
  ///   that does not fit the type.
  public func getDocuments(ids: [String]) async throws(DatabaseError) -> [Model?] {
    var models: [Model?] = []
    for snapshot in try await collection.getDocuments(ids: ids) {
      models.append(try fields.model(of: snapshot))
    }
    return models
  }

  /// Creates an index, in the order of the properties. See
  /// `CollectionReference.createIndex(on:unique:nullsDistinct:where:progress:)`.
  ///
  /// - Parameters:
  ///   - keys: the properties, each with its direction: `.ascending(\.status)`, or
  ///     `.elements(\.tags)`.
  ///   - unique: whether no two documents may have the same values.
  ///   - nullsDistinct: of a unique index, whether documents with null in one of the fields may
  ///     have the same values. An optional that is nil is stored as null, or not at all.
  ///   - progress: called with the progress of the build.
  /// - Returns: the index's name.
  @discardableResult
  public func createIndex(
    on keys: TypedIndexKey<Model>..., unique: Bool = false, nullsDistinct: Bool = true,
    progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> String {
    var names: [String] = []
    for key in keys { names.append(try key.name(fields)) }
    return try await collection.createIndex(
      on: names, unique: unique, nullsDistinct: nullsDistinct, progress: progress)
  }

  /// Creates an index of the elements of an array. See
  /// `CollectionReference.createIndex(onArray:where:progress:)`.
  ///
  /// - Returns: the index's name.
  @discardableResult
  public func createIndex<Element: Encodable>(
    onArray property: any KeyPath<Model, [Element]> & Sendable,
    progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> String {
    let path = try fields.path(of: ModelProperty(property))
    return try await collection.createIndex(onArray: "\(path)", progress: progress)
  }
}

extension TypedCollection: CustomStringConvertible {
  /// The path.
  public var description: String { collection.path }
}

/// A property of an index with its direction, or a property's elements.
public struct TypedIndexKey<Model: Codable & Sendable>: Sendable {
  /// The field as an index names it.
  let name: @Sendable (ModelFields<Model>) throws(DatabaseError) -> String

  /// The least value first.
  ///
  /// - Parameters:
  ///   - property: the indexed property.
  ///   - comparison: how its texts are compared; by their bytes when nil.
  public static func ascending<Content: Encodable & Sendable>(
    _ property: any KeyPath<Model, Content> & Sendable,
    comparing comparison: TextComparison? = nil
  ) -> TypedIndexKey {
    TypedIndexKey { (fields) throws(DatabaseError) in
      IndexedField.ascending(
        try fields.path(of: ModelProperty(property)), comparing: comparison
      ).text
    }
  }

  /// The elements of an array, for conditions with `contains`.
  public static func elements<Element: Encodable & Sendable>(
    _ property: any KeyPath<Model, [Element]> & Sendable
  ) -> TypedIndexKey {
    TypedIndexKey { (fields) throws(DatabaseError) in
      "\(try fields.path(of: ModelProperty(property)))[]"
    }
  }

  /// The greatest value first.
  ///
  /// - Parameters:
  ///   - property: the indexed property.
  ///   - comparison: how its texts are compared; by their bytes when nil.
  public static func descending<Content: Encodable & Sendable>(
    _ property: any KeyPath<Model, Content> & Sendable,
    comparing comparison: TextComparison? = nil
  ) -> TypedIndexKey {
    TypedIndexKey { (fields) throws(DatabaseError) in
      IndexedField.descending(
        try fields.path(of: ModelProperty(property)), comparing: comparison
      ).text
    }
  }
}

// MARK: - Models with an id

extension TypedCollection where Model: Identifiable, Model.ID == String {
  /// The document that the value's id names.
  public func document(of model: Model) -> TypedDocumentReference<Model> { document(model.id) }

  /// Makes the document that the value's id names `model`, and replaces an existing one.
  ///
  /// - Throws: as `TypedDocumentReference.setData(_:returning:ifVersion:durability:)`.
  @discardableResult
  public func setData(
    _ model: Model, durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    try await document(of: model).setData(model, durability: durability)
  }
}

extension TypedCollection where Model: Identifiable, Model.ID == UUID {
  /// The document that the value's id names.
  public func document(of model: Model) -> TypedDocumentReference<Model> {
    document(model.id.uuidString)
  }

  /// Makes the document that the value's id names `model`, and replaces an existing one.
  ///
  /// - Throws: as `TypedDocumentReference.setData(_:returning:ifVersion:durability:)`.
  @discardableResult
  public func setData(
    _ model: Model, durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    try await document(of: model).setData(model, durability: durability)
  }
}

// MARK: - Making typed collections

extension CollectionReference {
  /// This collection with documents of a type.
  ///
  /// To find out in which field each property is stored, the type is decoded from examples, once in
  /// a process. A type that accepts no examples can still be stored and read, and its properties
  /// are found by their names; see ``FieldExamples``.
  ///
  /// - Parameters:
  ///   - type: the type of the documents.
  ///   - encoder: how values are stored.
  ///   - decoder: how they are read; by default with the encoder's strategies.
  /// - Throws: Nothing at this time. When the path is wrong, the calls that use the collection
  ///   throw.
  /// - Complexity: O(1); the first time for a type O(f log f) for f fields, a few hundred
  ///   microseconds.
  public func of<Model: Codable & Sendable>(
    _ type: Model.Type, encoder: DocumentEncoder = DocumentEncoder(),
    decoder: DocumentDecoder? = nil
  ) throws(DatabaseError) -> TypedCollection<Model> {
    let decoder =
      decoder
      ?? DocumentDecoder(keyStrategy: encoder.keyStrategy, dateStrategy: encoder.dateStrategy)
    return TypedCollection(
      collection: self, fields: ModelFields.of(encoder, decoder, in: database))
  }
}

extension Database {
  /// The collection at `path` with documents of a type. See `CollectionReference.of(_:)`.
  ///
  /// - Throws: Nothing at this time. When the path is wrong, the calls that use the collection
  ///   throw.
  public func collection<Model: Codable & Sendable>(
    _ path: String, of type: Model.Type, encoder: DocumentEncoder = DocumentEncoder(),
    decoder: DocumentDecoder? = nil
  ) throws(DatabaseError) -> TypedCollection<Model> {
    try collection(path).of(type, encoder: encoder, decoder: decoder)
  }

  /// All collections with this id, wherever they are, with documents of a type.
  ///
  /// - Throws: as `collection(_:of:encoder:decoder:)`.
  public func collectionGroup<Model: Codable & Sendable>(
    _ collectionID: String, of type: Model.Type, encoder: DocumentEncoder = DocumentEncoder(),
    decoder: DocumentDecoder? = nil
  ) throws(DatabaseError) -> TypedQuery<Model> {
    let fields = try collection(collectionID).of(type, encoder: encoder, decoder: decoder).fields
    return TypedQuery(collectionGroup(collectionID).query, fields)
  }
}
