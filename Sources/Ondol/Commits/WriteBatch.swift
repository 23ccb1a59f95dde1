// Several writes in one commit. The batch is filled without suspension, and each call is compiled
// at once. The batch is handed over when it is committed. So it need not be Sendable, and belongs
// to the code that fills it.

internal import Logging

/// Writes that happen together or not at all.
///
/// ```swift
/// let batch = database.batch()
/// try batch.setData(["name": "Vase"], forDocument: items.document("vase"))
/// batch.deleteDocument(items.document("old"))
/// try await batch.commit()
/// ```
///
/// Writes to one document are applied in the order they were added. The whole commit, including
/// index rows, may have 64 MiB, with any number of writes; Firestore allows 500 writes. Listeners
/// see it as one step. A batch can be committed once, and belongs to one task: it is not
/// `Sendable`. Releasing a batch with uncommitted writes logs a warning.
public final class WriteBatch {
  let database: Database
  private var writes: [DocumentWrite] = []
  /// The puts to make before the commit, each with its place among the writes.
  private var puts: [(place: Int, put: StoragePut)] = []
  private var rowEncoders = RowEncoders()
  private var isCommitted = false
  /// The error of a delete, which cannot throw itself.
  private var problem: DatabaseError?

  init(database: Database) {
    self.database = database
  }

  deinit {
    guard !isCommitted, !isEmpty else { return }
    let first = writes.first?.path ?? puts[0].put.document
    database.options.logger.warning(
      "a batch was released without commit(), and its writes have not happened",
      metadata: ["writes": "\(count)", "first": "\(first)"])
  }

  /// The number of added writes.
  public var count: Int { writes.count + puts.count }

  /// Whether nothing was added.
  public var isEmpty: Bool { count == 0 }

  /// Adds a write that makes the document `data`, or with `merge` sets the fields of `data`.
  ///
  /// - Throws: `.invalidArgument`, naming the field, for an invalid name or value.
  @discardableResult
  public func setData(
    _ data: [String: (any FieldContent)?], forDocument document: DocumentReference,
    merge: Bool = false, ifVersion version: Version? = nil
  ) throws(DatabaseError) -> WriteBatch {
    try add(document, version) { () throws(DatabaseError) in
      let fields = try FieldInput.fields(data)
      return try merge ? WriteCompiler.merge(fields) : WriteCompiler.set(fields)
    }
  }

  /// Adds a write that sets the listed fields to their values in `data`.
  ///
  /// - Throws: `.invalidArgument` when a listed field is missing from `data` or is inside another.
  @discardableResult
  public func setData(
    _ data: [String: (any FieldContent)?], forDocument document: DocumentReference,
    mergeFields: [FieldPath], ifVersion version: Version? = nil
  ) throws(DatabaseError) -> WriteBatch {
    try add(document, version) { () throws(DatabaseError) in
      try WriteCompiler.merge(FieldInput.fields(data), only: mergeFields)
    }
  }

  /// Adds a write that makes the document from the encoded `content`, or with `merge` sets those
  /// fields.
  ///
  /// - Throws: `.invalidArgument`, naming the field, when `content` cannot be a document.
  @discardableResult
  public func setData<Content: Encodable>(
    from content: Content, forDocument document: DocumentReference, merge: Bool = false,
    ifVersion version: Version? = nil, encoder: DocumentEncoder = DocumentEncoder()
  ) throws(DatabaseError) -> WriteBatch {
    try add(document, version) { () throws(DatabaseError) in
      if merge { return try WriteCompiler.merge(encoder.inputs(of: content)) }
      if let row = row(of: content, document, encoder) { return WriteIntent(change: .put(row)) }
      return try WriteCompiler.set(encoder.input(of: content))
    }
  }

  /// Adds a write that sets the listed fields to their values in the encoded `content`.
  ///
  /// - Throws: as the form with a dictionary.
  @discardableResult
  public func setData<Content: Encodable>(
    from content: Content, forDocument document: DocumentReference, mergeFields: [FieldPath],
    ifVersion version: Version? = nil, encoder: DocumentEncoder = DocumentEncoder()
  ) throws(DatabaseError) -> WriteBatch {
    try add(document, version) { () throws(DatabaseError) in
      try WriteCompiler.merge(encoder.inputs(of: content), only: mergeFields)
    }
  }

  /// Adds a write that replaces the fields that the keys lead to. The document must exist when the
  /// batch is committed.
  ///
  /// - Throws: `.invalidArgument` when `data` is empty, a key is not a field path, or one key is
  ///   inside another.
  @discardableResult
  public func updateData(
    _ data: [String: (any FieldContent)?], forDocument document: DocumentReference,
    ifVersion version: Version? = nil
  ) throws(DatabaseError) -> WriteBatch {
    try update(document, data.map { (FieldPath($0.key), $0.value) }, version)
  }

  /// Adds a write that replaces the fields that the paths lead to.
  ///
  /// - Throws: as the form with texts as keys.
  @discardableResult
  @_disfavoredOverload
  public func updateData(
    _ data: [FieldPath: (any FieldContent)?], forDocument document: DocumentReference,
    ifVersion version: Version? = nil
  ) throws(DatabaseError) -> WriteBatch {
    try update(document, data.map { ($0.key, $0.value) }, version)
  }

  private func update(
    _ document: DocumentReference, _ data: [(FieldPath, (any FieldContent)?)], _ version: Version?
  ) throws(DatabaseError) -> WriteBatch {
    try add(document, version) { () throws(DatabaseError) in
      try WriteCompiler.update(
        FieldInput.inputs(data), precondition: version.map { .version($0) } ?? .exists(true))
    }
  }

  /// Adds a write that makes the document, which must not exist when the batch is committed.
  ///
  /// - Throws: `.invalidArgument`, naming the field, for an invalid name or value.
  @discardableResult
  public func create(
    _ data: [String: (any FieldContent)?], forDocument document: DocumentReference
  ) throws(DatabaseError) -> WriteBatch {
    try add(document, nil) { () throws(DatabaseError) in
      try WriteCompiler.create(FieldInput.fields(data))
    }
  }

  /// Adds a write that makes the document from the encoded `content`. It must not exist when the
  /// batch is committed.
  ///
  /// - Throws: `.invalidArgument`, naming the field, when `content` cannot be a document.
  @discardableResult
  public func create<Content: Encodable>(
    from content: Content, forDocument document: DocumentReference,
    encoder: DocumentEncoder = DocumentEncoder()
  ) throws(DatabaseError) -> WriteBatch {
    try add(document, nil) { () throws(DatabaseError) in
      if let row = row(of: content, document, encoder) {
        return WriteIntent(change: .put(row), precondition: .exists(false))
      }
      return try WriteCompiler.create(encoder.inputs(of: content))
    }
  }

  /// Adds a delete; no error when there is no document. With a wrong path, the commit throws.
  @discardableResult
  public func deleteDocument(
    _ document: DocumentReference, ifVersion version: Version? = nil
  ) -> WriteBatch {
    do throws(DatabaseError) {
      return try add(document, version) { () throws(DatabaseError) in WriteCompiler.delete() }
    } catch {
      problem = problem ?? error
      return self
    }
  }

  /// Commits the writes, all or none. Returns at once when nothing was added.
  ///
  /// - Parameter durability: what the commit survives; the database's own when nil.
  /// - Throws: `.invalidArgument` when the path of a delete is wrong; `.notFound`, `.alreadyExists`
  ///   or `.aborted`, naming the document whose state does not fit a write; `.resourceExhausted`
  ///   when the commit is over 64 MiB; `.failedPrecondition` when the batch was committed before;
  ///   `.cancelled` when the task was cancelled in time. A batch that threw must not be committed
  ///   again; make another.
  /// - Complexity: O(log n) in the documents for each write, and O(bytes written).
  public func commit(durability: Durability? = nil) async throws(DatabaseError) {
    _ = try await complete(durability: durability)
  }

  /// Like `commit(durability:)`, and also returns what the commit did; nil when nothing was added.
  package func complete(
    durability: Durability?
  ) async throws(DatabaseError) -> CompletedCommit? {
    guard !isCommitted else {
      throw DatabaseError(
        .failedPrecondition, "a batch can be committed once; make another for further writes")
    }
    isCommitted = true
    if let problem { throw problem }
    guard !isEmpty else { return nil }
    if puts.isEmpty { return try await database.commit(writes, durability: durability) }
    var contents: [StagedContent] = []
    // From the last place on, so that earlier places stay valid.
    for (place, put) in puts.reversed() {
      let (content, write) = try await put.stage(in: database)
      contents.append(content)
      writes.insert(write, at: place)
    }
    return try await database.commit(writes, bringing: contents, durability: durability)
  }

  /// Adds a put, after the writes so far.
  func add(_ put: StoragePut) throws(DatabaseError) {
    try refuseWhenCommitted(put.document)
    puts.append((writes.count, put))
  }

  /// Adds a compiled write.
  func add(_ write: DocumentWrite) throws(DatabaseError) {
    try refuseWhenCommitted(write.path)
    writes.append(write)
  }

  private func refuseWhenCommitted(_ path: DocumentPath) throws(DatabaseError) {
    guard !isCommitted else {
      throw DatabaseError(
        .failedPrecondition, "the batch was committed; make another for further writes",
        path: path.name)
    }
  }

  /// The document's row, if it can be encoded at once.
  private func row<Content: Encodable>(
    of content: Content, _ document: DocumentReference, _ encoder: DocumentEncoder
  ) -> EncodedRow? {
    guard case .success(let path) = document.place else { return nil }
    return rowEncoders.encoder(for: path, in: database)?.row(of: content, encoder)
  }

  private func add(
    _ document: DocumentReference, _ version: Version?,
    _ compile: () throws(DatabaseError) -> WriteIntent
  ) throws(DatabaseError) -> WriteBatch {
    let path = try document.place.get()
    guard document.database === database else {
      throw DatabaseError(
        .invalidArgument, "the document is in another database than the batch", path: "\(path)")
    }
    try refuseWhenCommitted(path)
    do throws(DatabaseError) {
      var intent = try compile()
      if let version { intent.precondition = .version(version) }
      writes.append(DocumentWrite(path: path, intent: intent))
      return self
    } catch {
      throw error.at(path: "\(path)")
    }
  }
}

extension Database {
  /// An empty batch of writes.
  public func batch() -> WriteBatch {
    WriteBatch(database: self)
  }
}
