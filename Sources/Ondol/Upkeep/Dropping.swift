// Taking indexes and collections away. First the catalog lets go of the keyspaces, in one commit:
// from there on nothing is read or written there, and no number is used twice. Then the rows go.
// The catalog remembers what is still to be removed until it is, so a crash only delays it. The key
// of a collection that has one of its own is erased last but one, in front of that mark.

internal import OndolEngine

extension Database {
  /// Takes an index away, if it is there.
  func dropIndex(
    _ keyspace: Keyspace, of pattern: CollectionPattern
  ) async throws(DatabaseError) {
    let isOfWords = try await changeCatalog(of: pattern.root) { (edit) throws(DatabaseError) in
      let indexes = edit.family.collections[pattern]?.allIndexes ?? []
      guard let index = indexes.first(where: { $0.keyspace == keyspace }) else { return false }
      edit.drop(index, from: pattern)
      return index.kind.isOfWords
    }
    // Searches that are listened to take another one, if there is one, and have its terms.
    if isOfWords { observers.invalidate(below: pattern.root) }
    // A builder notices at its next commit.
    try await latches.acquire(.index(keyspace))
    latches.release(.index(keyspace))
    try await removeRows(of: keyspace)
  }

  /// Removes the rows of an index that was dropped, and its row in the catalog.
  func removeRows(of keyspace: Keyspace) async throws(DatabaseError) {
    try await drop([keyspace])
    try await removeRow(CatalogKey.keyspace(keyspace))
  }

  /// Takes all documents of a root collection away, with all that is below it, and what is declared
  /// of it only when asked to.
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

  /// Has nothing be in the family's keyspaces any more. What stays declared is declared in a new
  /// family, in the same commit, so that the numbers of keyspaces are not used again.
  ///
  /// - Parameter group: where a family goes on that has a key of its own. The key was made before,
  ///   so that no commit needs one that is not on the device.
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

  /// Removes the rows of a family that was dropped, its key when it has one, and the mark that says
  /// so.
  func removeRows(of family: DroppedFamily) async throws(DatabaseError) {
    // Without its key nobody knows which paths its documents linked, and they stay.
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

/// What came of letting go of a family.
private enum Parting: Sendable {
  /// There was none, or all of it stays.
  case nothing
  /// It goes on with what is declared of it, and needs another key for that.
  case needsGroup
  case done(DroppedFamily)
}

/// A root collection that is no more, and whose rows are being removed.
struct DroppedFamily: Sendable {
  var number: UInt32
  /// The number within it that its next keyspace would have got.
  var members: UInt32
  /// The keyspaces of its links: the paths in their rows are to go that nobody else links.
  var links: [Keyspace] = []

  init(_ family: Family) {
    number = family.row.number
    members = family.row.nextMember
    links = family.collections.values.flatMap { $0.links.map(\.keyspace) }
      .sorted { $0.rawValue < $1.rawValue }
  }

  /// What the mark says of a family.
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

/// A family that is to go.
private struct Farewell: Sendable {
  var family: Family
  /// The keys of its rows in the catalog but the first.
  var keys: [[UInt8]]
  /// What comes in its place.
  var successor: CatalogEdit?
  /// Whether what comes in its place needs a key of its own, and none was given.
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
  /// What there is to do to let go of a family. Nil when there is none, or when all of it stays.
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

  /// Whether there is a document in it, or nobody can tell without its key.
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
  /// The families whose rows are still to be removed.
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
  /// Takes an index away; its space comes back. Queries that it served scan from now on. Does
  /// nothing when there is none of the name.
  ///
  /// The index goes for all collections with the same names below other documents, too.
  ///
  /// - Parameter name: as `listIndexes()` gives it and `createIndex` returned it.
  /// - Throws: `.failedPrecondition` when the index is a collection group's; otherwise as a write.
  /// - Complexity: O(segments): the rows are left out when what they lie among is next written.
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

  /// Removes all documents of the collection and everything below them, which Firestore's clients
  /// cannot. What is declared stays: indexes, unique ones and those of fields that hold arrays,
  /// links, times to live and schemas, here and below; what is written afterwards keeps to it.
  ///
  /// A collection at the top goes in one commit, and its space comes back; what a crash leaves of
  /// that is done after the next opening. With it goes the key of one that was created with
  /// `createWithOwnKey()`, once this returns: nobody can read its documents any more, here and in
  /// copies that were made without keys. What stays declared gets another key.
  ///
  /// A collection below a document goes some hundred documents a commit, so that it may be larger
  /// than a commit: others see it shrink, and documents written meanwhile may go or stay. When this
  /// throws, or a crash ends it, some documents are gone and the others are whole; call it again
  /// for the rest. Where all must go at once and fits into one commit,
  /// `DocumentReference.delete(recursive:)` of the document above does that.
  ///
  /// - Parameter includingDeclarations: forgets what is declared, too, as though there had never
  ///   been such a collection, but for the indexes of collection groups; only for a collection at
  ///   the top. A schema that was declared since the database was opened is that of what is written
  ///   afterwards all the same, because it is written by the app that declared it.
  /// - Throws: `.invalidArgument` when the path is wrong, or when declarations are to go that
  ///   collections below other documents share; as writes do; `.cancelled` when the task was
  ///   cancelled between two commits.
  /// - Complexity: O(segments) at the top, O(documents) below.
  public func drop(includingDeclarations: Bool = false) async throws(DatabaseError) {
    let path = try place.get()
    try database.refuseInTransaction("drop", "\(path)")
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
