// Operations on objects apart from their bytes: metadata, deleting, copying and moving. Each is one
// commit on the path's document and touches no bytes, because a copy is only one more holder.

internal import OndolEngine

extension StorageReference {
  /// The metadata of the object here.
  ///
  /// - Throws: `.notFound` when there is no object; `.invalidArgument` when the path is wrong.
  /// - Complexity: one lookup.
  public func getMetadata() async throws(DatabaseError) -> StorageMetadata {
    try database.refuseReadInTransaction(fullPath)
    return try await readMetadata()
  }

  /// Like `getMetadata()`, but also works in the body of a transaction.
  func readMetadata() async throws(DatabaseError) -> StorageMetadata {
    let path = try document()
    let reference = DocumentReference(database: database, place: .success(path))
    guard let metadata = StorageMetadata(try await reference.readDocument()) else {
      throw StorageCondition.missing(fullPath)
    }
    return metadata
  }

  /// Whether there is an object here.
  ///
  /// - Throws: `.invalidArgument` when the path is wrong.
  /// - Complexity: one lookup.
  public func exists() async throws(DatabaseError) -> Bool {
    let reference = DocumentReference(database: database, place: .success(try document()))
    return try await reference.getDocument().exists
  }

  /// Changes the properties of the object's metadata that were assigned in `metadata`. An assigned
  /// nil clears a property. Raises the metageneration; generation and bytes stay.
  ///
  /// - Parameters:
  ///   - metadata: the properties to change: those that were assigned.
  ///   - generation: the generation that the object must have; any when nil.
  ///   - metageneration: the metageneration it must have; any when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Returns: the new metadata.
  /// - Throws: `.notFound` when there is no object; `.aborted` when it has another generation or
  ///   metageneration; `.invalidArgument` when the metadata is invalid.
  /// - Complexity: as an update of a document, whatever the bytes.
  @discardableResult
  public func updateMetadata(
    _ metadata: StorageMetadata, ifGeneration generation: Int64? = nil,
    ifMetageneration metageneration: Int64? = nil, durability: Durability? = nil
  ) async throws(DatabaseError) -> StorageMetadata {
    try metadata.check()
    let path = try document()
    let condition = StorageCondition(
      exists: true, generation: generation, metageneration: metageneration)
    let commit = try await database.commit(
      [DocumentWrite(path: path, intent: metadata.update(condition))], durability: durability)
    return try commit.metadata(of: path, in: database)
  }

  /// Deletes the object here. Ondol deletes its content after the last holder.
  ///
  /// - Parameters:
  ///   - generation: the generation that the object must have; any when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Throws: `.notFound` when there is no object; `.failedPrecondition`, naming the document,
  ///   when one links to this path; `.aborted` when the object has another generation.
  /// - Complexity: as a delete of a document, whatever the bytes.
  public func delete(
    ifGeneration generation: Int64? = nil, durability: Durability? = nil
  ) async throws(DatabaseError) {
    let condition = StorageCondition(exists: true, generation: generation)
    let intent = WriteCompiler.delete(precondition: .object(condition))
    _ = try await database.commit(
      [DocumentWrite(path: try document(), intent: intent)], durability: durability)
  }

  /// Copies the object here to another path of the same database, including its metadata, in one
  /// commit. The copy has a generation of its own.
  ///
  /// - Parameters:
  ///   - target: where the copy goes.
  ///   - generation: the generation that an object there must have; 0 when there must be none, any
  ///     when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Returns: the copy's metadata.
  /// - Throws: `.notFound` when there is no object here; `.invalidArgument` when the target is in
  ///   another database; `.aborted` or `.alreadyExists` when the object there has another
  ///   generation.
  /// - Complexity: as a write of a document, whatever the bytes.
  @discardableResult
  public func copy(
    to target: StorageReference, ifGeneration generation: Int64? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> StorageMetadata {
    try await transfer(to: target, generation, durability, isMove: false)
  }

  /// Moves the object here to another path of the same database, in one commit: no reader sees it
  /// at both paths, or at neither.
  ///
  /// - Parameters:
  ///   - target: where the object goes.
  ///   - generation: the generation that an object there must have; 0 when there must be none, any
  ///     when nil.
  ///   - durability: what the commit survives; the database's own when nil.
  /// - Returns: the metadata at the target, with a generation of its own.
  /// - Throws: as `copy(to:ifGeneration:durability:)`; `.failedPrecondition`, naming the document,
  ///   when one links to this path.
  /// - Complexity: as two writes of documents, whatever the bytes.
  @discardableResult
  public func move(
    to target: StorageReference, ifGeneration generation: Int64? = nil,
    durability: Durability? = nil
  ) async throws(DatabaseError) -> StorageMetadata {
    try await transfer(to: target, generation, durability, isMove: true)
  }

  private func transfer(
    to target: StorageReference, _ generation: Int64?, _ durability: Durability?, isMove: Bool
  ) async throws(DatabaseError) -> StorageMetadata {
    guard target.database === database else {
      throw DatabaseError(
        .invalidArgument, "an object can only be copied within its database", path: fullPath)
    }
    let path = try target.document()
    let condition = StorageCondition(generation: generation)
    let commit = try await database.deriveWrites(durability) {
      (transaction) throws(DatabaseError) in
      try transaction.copyObject(from: self, to: target, condition)
      if isMove, self != target { try transaction.deleteObject(self) }
    }
    return try commit.metadata(of: path, in: database)
  }
}

extension Database {
  /// Commits what `body` reads and writes, and retries as often as needed.
  func deriveWrites(
    _ durability: Durability?, _ body: (Transaction) throws(DatabaseError) -> Void
  ) async throws(DatabaseError) -> CompletedCommit {
    do {
      return try await run(attempts: .max, durability: durability) { try body($0) }.commit
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw DatabaseError(.internal, "\(error)")
    }
  }
}
