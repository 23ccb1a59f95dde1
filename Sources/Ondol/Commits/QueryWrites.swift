// Updates or deletes every document that a query finds. A small result is one transaction. A large
// result is found once, as of one moment, and written in commits of bounded size. Each of these
// checks again whether its documents still meet the conditions.

internal import OndolEngine

/// How far a write by query has come.
public struct QueryWriteProgress: Sendable, Hashable {
  /// Documents written so far.
  public var written: Int
  /// Documents skipped because they no longer met the conditions.
  public var passedOver: Int
}

extension QuerySource {
  /// Updates every document that the query finds, and returns their number. Firestore has no such
  /// call.
  ///
  /// Up to 500 documents are one transaction: all or none of them are updated, and no reader sees
  /// some without the others. A larger result is found as of one moment and updated in commits of
  /// 500. Each of these checks again, and skips a document that no longer meets the query's
  /// conditions. When the call ends early, by an error, a cancelled task or a crash, the previous
  /// commits stay. Calling it again updates the documents that still meet the conditions. So if an
  /// update must not happen twice, as with `FieldValue.increment(_:)`, make it end the condition:
  /// `["count": .increment(1), "round": 2]` where `round` is 1.
  ///
  /// ```swift
  /// try await items.whereField("price", isLessThan: 5).updateDocuments(["cheap": true])
  /// ```
  ///
  /// - Parameters:
  ///   - data: as for `DocumentReference.updateData(_:returning:ifVersion:durability:)`.
  ///   - durability: what each commit survives; the database's own when nil.
  ///   - progress: called with the progress after each commit.
  /// - Throws: `.invalidArgument` before anything is written when `data` makes no sense, and as
  ///   `getDocuments()` and `Database.runTransaction(attempts:durability:_:)`.
  /// - Complexity: the query's, and for each document that of an update.
  @discardableResult
  public func updateDocuments(
    _ data: [String: (any FieldContent)?], durability: Durability? = nil,
    progress: (QueryWriteProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> Int {
    try await updateDocuments(
      data.map { (FieldPath($0.key), $0.value) }, durability: durability, progress)
  }

  /// Deletes every document that the query finds, and returns their number. Collections below them
  /// stay, unless `recursive`. In all other respects like
  /// `updateDocuments(_:durability:progress:)`.
  ///
  /// - Parameters:
  ///   - recursive: whether to also delete everything below the documents.
  ///   - durability: what each commit survives; the database's own when nil.
  ///   - progress: called with the progress after each commit.
  /// - Throws: as `updateDocuments(_:durability:progress:)`.
  @discardableResult
  public func deleteDocuments(
    recursive: Bool = false, durability: Durability? = nil,
    progress: (QueryWriteProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> Int {
    try await QueryWriting(
      query: query, durability: durability, intent: WriteCompiler.delete(), isRecursive: recursive
    ).run(progress)
  }

  func updateDocuments(
    _ data: [(FieldPath, (any FieldContent)?)], durability: Durability?,
    _ progress: (QueryWriteProgress) -> Void
  ) async throws(DatabaseError) -> Int {
    let intent = try WriteCompiler.update(FieldInput.inputs(data), precondition: .exists(true))
    return try await QueryWriting(query: query, durability: durability, intent: intent)
      .run(progress)
  }
}

/// A write of everything that a query finds.
private struct QueryWriting: Sendable {
  let query: Query
  let durability: Durability?
  /// What happens to each document.
  var intent: WriteIntent
  /// Whether everything below the documents is also deleted.
  var isRecursive = false

  /// Documents of one commit.
  private static let batchCount = 500

  func run(_ progress: (QueryWriteProgress) -> Void) async throws(DatabaseError) -> Int {
    let shape = try query.shape.get()
    let normal = try NormalQuery(shape)
    try query.database.refuseWriteInTransaction()
    var state = QueryWriteProgress(written: 0, passedOver: 0)
    // Ids are enough, and usually an index has them.
    var found = query.select([]).documents.makeAsyncIterator()
    var batch: [DocumentReference] = []
    try await fill(&batch, with: Self.batchCount + 1, of: &found)
    if batch.count <= Self.batchCount, let count = try await writeAtOnce() {
      state.written = count
      progress(state)
      return count
    }
    while !batch.isEmpty {
      try refuseWhenCancelled("call again for the documents that still meet the conditions")
      let next = Array(batch.prefix(Self.batchCount))
      let written = try await write(next, shape, normal)
      state.written += written
      state.passedOver += next.count - written
      progress(state)
      batch.removeFirst(next.count)
      try await fill(&batch, with: Self.batchCount, of: &found)
    }
    return state.written
  }

  /// Adds documents until there are `count`, or no more.
  private func fill(
    _ batch: inout [DocumentReference], with count: Int,
    of found: inout QueryDocuments.AsyncIterator
  ) async throws(DatabaseError) {
    while batch.count < count, let document = try await found.next() {
      batch.append(document.reference)
    }
  }

  /// Writes the result as of the commit; nil when it has become too large for one commit.
  private func writeAtOnce() async throws(DatabaseError) -> Int? {
    let ids = query.select([])
    return try await transaction { (transaction) throws(DatabaseError) in
      let documents = try transaction.getDocuments(ids).documents
      guard documents.count <= Self.batchCount else { return nil }
      for document in documents { try write(document.reference, transaction) }
      return documents.count
    }
  }

  private func write(
    _ document: DocumentReference, _ transaction: Transaction
  ) throws(DatabaseError) {
    if isRecursive { return try transaction.deleteDocument(document, recursive: true) }
    try transaction.add(document, nil) { () throws(DatabaseError) in intent }
  }

  /// Writes the documents that still meet the conditions, and returns their number.
  private func write(
    _ batch: [DocumentReference], _ shape: QueryShape, _ normal: NormalQuery
  ) async throws(DatabaseError) -> Int {
    guard isRecursive else {
      var intent = intent
      intent.precondition = .meets(
        DocumentCondition { normal.matches($0, name: shape.name(of: $1)) })
      var writes: [DocumentWrite] = []
      writes.reserveCapacity(batch.count)
      for document in batch {
        writes.append(DocumentWrite(path: try document.place.get(), intent: intent))
      }
      let commit = try await query.database.commit(writes, durability: durability)
      return commit.documents.count { !$0.isUntouched }
    }
    return try await transaction { (transaction) throws(DatabaseError) in
      var count = 0
      for reference in batch {
        let document = try transaction.getDocument(reference)
        let name = shape.name(of: try reference.place.get())
        guard document.exists, normal.matches(document.data(), name: name) else { continue }
        try write(reference, transaction)
        count += 1
      }
      return count
    }
  }

  private func transaction<R: Sendable>(
    _ body: @escaping @Sendable (Transaction) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    let database = query.database
    do {
      return try await database.derive(attempts: .max, durability: durability) { snapshot in
        try await database.read(snapshot) { (rows) throws(DatabaseError) in
          let transaction = Transaction(database, rows)
          let result = try body(transaction)
          return (result, try transaction.finish()(rows))
        }
      }.result
    } catch let error as DatabaseError {
      throw error
    } catch {
      throw DatabaseError(.internal, "\(error)", path: "\(query)")
    }
  }
}
