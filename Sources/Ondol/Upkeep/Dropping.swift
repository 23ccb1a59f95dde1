// Drops indexes and collections. First the catalog releases the keyspaces, in one commit: from then
// on nothing is read or written there, and no number is used again. Then the rows are removed. The
// catalog records the remaining work until it is done, so a crash only delays it. The key of a
// collection that has one of its own is erased as the last step before that record is removed.

internal import OndolEngine

extension Database {
  /// Drops an index, if it exists.
  func dropIndex(
    _ keyspace: Keyspace, of pattern: CollectionPattern
  ) async throws(DatabaseError) {
    let isOfWords = try await changeCatalog(of: pattern.root) { (edit) throws(DatabaseError) in
      let indexes = edit.family.collections[pattern]?.allIndexes ?? []
      guard let index = indexes.first(where: { $0.keyspace == keyspace }) else { return false }
      edit.drop(index, from: pattern)
      return index.kind.isOfWords
    }
    // Live searches switch to another index, if there is one, and use its terms.
    if isOfWords { observers.invalidate(below: pattern.root) }
    // A builder notices this at its next commit.
    try await latches.acquire(.index(keyspace))
    latches.release(.index(keyspace))
    try await removeRows(of: keyspace)
  }

  /// Removes the rows of a dropped index, and its row in the catalog.
  func removeRows(of keyspace: Keyspace) async throws(DatabaseError) {
    try await drop([keyspace])
    try await removeRow(CatalogKey.keyspace(keyspace))
  }

  /// Removes all documents of a root collection and everything below it; removes its declarations
  /// only on request.
  func dropFamily(_ root: String, includingDeclarations: Bool) async throws(DatabaseError) {
    var parting = try await letGo(ofFamily: root, includingDeclarations: includingDeclarations)
    if case .needsGroup = parting {
      parting = try await withSpareGroup { (group) async throws(DatabaseError) in
        try await letGo(
          ofFamily: root, includingDeclarations: includingDeclarations, goingOnIn: group)
      }
    }
    if case .done(let family) = parting { try await removeRows(of: family) }
  }

  /// Releases the family's keyspaces. Remaining declarations are declared in a new family, in the
  /// same commit, so that the numbers of keyspaces are not used again.
  ///
  /// - Parameter group: the new group of a family that has a key of its own. The key was made
  ///   before, so that no commit needs a key that is not on the device.
  private func letGo(
    ofFamily root: String, includingDeclarations: Bool, goingOnIn group: UInt32? = nil
  ) async throws(DatabaseError) -> Parting {
    try await commit(.catalog(root: root), durability: nil) { (snapshot) throws(DatabaseError) in
      let found = try await read(snapshot) { (rows) throws(DatabaseError) in
        try rows.farewell(
          toFamily: root, includingDeclarations: includingDeclarations, goingOnIn: group)
      }
      guard var found else { return Derivation(outcome: .nothing, batch: Batch()) }
      if found.needsGroup { return Derivation(outcome: .needsGroup, batch: Batch()) }
      let dropped = DroppedFamily(found.family)
      var batch = Batch()
      batch.basis = snapshot.sequence
      batch.dropsKeyspaces = true
      found.write(to: &batch)
      batch.putCatalogRow(CatalogKey.droppedFamily(dropped.number), dropped.bytes)
      batch.note = CommitNote(.readAnew(root: root))
      if catalog.keepsChanges { batch.annotate(ChangeRecord.dropped(root: root).bytes) }
      var consequences = CommitConsequences(rereadRoots: [root], releasesContents: true)
      if let successor = found.successor {
        consequences.edits = [successor]
      } else {
        consequences.forgotten = found.family
      }
      return Derivation(outcome: .done(dropped), batch: batch, consequences: consequences)
    }.outcome
  }

  /// Removes the rows of a dropped family, its key if it has one, and the record of the drop.
  func removeRows(of family: DroppedFamily) async throws(DatabaseError) {
    // Without its key, the paths that its documents linked are unknown, and they stay.
    if !catalog.keys.isLocked(family: family.number) {
      for link in family.links { try await release(pathsOf: link) }
    }
    try await release(contentsHeldIn: family)
    // Not number 0: that of family 1 is the mirror.
    let members = stride(from: Keyspace.firstMember, to: family.members, by: 1)
    try await drop(members.map { Keyspace(family: family.number, member: $0) })
    try await contents.release(heldByFamily: family.number)
    if family.number >= Keyspace.commonFamilyLimit {
      try await rethrowing { () async throws(EngineError) in
        try await engine.dropKeyedGroup(family.number)
      }
    }
    try await removeRow(CatalogKey.droppedFamily(family.number))
  }

  private func drop(_ keyspaces: [Keyspace]) async throws(DatabaseError) {
    try await rethrowing { () async throws(EngineError) in
      try await engine.drop(keyspaces: keyspaces.map(\.rawValue))
    }
  }

  private func removeRow(_ key: [UInt8]) async throws(DatabaseError) {
    var batch = Batch()
    batch.deleteCatalogRow(key)
    try await rethrowing { () async throws(EngineError) in
      _ = try await engine.commit(batch, durability: .process)
    }
  }
}

/// The result of releasing a family.
private enum Parting: Sendable {
  /// There was none, or all of it stays.
  case nothing
  /// It continues with its declarations, and needs another key for that.
  case needsGroup
  case done(DroppedFamily)
}

/// A dropped root collection whose rows are being removed.
struct DroppedFamily: Sendable {
  var number: UInt32
  /// The number that its next keyspace would have got.
  var members: UInt32
  /// The keyspaces of its links: the paths in their rows that nothing else links must be removed.
  var links: [Keyspace] = []

  init(_ family: Family) {
    number = family.row.number
    members = family.row.nextMember
    links = family.collections.values.flatMap { $0.links.map(\.keyspace) }
      .sorted { $0.rawValue < $1.rawValue }
  }

  /// The record's contents about a family.
  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendVarint(UInt64(members))
    for link in links { bytes.appendVarint(UInt64(link.rawValue % Keyspace.familyCapacity)) }
    return bytes
  }

  init(number: UInt32, _ bytes: RawSpan) throws(MalformedBytes) {
    self.number = number
    var reader = ByteReader(bytes)
    members = UInt32(try reader.count(atMost: Int(Keyspace.familyCapacity)))
    while !reader.isAtEnd {
      let member = UInt32(try reader.count(atMost: Int(Keyspace.familyCapacity) - 1))
      links.append(Keyspace(family: number, member: member))
    }
  }
}

/// A family to remove.
private struct Farewell: Sendable {
  var family: Family
  /// The keys of its rows in the catalog except the first.
  var keys: [[UInt8]]
  /// The family that replaces it.
  var successor: CatalogEdit?
  /// Whether the replacement needs a key of its own, and none was given.
  var needsGroup = false

  mutating func write(to batch: inout Batch) {
    for key in keys { batch.deleteCatalogRow(key) }
    if successor != nil {
      successor?.write(to: &batch)
    } else {
      let key = CatalogKey.family(family.root)
      batch.guardUnchanged(key.bytes)
      batch.deleteCatalogRow(key)
    }
  }
}

extension Rows {
  /// The work to release a family. Nil when there is none, or when all of it stays.
  fileprivate func farewell(
    toFamily root: String, includingDeclarations: Bool, goingOnIn group: UInt32?
  ) throws(DatabaseError) -> Farewell? {
    guard let family = try catalog.listedFamily(root, in: self) else { return nil }
    var successor: CatalogEdit?
    if !includingDeclarations, family.collections.values.contains(where: \.isDeclared) {
      guard try hasDocument(in: family) else { return nil }
      if !family.hasOwnKey {
        successor = try CatalogEdit(newFamily: root, following: nil, in: self)
      } else if let group {
        successor = CatalogEdit(newFamily: root, inGroup: group, in: self)
      } else {
        return Farewell(family: family, keys: [], needsGroup: true)
      }
      try successor?.declare(asIn: family)
    }
    let (lower, upper) = CatalogKey.keyspaces(ofFamily: family.row.number)
    var walk = RangeWalk(self, [KeyRange(lower: lower, upper: upper)])
    var keys: [[UInt8]] = []
    while try walk.next() { keys.append(walk.cursor.key.array) }
    return Farewell(family: family, keys: keys, successor: successor)
  }

  /// Whether there is a document in it, or this is unknown without its key.
  private func hasDocument(in family: Family) throws(DatabaseError) -> Bool {
    if catalog.keys.isLocked(family) { return true }
    for entry in family.collections.values {
      var walk = RangeWalk(self, [KeyRange(prefix: entry.keyspace.prefix)])
      if try walk.next() { return true }
    }
    return false
  }
}

extension Database {
  /// The families whose rows must still be removed.
  func droppedFamilies() async throws(DatabaseError) -> [DroppedFamily] {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.droppedFamilies()
    }
  }
}

extension Rows {
  func droppedFamilies() throws(DatabaseError) -> [DroppedFamily] {
    var families: [DroppedFamily] = []
    let prefix = CatalogKey.droppedFamilies
    var walk = RangeWalk(self, [KeyRange(prefix: prefix)])
    while try walk.next() {
      let members = try walk.value.array
      do throws(MalformedBytes) {
        var reader = ByteReader(walk.cursor.key)
        _ = try reader.take(prefix.count)
        let number = UInt32(bigEndian: try reader.littleEndian())
        families.append(try DroppedFamily(number: number, members.bytes))
      } catch {
        throw DatabaseError(catalog: error)
      }
    }
    return families
  }
}

extension CollectionReference {
  /// Drops an index and frees its space. Queries that it served scan from now on. Does nothing when
  /// there is none with the name.
  ///
  /// This also drops the index for all collections with the same names below other documents.
  ///
  /// - Parameter name: from `listIndexes()` or `createIndex`.
  /// - Throws: `.failedPrecondition` when the index is a collection group's; otherwise as a write.
  /// - Complexity: O(segments): the rows are left out when the files that contain them are next
  ///   rewritten.
  public func dropIndex(named name: String) async throws(DatabaseError) {
    try database.refuseInTransaction("dropIndex", path)
    let pattern = CollectionPattern(try place.get())
    let family = try await database.family(pattern.root)
    let entry = family?.collections[pattern]
    let indexes = (entry?.indexes ?? []) + (entry?.searches ?? [])
    guard let index = indexes.first(where: { ExactText($0.name) == ExactText(name) }) else {
      return
    }
    guard !index.kind.isOfGroup else {
      throw DatabaseError(
        .failedPrecondition,
        "the index '\(name)' belongs to the collection group '\(pattern.collectionID.text)'; drop"
          + " it there", path: path)
    }
    try await database.dropIndex(index.keyspace, of: pattern)
  }

  /// Deletes all documents of the collection and everything below them, which Firestore's clients
  /// cannot. Declarations stay: indexes, including unique ones and those of arrays, links, times to
  /// live and schemas, here and below. They apply to documents written afterwards.
  ///
  /// A collection at the top is dropped in one commit, and its space is freed. If a crash
  /// interrupts the rest, the next open completes it. For a collection created with
  /// `createWithOwnKey()`, this also erases the key before it returns: its documents are then
  /// unreadable, here and in copies that were made without keys. The remaining declarations get
  /// another key.
  ///
  /// A collection below a document is deleted a few hundred documents at a time, so that it may be
  /// larger than a commit. Readers see it shrink, and documents written meanwhile may be deleted or
  /// stay. When this throws, or a crash ends it, some documents are deleted and the others are
  /// intact; call it again for the rest. If all must be deleted at once and fit into one commit,
  /// use `DocumentReference.delete(recursive:)` of the document above.
  ///
  /// - Parameter includingDeclarations: also removes the declarations, as if the collection had
  ///   never existed, except for the indexes of collection groups. Only for a collection at the
  ///   top. A schema declared since the database was opened nevertheless applies to documents
  ///   written afterwards, because the app that declared it writes them.
  /// - Throws: `.invalidArgument` when the path is wrong, or when it would remove declarations that
  ///   collections below other documents share; `.failedPrecondition` when it, or a collection
  ///   below it, is kept equal to a server's; as writes do; `.cancelled` when the task was
  ///   cancelled between two commits.
  /// - Complexity: O(segments) at the top, O(documents) below.
  public func drop(includingDeclarations: Bool = false) async throws(DatabaseError) {
    let path = try place.get()
    try database.refuseInTransaction("drop", "\(path)")
    try await database.refuseFollowed(CollectionPattern(path), "dropped")
    if path.parent == nil {
      try await database.dropFamily(
        path.collectionID, includingDeclarations: includingDeclarations)
      return
    }
    guard !includingDeclarations else {
      throw DatabaseError(
        .invalidArgument,
        "what is declared of '\(path)' is declared of the collections with the same names below"
          + " other documents, too; drop the documents alone, or the collection at the top",
        path: "\(path)")
    }
    while case let paths = try await database.someDocuments(below: path), !paths.isEmpty {
      let writes = paths.map { DocumentWrite(path: $0, intent: WriteCompiler.delete()) }
      _ = try await database.commit(writes, durability: nil)
    }
  }
}

extension Database {
  /// Documents removed in one commit.
  private static let documentsAtOnce = 256

  /// Some of the documents in the collection and below it.
  @concurrent
  fileprivate func someDocuments(
    below path: CollectionPath
  ) async throws(DatabaseError) -> [DocumentPath] {
    try await read(try engineSnapshot()) { (rows) throws(DatabaseError) in
      try rows.documents(below: path, limit: Self.documentsAtOnce)
    }
  }
}

extension Rows {
  fileprivate func documents(
    below path: CollectionPath, limit: Int
  ) throws(DatabaseError) -> [DocumentPath] {
    let pattern = CollectionPattern(path)
    let family = try catalog.family(pattern.root, in: self)
    var paths: [DocumentPath] = []
    for (other, entry) in family?.collections ?? [:]
    where other.collectionIDs.starts(
      with: pattern.collectionIDs, by: { ExactText($0) == ExactText($1) })
    {
      let prefix = DocumentKey.prefix(entry.keyspace, ancestors: path.ancestorIDs)
      let naming = DocumentNaming(other, entry.keyspace, collection: nil)
      var walk = RangeWalk(self, [KeyRange(prefix: prefix)])
      while paths.count < limit, try walk.next() {
        paths.append(try naming.path(of: walk.cursor.key))
      }
    }
    return paths
  }
}
