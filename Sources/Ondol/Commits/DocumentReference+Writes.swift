// The public writes of one document. Each one encodes and compiles its arguments at once, on the
// caller. So arguments need not be Sendable, and a mistake throws before anything is read. The rest
// is WritePath.

extension DocumentReference {
  /// Makes the document `data`, and replaces an existing one. With `merge`, sets the fields of
  /// `data` and keeps all others. Keys are names; dots in them are literal.
  ///
  /// Merging descends into maps and replaces arrays and empty maps as a whole. All of this is as in
  /// Firestore, whose clients return nothing. A write that changes nothing makes no new version.
  ///
  /// The call returns when the commit is as durable as requested, and every read that begins
  /// afterwards sees it.
  ///
  /// - Parameters:
  ///   - data: the fields. nil means null; a ``FieldValue`` is an instruction for the commit.
  ///   - merge: whether other fields stay. A ``FieldValue/delete()`` is allowed only then.
  ///   - returning: which states of the document the result contains.
  ///   - version: writes only while the document has this version; `.missing` only while there is
  ///     none.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Returns: the version and the time of the commit, and the requested states.
  /// - Throws: `.invalidArgument`, naming the field, for an invalid name or value; `.aborted`, with
  ///   the stored and the attempted document, when the version differs; `.alreadyExists`, naming
  ///   the holder, when a unique index has the values; `.resourceExhausted` when the document has
  ///   over 16 MiB or the disk is full; `.failedPrecondition` when the database is closed or
  ///   read-only, or a linked path does not exist; `.unavailable` when a write to the device
  ///   failed; `.cancelled` when the task was cancelled in time. After an error nothing is written,
  ///   except that `.unavailable` may leave the outcome of the write under way unknown.
  /// - Complexity: O(log n) in the documents, and O(size of the document and its index rows).
  @discardableResult
  public func setData(
    _ data: [String: (any FieldContent)?], merge: Bool = false, returning: Returning = .nothing,
    ifVersion version: Version? = nil, durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    let intent = try compile { () throws(DatabaseError) in
      let fields = try FieldInput.fields(data)
      return try merge ? WriteCompiler.merge(fields) : WriteCompiler.set(fields)
    }
    return try await write(intent, returning, version, durability)
  }

  /// Sets the listed fields to their values in `data`, and keeps all others. A listed map is
  /// replaced as a whole. Values of `data` outside the list are ignored, except for a delete, which
  /// is refused. As in Firestore.
  ///
  /// - Parameters:
  ///   - data: the fields, as for `setData(_:merge:returning:ifVersion:durability:)`.
  ///   - mergeFields: paths to the fields to set, none of them inside another.
  ///   - returning: which states of the document the result contains.
  ///   - version: writes only while the document has this version.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: as `setData(_:merge:returning:ifVersion:durability:)`, and `.invalidArgument` when a
  ///   listed field is missing from `data` or is inside another.
  @discardableResult
  public func setData(
    _ data: [String: (any FieldContent)?], mergeFields: [FieldPath],
    returning: Returning = .nothing, ifVersion version: Version? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    let intent = try compile { () throws(DatabaseError) in
      try WriteCompiler.merge(FieldInput.fields(data), only: mergeFields)
    }
    return try await write(intent, returning, version, durability)
  }

  /// Makes the document from the encoded `content`, and replaces an existing one. With `merge`,
  /// sets those fields and keeps all others. Optionals that are nil are left out, unless they are
  /// an ``ExplicitNull``. Firestore's equivalent is not asynchronous and does not throw the errors
  /// of the write.
  ///
  /// - Parameters:
  ///   - content: any `Encodable` that encodes as a map. It is encoded before this suspends, and
  ///     need not be `Sendable`.
  ///   - merge: whether other fields stay.
  ///   - returning: which states of the document the result contains.
  ///   - version: writes only while the document has this version.
  ///   - durability: what the commit survives; the database's own when nil.
  ///   - encoder: how names and dates are stored.
  /// - Throws: as `setData(_:merge:returning:ifVersion:durability:)`.
  @discardableResult
  public func setData<Content: Encodable>(
    from content: Content, merge: Bool = false, returning: Returning = .nothing,
    ifVersion version: Version? = nil, durability: Durability? = nil,
    encoder: DocumentEncoder = DocumentEncoder()
  ) async throws(DatabaseError) -> WriteResult {
    let intent = try compile { () throws(DatabaseError) in
      return try merge
        ? WriteCompiler.merge(encoder.inputs(of: content))
        : WriteCompiler.set(encoder.input(of: content))
    }
    return try await write(intent, returning, version, durability)
  }

  /// Sets the listed fields to their values in the encoded `content`, and keeps all others.
  ///
  /// - Throws: as `setData(_:mergeFields:returning:ifVersion:durability:)`.
  @discardableResult
  public func setData<Content: Encodable>(
    from content: Content, mergeFields: [FieldPath], returning: Returning = .nothing,
    ifVersion version: Version? = nil, durability: Durability? = nil,
    encoder: DocumentEncoder = DocumentEncoder()
  ) async throws(DatabaseError) -> WriteResult {
    let intent = try compile { () throws(DatabaseError) in
      try WriteCompiler.merge(encoder.inputs(of: content), only: mergeFields)
    }
    return try await write(intent, returning, version, durability)
  }

  /// Replaces the fields that the keys lead to, and keeps all others. Dots in keys lead into maps;
  /// put names that contain dots into backticks. As in Firestore.
  ///
  /// - Parameters:
  ///   - data: the new value of each place, one or more. nil means null; ``FieldValue/delete()``
  ///     removes the field.
  ///   - returning: which states of the document the result contains.
  ///   - version: writes only while the document has this version.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.notFound` when there is no document; `.invalidArgument` when `data` is empty, a
  ///   key is not a field path, or one key is inside another; otherwise as
  ///   `setData(_:merge:returning:ifVersion:durability:)`.
  /// - Complexity: as `setData(_:merge:returning:ifVersion:durability:)`: the document is read and
  ///   written as a whole.
  @discardableResult
  public func updateData(
    _ data: [String: (any FieldContent)?], returning: Returning = .nothing,
    ifVersion version: Version? = nil, durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    try await update(
      data.map { (FieldPath($0.key), $0.value) }, returning, version, durability)
  }

  /// Replaces the fields that the paths lead to, and keeps all others.
  ///
  /// - Throws: as the form with texts as keys.
  @discardableResult
  @_disfavoredOverload
  public func updateData(
    _ data: [FieldPath: (any FieldContent)?], returning: Returning = .nothing,
    ifVersion version: Version? = nil, durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    try await update(data.map { ($0.key, $0.value) }, returning, version, durability)
  }

  /// Makes the document `data` if there is none. Firestore has this in its server libraries only.
  ///
  /// - Parameters:
  ///   - data: the fields. nil means null; a ``FieldValue`` is an instruction for the commit.
  ///   - returning: which states of the document the result contains.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.alreadyExists` when there is one; otherwise as
  ///   `setData(_:merge:returning:ifVersion:durability:)`.
  /// - Complexity: as `setData(_:merge:returning:ifVersion:durability:)`.
  @discardableResult
  public func create(
    _ data: [String: (any FieldContent)?], returning: Returning = .nothing,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    let intent = try compile { () throws(DatabaseError) in
      try WriteCompiler.create(FieldInput.fields(data))
    }
    return try await write(intent, returning, nil, durability)
  }

  /// Makes the document from the encoded `content` if there is none.
  ///
  /// - Throws: as the form with a dictionary.
  @discardableResult
  public func create<Content: Encodable>(
    from content: Content, returning: Returning = .nothing, durability: Durability? = nil,
    encoder: DocumentEncoder = DocumentEncoder()
  ) async throws(DatabaseError) -> WriteResult {
    let intent = try compile { () throws(DatabaseError) in
      try WriteCompiler.create(encoder.inputs(of: content))
    }
    return try await write(intent, returning, nil, durability)
  }

  /// Deletes the document; no error when there is none. As in Firestore, collections below it stay.
  /// With `recursive`, the same commit deletes every document below it, even when this document
  /// does not exist. Contents that it held are released.
  ///
  /// - Parameters:
  ///   - recursive: whether to also delete everything below.
  ///   - returning: which states of the document the result contains.
  ///   - version: deletes only while the document has this version.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.aborted`, with the stored document, when the version differs; `.resourceExhausted`
  ///   when so much is deleted that the commit is over 64 MiB; `.cancelled` when the task was
  ///   cancelled in time.
  /// - Complexity: O(documents below) when `recursive`.
  @discardableResult
  public func delete(
    recursive: Bool = false, returning: Returning = .nothing, ifVersion version: Version? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> WriteResult {
    guard recursive else {
      return try await write(WriteCompiler.delete(), returning, version, durability)
    }
    let path = try place.get()
    do {
      let commit = try await database.derive(attempts: .max, durability: durability) { snapshot in
        let outcome = try await database.read(snapshot) { (rows) throws(DatabaseError) in
          let transaction = Transaction(database, rows)
          try transaction.deleteDocument(self, recursive: true, ifVersion: version)
          return try transaction.finish()(rows)
        }
        return ((), outcome)
      }.commit
      return commit.result(of: path, in: database, returning: returning)
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw DatabaseError(.internal, "\(error)", path: "\(path)")
    }
  }

  // MARK: - Helpers

  private func update(
    _ data: [(FieldPath, (any FieldContent)?)], _ returning: Returning, _ version: Version?,
    _ durability: Durability?
  ) async throws(DatabaseError) -> WriteResult {
    let intent = try compile { () throws(DatabaseError) in
      try WriteCompiler.update(
        FieldInput.inputs(data), precondition: version.map { .version($0) } ?? .exists(true))
    }
    return try await write(intent, returning, version, durability)
  }

  private func write(
    _ intent: WriteIntent, _ returning: Returning, _ version: Version?,
    _ durability: Durability?
  ) async throws(DatabaseError) -> WriteResult {
    var intent = intent
    if let version { intent.precondition = .version(version) }
    return try await database.write(self, intent, returning: returning, durability: durability)
  }

  /// Adds the document's name to errors of compiling.
  private func compile(
    _ body: () throws(DatabaseError) -> WriteIntent
  ) throws(DatabaseError) -> WriteIntent {
    let path = try place.get()
    do throws(DatabaseError) {
      return try body()
    } catch {
      throw error.at(path: "\(path)")
    }
  }
}

extension CollectionReference {
  /// Adds a document with an automatic id, and returns its reference.
  ///
  /// - Throws: as `DocumentReference.create(_:returning:durability:)`.
  @discardableResult
  public func addDocument(
    _ data: [String: (any FieldContent)?], durability: Durability? = nil
  ) async throws(DatabaseError) -> DocumentReference {
    let reference = document()
    try await reference.create(data, durability: durability)
    return reference
  }

  /// Adds a document with an automatic id, and returns its reference.
  ///
  /// - Throws: as `DocumentReference.create(_:returning:durability:)`.
  @discardableResult
  public func addDocument(
    data: [String: (any FieldContent)?], durability: Durability? = nil
  ) async throws(DatabaseError) -> DocumentReference {
    try await addDocument(data, durability: durability)
  }

  /// Adds a document from the encoded `content`, with an automatic id, and returns its reference.
  ///
  /// - Throws: as `DocumentReference.create(from:returning:durability:)`.
  @discardableResult
  public func addDocument<Content: Encodable>(
    from content: Content, durability: Durability? = nil,
    encoder: DocumentEncoder = DocumentEncoder()
  ) async throws(DatabaseError) -> DocumentReference {
    let reference = document()
    try await reference.create(from: content, durability: durability, encoder: encoder)
    return reference
  }
}

extension FieldInput {
  /// Encodes an update's values at each path, and names the field in errors.
  static func inputs(
    _ data: [(FieldPath, (any FieldContent)?)]
  ) throws(DatabaseError) -> [(path: FieldPath, input: FieldInput)] {
    var inputs: [(path: FieldPath, input: FieldInput)] = []
    for (path, content) in data {
      do throws(DatabaseError) {
        inputs.append((path, try content?.encodeField() ?? FieldInput(.null)))
      } catch {
        throw error.within(fieldPath: path)
      }
    }
    return inputs
  }
}

extension DatabaseError {
  /// The same error, inside the field that `path` leads to.
  func within(fieldPath path: FieldPath) -> DatabaseError {
    var error = self
    error.field =
      field.map { $0.utf8.first == UInt8(ascii: "[") ? "\(path)\($0)" : "\(path).\($0)" }
      ?? "\(path)"
    return error
  }
}
