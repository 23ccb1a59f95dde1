// One document as a value of a type.

/// The location of a document in a typed collection, whether the document exists or not.
///
/// ```swift
/// let lamp = items.document("lamp")
/// try await lamp.setData(Item(name: "Lamp", price: 30))
/// try await lamp.update(.increment(\.price, by: 5))
/// let item: Item? = try await lamp.getDocument()
/// ```
public struct TypedDocumentReference<Model: Codable & Sendable>: Sendable {
  /// The same document without the type.
  public let reference: DocumentReference
  let fields: ModelFields<Model>

  init(_ reference: DocumentReference, _ fields: ModelFields<Model>) {
    self.reference = reference
    self.fields = fields
  }

  /// The last segment of the path; empty when the path is wrong.
  public var documentID: String { reference.documentID }

  /// The path from the root.
  public var path: String { reference.path }

  // MARK: - Reading

  /// The document; nil when there is none.
  ///
  /// - Throws: as `DocumentReference.getDocument()`, and `.failedPrecondition` when it does not fit
  ///   the type, with the field and its value.
  /// - Complexity: as `DocumentReference.getDocument()`.
  public func getDocument() async throws(DatabaseError) -> Model? {
    try fields.model(of: try await reference.getDocument())
  }

  /// The document, and every later state of it.
  public var snapshots: Updates<TypedDocumentSnapshot<Model>> {
    let fields = fields
    return reference.snapshots.map { TypedDocumentSnapshot($0, fields) }
  }

  // MARK: - Writing

  /// Makes the document `model`, and replaces an existing one.
  ///
  /// - Throws: as `DocumentReference.setData(from:merge:returning:ifVersion:durability:encoder:)`.
  @discardableResult
  public func setData(
    _ model: Model, returning: Returning = .nothing, ifVersion version: Version? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    try await reference.setData(
      from: model, returning: returning, ifVersion: version, durability: durability,
      encoder: fields.encoder)
  }

  /// Makes the document `model` if there is none.
  ///
  /// - Throws: as `DocumentReference.create(from:returning:durability:encoder:)`.
  @discardableResult
  public func create(
    _ model: Model, returning: Returning = .nothing, durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    try await reference.create(
      from: model, returning: returning, durability: durability, encoder: fields.encoder)
  }

  /// Changes properties, and keeps all others.
  ///
  /// - Throws: `.invalidArgument` when two updates change one field; otherwise as
  ///   `DocumentReference.updateData(_:returning:ifVersion:durability:)`.
  @discardableResult
  public func update(
    _ updates: TypedUpdate<Model>..., returning: Returning = .nothing,
    ifVersion version: Version? = nil, durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    try await reference.updateData(
      try [FieldPath: (any FieldContent)?](updates, fields), returning: returning,
      ifVersion: version, durability: durability)
  }

  /// Deletes the document; no error when there is none.
  ///
  /// - Throws: as `DocumentReference.delete(recursive:returning:ifVersion:durability:)`.
  @discardableResult
  public func delete(
    recursive: Bool = false, returning: Returning = .nothing, ifVersion version: Version? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    try await reference.delete(
      recursive: recursive, returning: returning, ifVersion: version, durability: durability)
  }
}

/// A document of a typed collection, or its absence, as it was when it was read.
public struct TypedDocumentSnapshot<Model: Codable & Sendable>: Sendable {
  /// The same document without the type: its id, version and times.
  public let snapshot: DocumentSnapshot
  /// The decoded document, or why it does not fit; nil when there is no document.
  public let result: Result<Model, DatabaseError>?

  init(_ snapshot: DocumentSnapshot, _ fields: ModelFields<Model>) {
    self.snapshot = snapshot
    guard snapshot.exists else {
      result = nil
      return
    }
    result = Result { () throws(DatabaseError) in
      try snapshot.data(as: Model.self, decoder: fields.decoder)
    }
  }

  /// The decoded document; nil when there is no document, or it does not fit.
  public var document: Model? { try? result?.get() }
}

extension ModelFields {
  /// The document as a value; nil when there is none.
  func model(of snapshot: DocumentSnapshot) throws(DatabaseError) -> Model? {
    snapshot.exists ? try snapshot.data(as: Model.self, decoder: decoder) : nil
  }
}
