// Typed reads and writes in the same places as untyped ones: in transactions, batches and snapshots
// of the database.

extension Transaction {
  /// The document; nil when there is none.
  ///
  /// - Throws: as `getDocument(_:)`, and `.failedPrecondition` when it does not fit the type.
  public func getDocument<Model>(
    _ document: TypedDocumentReference<Model>
  ) throws(DatabaseError) -> Model? {
    try document.fields.model(of: try getDocument(document.reference))
  }

  /// The documents that the query finds.
  ///
  /// - Throws: as `getDocuments(_:)`, and `.failedPrecondition` for the first that does not fit.
  public func getDocuments<Source: TypedQuerySource>(
    _ source: Source
  ) throws(DatabaseError) -> [Source.Model] {
    let typed = source.typedQuery
    return try getDocuments(typed.query).data(as: Source.Model.self, decoder: typed.fields.decoder)
  }

  /// Makes the document `model`, and replaces an existing one.
  ///
  /// - Throws: as `setData(from:forDocument:merge:ifVersion:encoder:)`.
  public func setData<Model>(
    _ model: Model, forDocument document: TypedDocumentReference<Model>,
    ifVersion version: Version? = nil
  ) throws(DatabaseError) {
    try setData(
      from: model, forDocument: document.reference, ifVersion: version,
      encoder: document.fields.encoder)
  }

  /// Makes the document `model` if there is none.
  ///
  /// - Throws: as `create(from:forDocument:encoder:)`.
  public func create<Model>(
    _ model: Model, forDocument document: TypedDocumentReference<Model>
  ) throws(DatabaseError) {
    try create(from: model, forDocument: document.reference, encoder: document.fields.encoder)
  }

  /// Changes properties of the document, and keeps all others.
  ///
  /// - Throws: as `TypedDocumentReference.update(_:returning:ifVersion:durability:)`.
  public func update<Model>(
    _ document: TypedDocumentReference<Model>, _ updates: TypedUpdate<Model>...,
    ifVersion version: Version? = nil
  ) throws(DatabaseError) {
    try updateData(
      try [FieldPath: (any FieldContent)?](updates, document.fields),
      forDocument: document.reference, ifVersion: version)
  }

  /// Deletes the document; no error when there is none.
  ///
  /// - Throws: as `deleteDocument(_:recursive:ifVersion:)`.
  public func deleteDocument<Model>(
    _ document: TypedDocumentReference<Model>, ifVersion version: Version? = nil
  ) throws(DatabaseError) {
    try deleteDocument(document.reference, ifVersion: version)
  }
}

extension WriteBatch {
  /// Adds a write that makes the document `model`.
  ///
  /// - Throws: as `setData(from:forDocument:merge:ifVersion:encoder:)`.
  @discardableResult
  public func setData<Model>(
    _ model: Model, forDocument document: TypedDocumentReference<Model>,
    ifVersion version: Version? = nil
  ) throws(DatabaseError) -> WriteBatch {
    try setData(
      from: model, forDocument: document.reference, ifVersion: version,
      encoder: document.fields.encoder)
  }

  /// Adds a write that changes properties of the document, which must exist.
  ///
  /// - Throws: as `updateData(_:forDocument:ifVersion:)`.
  @discardableResult
  public func update<Model>(
    _ document: TypedDocumentReference<Model>, _ updates: TypedUpdate<Model>...,
    ifVersion version: Version? = nil
  ) throws(DatabaseError) -> WriteBatch {
    try updateData(
      try [FieldPath: (any FieldContent)?](updates, document.fields),
      forDocument: document.reference, ifVersion: version)
  }

  /// Adds a delete of the document. See `deleteDocument(_:ifVersion:)`.
  @discardableResult
  public func deleteDocument<Model>(
    _ document: TypedDocumentReference<Model>, ifVersion version: Version? = nil
  ) -> WriteBatch {
    deleteDocument(document.reference, ifVersion: version)
  }
}

extension DatabaseSnapshot {
  /// The document; nil when there is none.
  ///
  /// - Throws: as `getDocument(_:)`, and `.failedPrecondition` when it does not fit the type.
  public func getDocument<Model>(
    _ document: TypedDocumentReference<Model>
  ) throws(DatabaseError) -> Model? {
    try document.fields.model(of: try getDocument(document.reference))
  }

  /// The documents that the query finds.
  ///
  /// - Throws: as `getDocuments(_:)`, and `.failedPrecondition` for the first that does not fit.
  public func getDocuments<Source: TypedQuerySource>(
    _ source: Source
  ) throws(DatabaseError) -> [Source.Model] {
    let typed = source.typedQuery
    return try getDocuments(typed.query).data(as: Source.Model.self, decoder: typed.fields.decoder)
  }
}

extension LiveQuery where Item: Encodable {
  /// Listens to a typed query.
  ///
  /// - Parameter query: a typed collection or a query.
  /// - Complexity: O(1); the first result comes later.
  public convenience init(_ query: some TypedQuerySource<Item>) {
    let typed = query.typedQuery
    self.init(typed.query, decoder: typed.fields.decoder)
  }
}

extension LiveDocument where Item: Encodable {
  /// Listens to a document of a typed collection.
  ///
  /// - Parameter document: the document to listen to.
  /// - Complexity: O(1); the first state comes later.
  public convenience init(_ document: TypedDocumentReference<Item>) {
    self.init(document.reference, decoder: document.fields.decoder)
  }
}
