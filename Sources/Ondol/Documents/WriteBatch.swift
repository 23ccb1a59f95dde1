// Several writes that happen together or not at all. The first half of the write path once for each
// of them, on the caller and without suspension; the rest is WritePath, once for all.

/// Writes to any documents that become one commit.
///
/// Writes are applied in the order they were added; several may be to one document. A batch is used
/// by one task and committed once.
public final class WriteBatch {
  private let database: Database
  private var writes: [DocumentWrite] = []
  private var isCommitted = false

  init(database: Database) {
    self.database = database
  }

  /// The number of writes added.
  public var count: Int { writes.count }

  /// Adds a write as `DocumentReference.setData(_:merge:returning:ifVersion:durability:)` does it.
  ///
  /// - Throws: `.invalidArgument` naming the document and the field; the batch stays as it was.
  public func setData(
    _ data: [String: (any FieldContent)?], forDocument document: DocumentReference,
    merge: Bool = false
  ) throws(DatabaseError) {
    try add(document) { () throws(DatabaseError) in
      let fields = try FieldInput.fields(data)
      return try merge ? WriteCompiler.merge(fields) : WriteCompiler.set(fields)
    }
  }

  /// Adds a write as `DocumentReference.setData(from:merge:returning:ifVersion:durability:)` does
  /// it.
  ///
  /// - Throws: `.invalidArgument` naming the document and the field; the batch stays as it was.
  public func setData<Content: Encodable>(
    from content: Content, forDocument document: DocumentReference, merge: Bool = false
  ) throws(DatabaseError) {
    try add(document) { () throws(DatabaseError) in
      let fields = try DocumentEncoder().inputs(of: content)
      return try merge ? WriteCompiler.merge(fields) : WriteCompiler.set(fields)
    }
  }

  /// Adds a write that replaces the fields the keys lead to, dots leading into maps. The commit
  /// throws `.notFound` when the document does not exist then.
  ///
  /// - Throws: `.invalidArgument` naming the document and the field; the batch stays as it was.
  public func updateData(
    _ data: [String: (any FieldContent)?], forDocument document: DocumentReference
  ) throws(DatabaseError) {
    try add(document) { () throws(DatabaseError) in
      let inputs = try FieldInput.inputs(data.map { (FieldPath($0.key), $0.value) })
      return try WriteCompiler.update(inputs, precondition: .exists(true))
    }
  }

  /// Adds a delete, which does nothing when the document does not exist.
  ///
  /// - Throws: `.invalidArgument` when the document's path is wrong.
  public func deleteDocument(_ document: DocumentReference) throws(DatabaseError) {
    try add(document) { () throws(DatabaseError) in WriteCompiler.delete() }
  }

  /// Commits the writes: all of them, in one step for every reader, or none. Without writes it does
  /// nothing.
  ///
  /// - Parameter durability: what the commit survives; the database's own when nil.
  /// - Throws: `.failedPrecondition` when the batch was committed before, `.notFound` when a
  ///   document to update does not exist, `.resourceExhausted` when the commit has over 64 MiB,
  ///   `.cancelled` when the task was cancelled in time.
  /// - Complexity: O(n log n) in the writes.
  public func commit(durability: Durability? = nil) async throws(DatabaseError) {
    guard !isCommitted else {
      throw DatabaseError(
        .failedPrecondition, "the batch was committed already; make another with `batch()`")
    }
    isCommitted = true
    guard !writes.isEmpty else { return }
    _ = try await database.commit(writes, durability: durability)
  }

  private func add(
    _ document: DocumentReference, _ compile: () throws(DatabaseError) -> WriteIntent
  ) throws(DatabaseError) {
    guard document.database === database else {
      throw DatabaseError(
        .invalidArgument, "the document is in another database than the batch",
        path: document.path)
    }
    let path = try document.place.get()
    do throws(DatabaseError) {
      writes.append(DocumentWrite(path: path, intent: try compile()))
    } catch {
      throw error.at(path: "\(path)")
    }
  }
}

extension Database {
  /// An empty batch, to gather writes that happen together or not at all.
  public func batch() -> WriteBatch {
    WriteBatch(database: self)
  }
}
