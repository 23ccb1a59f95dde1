// Gives a root collection a key of its own. The engine makes the key and stores it before the
// catalog has a family with its number, so that no commit is ever sealed with a key that a crash
// takes. A crash between the two leaves a number that no family has, which the next collection
// gets.

internal import OndolEngine

extension CollectionReference {
  /// Creates the collection, which must not exist yet, with a key of its own. That key seals its
  /// documents, their indexes, everything below it, and its changes in the change feed. The keys of
  /// such collections are in the file `KEYS`, which backups leave out by default. `drop()` erases
  /// the key, and with it the collection from all copies without that file.
  ///
  /// ```swift
  /// let records = database.collection("records")
  /// try await records.createWithOwnKey()
  /// try await records.document("a").setData(["name": "Ada"])
  /// try await records.drop(includingDeclarations: true)   // erased, in backups too
  /// ```
  ///
  /// In all other respects it is an ordinary collection. When its key is missing, as in a database
  /// restored from such a backup, every call that concerns its documents throws
  /// `.permissionDenied`. The collection is still listed, and can be dropped.
  ///
  /// Contents put with `Storage.put(_:for:contentType:expecting:durability:)` are erased with it.
  /// All others stay under the key of the database, and so do the names of the collection, its
  /// fields and its indexes, the contents of declarations, and the number of documents.
  ///
  /// - Throws: `.alreadyExists` when there is such a collection, even one without documents that
  ///   has declarations or was written once; `.invalidArgument` when the path is wrong or leads
  ///   below a document; `.failedPrecondition` when the database is not encrypted, is open for
  ///   reading only, or is closed, and when `OndolSync` follows the collection, one below it, or a
  ///   group of collections; `.resourceExhausted` when 32 collections have keys of their own;
  ///   `.permissionDenied` while keys of other collections are missing; `.unimplemented` on a
  ///   server; otherwise as writes do.
  /// - Complexity: a few small writes, synced.
  public func createWithOwnKey() async throws(DatabaseError) {
    let path = try place.get()
    try database.refuseInTransaction("createWithOwnKey", "\(path)")
    guard path.parent == nil else {
      throw DatabaseError(
        .invalidArgument, "only a collection at the top can have a key of its own",
        suggestion: "create '\(path.segments[0])' with one, and all below it has it",
        path: "\(path)")
    }
    try await database.createFamilyWithOwnKey(path.collectionID)
  }

  /// Whether the collection was created with `createWithOwnKey()`, or is below a document of one
  /// that was. The key itself may be missing.
  ///
  /// - Throws: `.invalidArgument` when the path is wrong; otherwise as reads do.
  /// - Complexity: one lookup.
  public func hasOwnKey() async throws(DatabaseError) -> Bool {
    let root = try place.get().segments[0]
    return try await database.read(try database.engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.catalog.listedFamily(root, in: rows)?.hasOwnKey ?? false
    }
  }
}

extension Database {
  fileprivate func createFamilyWithOwnKey(_ root: String) async throws(DatabaseError) {
    try refuseOwnKeys()
    if catalog.witness?.followed.mayContain(root: root) == true {
      throw Self.followedWithOwnKey(root)
    }
    try await withSpareGroup { (rows) throws(DatabaseError) in
      try rows.refuseKnown(root)
    } makeFamily: { (group) async throws(DatabaseError) in
      _ = try await commit(.catalog(root: root), durability: nil) {
        (snapshot) throws(DatabaseError) in
        var edit = try await read(snapshot) { (rows) throws(DatabaseError) in
          try rows.refuseKnown(root)
          var edit = CatalogEdit(newFamily: root, inGroup: group, in: rows)
          _ = try edit.collection(CollectionPattern([root]))
          return edit
        }
        var derivation = Derivation(outcome: (), batch: Batch())
        derivation.batch.basis = snapshot.sequence
        edit.write(to: &derivation.batch)
        derivation.batch.note = CommitNote(.readAnew(root: root))
        derivation.consequences.rereadRoots = [root]
        derivation.consequences.edits = [edit]
        return derivation
      }
    }
  }

  private static func followedWithOwnKey(_ root: String) -> DatabaseError {
    DatabaseError(
      .failedPrecondition,
      "a collection with a key of its own is not kept equal to a server's: writes that wait for the"
        + " server are kept outside of it, where its key does not erase them",
      suggestion: "unfollow it, or the group of collections that may be in it", path: root)
  }

  /// Throws `.failedPrecondition` when documents of a source may be in a collection with a key of
  /// its own.
  ///
  /// - Throws: also as reads do.
  package func refuseOwnKeys(
    of source: QueryDescription.Source
  ) async throws(DatabaseError) {
    for root in try await families().filter(\.hasOwnKey).map(\.root) {
      switch source {
      case .group: throw Self.followedWithOwnKey(root)
      case .collection(let path):
        if isSame(path.segments[0], root) { throw Self.followedWithOwnKey(root) }
      }
    }
  }

  /// Throws when no collection can have a key of its own.
  func refuseOwnKeys() throws(DatabaseError) {
    if isOnStore {
      throw DatabaseError(
        .unimplemented,
        "on a server no collection has a key of its own: nothing is encrypted there", path: path)
    }
    if !isEncrypted {
      throw DatabaseError(
        .failedPrecondition,
        "the database is not encrypted, and only in one that is can a collection have a key of its"
          + " own", suggestion: "encrypt the database with encrypt(with:) first", path: path)
    }
  }

  /// Runs `makeFamily` with the number of a group that no family has.
  ///
  /// - Parameter check: throws when no family must be made, so that a caller that waited while
  ///   another made it does not make a useless key.
  func withSpareGroup<R>(
    check: @escaping @Sendable (Rows) throws(DatabaseError) -> Void = { _ in },
    makeFamily: (UInt32) async throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    try await latches.acquire(.ownKeys)
    defer { latches.release(.ownKeys) }
    return try await makeFamily(try await spareGroup(check))
  }

  /// Throws `.failedPrecondition` when a collection has a key of its own. Erases a key that a crash
  /// has left without a collection.
  func refuseCollectionsWithOwnKeys() async throws(DatabaseError) {
    try await latches.acquire(.ownKeys)
    defer { latches.release(.ownKeys) }
    let names = try await families().filter(\.hasOwnKey).map(\.root)
    let dropped = try await droppedFamilies().filter { $0.number >= Keyspace.commonFamilyLimit }
    guard names.isEmpty, dropped.isEmpty else {
      throw DatabaseError(
        .failedPrecondition,
        names.isEmpty
          ? "a collection with a key of its own is being removed"
          : "collections have keys of their own: \(names.sorted().joined(separator: ", "))",
        suggestion: "drop them with their declarations first", path: path)
    }
    for group in engine.keyedGroups.keys {
      try await rethrowing { () async throws(EngineError) in
        try await engine.dropKeyedGroup(group)
      }
    }
  }

  private func spareGroup(
    _ check: @escaping @Sendable (Rows) throws(DatabaseError) -> Void
  ) async throws(DatabaseError) -> UInt32 {
    // The catalog first: of a family that is dropped meanwhile, the group is removed before the
    // record.
    let taken = try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try check(rows)
      return Set(
        try rows.catalog.families(in: rows).map(\.row.number)
          + rows.droppedFamilies().map(\.number))
    }
    let groups = engine.keyedGroups
    let spare = groups.filter { $0.value && !taken.contains($0.key) }.keys.min()
    if let spare { return spare }
    guard groups.count < KeyedGroups.mostAtOnce else {
      throw DatabaseError(
        .resourceExhausted,
        "\(groups.count) collections have keys of their own, and no more can have one at once",
        suggestion: "drop one, with its declarations", path: path)
    }
    // A file with only the new key would replace the one that must come back.
    guard groups.values.allSatisfy(\.self) else {
      throw DatabaseError(
        .permissionDenied,
        "no collection gets a key of its own while keys of others are not here: the file KEYS is"
          + " missing or lacks them",
        suggestion: "put the file KEYS back, or drop those collections with their declarations",
        path: path)
    }
    return try await rethrowing { () async throws(EngineError) in
      try await engine.makeKeyedGroup()
    }
  }
}

extension Rows {
  /// Throws `.alreadyExists` when there is a root collection with the name.
  fileprivate func refuseKnown(_ root: String) throws(DatabaseError) {
    guard try catalog.listedFamily(root, in: self) != nil else { return }
    throw DatabaseError(
      .alreadyExists,
      "there is a collection '\(root)', and only a new one can get a key of its own",
      suggestion: "drop it with drop(includingDeclarations: true) first", path: root)
  }
}
