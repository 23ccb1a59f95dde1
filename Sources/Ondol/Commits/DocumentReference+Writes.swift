// The public writes of one document. Each encodes and compiles its arguments at once, on the
// caller, so that what is passed need not be Sendable and a mistake throws before anything is read;
// the rest is WritePath.

extension DocumentReference {
  /// Makes the document `data`, replacing it when there is one; with `merge`, sets the fields of
  /// `data` and leaves all others. Keys are names, dots in them are dots.
  ///
  /// Merging goes into maps; arrays and empty maps are replaced as a whole. All as in Firestore,
  /// which answers nothing. A write that changes nothing makes no version.
  ///
  /// It returns when the commit is as durable as asked, and every read begun from then on sees it.
  ///
  /// - Parameters:
  ///   - data: the fields. nil stands for null; a ``FieldValue`` for what the commit is to do.
  ///   - merge: whether other fields stay. A ``FieldValue/delete()`` is possible only then.
  ///   - returning: which states of the document the result shall have.
  ///   - version: writes only while the document has this version; `.missing` only while there is
  ///     none.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Returns: the version and the moment of the commit, and the states asked for.
  /// - Throws: `.invalidArgument` naming the field when a name or value is not possible, `.aborted`
  ///   with the stored and the attempted document when the version differs, `.alreadyExists` naming
  ///   the holder when a unique index has the values, `.resourceExhausted` when the document has
  ///   over 16 MiB or the disk is full, `.failedPrecondition` when the database is closed or
  ///   read-only, or a linked path leads nowhere, `.unavailable` when a write to the device failed,
  ///   `.cancelled` when the task was cancelled in time. Nothing is written then, except that
  ///   `.unavailable` may leave in doubt what was under way.
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

  /// Sets the listed fields to what `data` has there, and leaves all others. A listed map is
  /// replaced as a whole; what `data` has beyond the list is ignored, but for a delete, which is
  /// refused. As in Firestore.
  ///
  /// - Parameters:
  ///   - data: the fields, as for `setData(_:merge:returning:ifVersion:durability:)`.
  ///   - mergeFields: paths to the fields to be set, none of them inside another.
  ///   - returning: which states of the document the result shall have.
  ///   - version: writes only while the document has this version.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: as `setData(_:merge:returning:ifVersion:durability:)`, and `.invalidArgument` when a
  ///   listed field is missing from `data` or lies inside another.
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

  /// Makes the document what `content` encodes as, replacing it when there is one; with `merge`,
  /// sets those fields and leaves all others. Optionals that are nil are left out, unless they are
  /// ``ExplicitNull``. Firestore's form is not asynchronous and does not throw what the write
  /// throws.
  ///
  /// - Parameters:
  ///   - content: any `Encodable` that encodes as a map. It is encoded before this suspends, and
  ///     need not be `Sendable`.
  ///   - merge: whether other fields stay.
  ///   - returning: which states of the document the result shall have.
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

  /// Sets the listed fields to what `content` encodes there, and leaves all others.
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

  /// Replaces the fields the keys lead to, and leaves all others. Dots in keys lead into maps;
  /// names that contain dots stand in backticks. As in Firestore.
  ///
  /// - Parameters:
  ///   - data: what each place is to be, one or more. nil stands for null; ``FieldValue/delete()``
  ///     removes the field.
  ///   - returning: which states of the document the result shall have.
  ///   - version: writes only while the document has this version.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.notFound` when there is no document; `.invalidArgument` when `data` is empty, a
  ///   key is no field path, or one key lies inside another; otherwise as
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

  /// Replaces the fields the paths lead to, and leaves all others.
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

  /// Makes the document `data`, where there is none; Firestore has this in its server libraries
  /// only.
  ///
  /// - Parameters:
  ///   - data: the fields. nil stands for null; a ``FieldValue`` for what the commit is to do.
  ///   - returning: which states of the document the result shall have.
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

  /// Makes the document what `content` encodes as, where there is none.
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

  /// Removes the document; no error when there is none. As in Firestore, collections below it stay,
  /// unless `recursive`: then every document below it goes in the same commit, also when there is
  /// no document here itself. Contents that it held go with it.
  ///
  /// - Parameters:
  ///   - recursive: whether everything below goes, too.
  ///   - returning: which states of the document the result shall have.
  ///   - version: deletes only while the document has this version.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.aborted` with the stored document when the version differs, `.resourceExhausted`
  ///   when so much goes that the commit is over 64 MiB, `.cancelled` when the task was cancelled
  ///   in time.
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

  /// Names the document in what compiling throws.
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
  /// Adds a document with an automatic id, and gives back where it is.
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

  /// Adds a document with an automatic id, and gives back where it is.
  ///
  /// - Throws: as `DocumentReference.create(_:returning:durability:)`.
  @discardableResult
  public func addDocument(
    data: [String: (any FieldContent)?], durability: Durability? = nil
  ) async throws(DatabaseError) -> DocumentReference {
    try await addDocument(data, durability: durability)
  }

  /// Adds what `content` encodes as, with an automatic id, and gives back where it is.
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
  /// Encodes what an update puts at each path, naming the field in what it throws.
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
  /// The same error, inside the field `path` leads to.
  func within(fieldPath path: FieldPath) -> DatabaseError {
    var error = self
    error.field =
      field.map { $0.utf8.first == UInt8(ascii: "[") ? "\(path)\($0)" : "\(path).\($0)" }
      ?? "\(path)"
    return error
  }
}
