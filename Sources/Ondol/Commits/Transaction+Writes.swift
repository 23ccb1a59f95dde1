// A transaction's writes: the same as a batch's, but applied at once. So a call whose write does
// not fit the document throws immediately.

extension Transaction {
  /// Makes the document `data`, and replaces an existing one. With `merge`, sets the fields of
  /// `data` and keeps all others.
  ///
  /// - Throws: `.invalidArgument`, naming the field, for an invalid name or value; `.aborted` when
  ///   the document has another version than `ifVersion`.
  public func setData(
    _ data: [String: (any FieldContent)?], forDocument document: DocumentReference,
    merge: Bool = false, ifVersion version: Version? = nil
  ) throws(DatabaseError) {
    try add(document, version) { () throws(DatabaseError) in
      let fields = try FieldInput.fields(data)
      return try merge ? WriteCompiler.merge(fields) : WriteCompiler.set(fields)
    }
  }

  /// Sets the listed fields to their values in `data`, and keeps all others.
  ///
  /// - Throws: as `DocumentReference.setData(_:mergeFields:returning:ifVersion:durability:)`.
  public func setData(
    _ data: [String: (any FieldContent)?], forDocument document: DocumentReference,
    mergeFields: [FieldPath], ifVersion version: Version? = nil
  ) throws(DatabaseError) {
    try add(document, version) { () throws(DatabaseError) in
      try WriteCompiler.merge(FieldInput.fields(data), only: mergeFields)
    }
  }

  /// Makes the document from the encoded `content`. With `merge`, sets those fields and keeps all
  /// others.
  ///
  /// - Throws: as the form with a dictionary.
  public func setData<Content: Encodable>(
    from content: Content, forDocument document: DocumentReference, merge: Bool = false,
    ifVersion version: Version? = nil, encoder: DocumentEncoder = DocumentEncoder()
  ) throws(DatabaseError) {
    try add(document, version) { () throws(DatabaseError) in
      return try merge
        ? WriteCompiler.merge(encoder.inputs(of: content))
        : WriteCompiler.set(encoder.input(of: content))
    }
  }

  /// Sets the listed fields to their values in the encoded `content`, and keeps all others.
  ///
  /// - Throws: as the form with a dictionary.
  public func setData<Content: Encodable>(
    from content: Content, forDocument document: DocumentReference, mergeFields: [FieldPath],
    ifVersion version: Version? = nil, encoder: DocumentEncoder = DocumentEncoder()
  ) throws(DatabaseError) {
    try add(document, version) { () throws(DatabaseError) in
      try WriteCompiler.merge(encoder.inputs(of: content), only: mergeFields)
    }
  }

  /// Replaces the fields that the keys lead to, and keeps all others.
  ///
  /// - Throws: `.notFound` when there is no document; otherwise as
  ///   `DocumentReference.updateData(_:returning:ifVersion:durability:)`.
  public func updateData(
    _ data: [String: (any FieldContent)?], forDocument document: DocumentReference,
    ifVersion version: Version? = nil
  ) throws(DatabaseError) {
    try update(document, data.map { (FieldPath($0.key), $0.value) }, version)
  }

  /// Replaces the fields that the paths lead to, and keeps all others.
  ///
  /// - Throws: as the form with texts as keys.
  @_disfavoredOverload
  public func updateData(
    _ data: [FieldPath: (any FieldContent)?], forDocument document: DocumentReference,
    ifVersion version: Version? = nil
  ) throws(DatabaseError) {
    try update(document, data.map { ($0.key, $0.value) }, version)
  }

  private func update(
    _ document: DocumentReference, _ data: [(FieldPath, (any FieldContent)?)], _ version: Version?
  ) throws(DatabaseError) {
    try add(document, version) { () throws(DatabaseError) in
      try WriteCompiler.update(
        FieldInput.inputs(data), precondition: version.map { .version($0) } ?? .exists(true))
    }
  }

  /// Makes the document if there is none.
  ///
  /// - Throws: `.alreadyExists` when there is one; otherwise as
  ///   `setData(_:forDocument:merge:ifVersion:)`.
  public func create(
    _ data: [String: (any FieldContent)?], forDocument document: DocumentReference
  ) throws(DatabaseError) {
    try add(document, nil) { () throws(DatabaseError) in
      try WriteCompiler.create(FieldInput.fields(data))
    }
  }

  /// Makes the document from the encoded `content` if there is none.
  ///
  /// - Throws: as the form with a dictionary.
  public func create<Content: Encodable>(
    from content: Content, forDocument document: DocumentReference,
    encoder: DocumentEncoder = DocumentEncoder()
  ) throws(DatabaseError) {
    try add(document, nil) { () throws(DatabaseError) in
      try WriteCompiler.create(encoder.inputs(of: content))
    }
  }

  /// Deletes the document; no error when there is none. Collections below it stay, unless
  /// `recursive`.
  ///
  /// - Throws: `.invalidArgument` when the path is wrong, `.aborted` when the document has another
  ///   version than `ifVersion`.
  /// - Complexity: O(documents below) when `recursive`.
  public func deleteDocument(
    _ document: DocumentReference, recursive: Bool = false, ifVersion version: Version? = nil
  ) throws(DatabaseError) {
    try add(document, version) { () throws(DatabaseError) in WriteCompiler.delete() }
    guard recursive else { return }
    for path in try readDescendants(of: try document.place.get()) {
      let descendant = DocumentReference(database: document.database, place: .success(path))
      try add(descendant, nil) { () throws(DatabaseError) in WriteCompiler.delete() }
    }
  }
}
