// The second half of stage 2: turns everything written into one batch. Contributions, in this
// order:
//
//   witness       writes that a witness of commits adds
//   documents     rows of documents, their index entries, the contents they hold, their links
//   paths         storage paths that no document links any more
//   ended         expired documents that hold a unique value this commit claims
//   claims        rows of unique indexes, once all releases are known
//   holders       the holders of each content, once all are known
//   tree          its rows
//   guards        what must not have changed since the snapshot
//   note          the changes for listeners; the change feed's record, when changes are kept
//   catalog       new collections, names and families

internal import OndolEngine

extension WritePreparation {
  /// The result of the contributions.
  private struct Assembly {
    var batch = Batch()
    var claims: UniqueClaims
    var holders = HolderChanges()
    /// The earliest expiry of the documents.
    var firstEnd: Int64?
    /// The number of documents whose words the batch stores, by index.
    var searched: [SearchedIndex: Int] = [:]
    /// The generations of word indexes, as the snapshot has them.
    fileprivate var generations: [Keyspace: UInt64] = [:]

    /// The current generation of a word index's documents; the batch is guarded against its end.
    mutating func generation(
      of index: IndexDefinition, in rows: Rows
    ) throws(DatabaseError) -> UInt64 {
      if let known = generations[index.keyspace] { return known }
      let generation = try rows.searchGeneration(of: index)
      generations[index.keyspace] = generation
      batch.guardUnchanged(index.searchKeys.closed(generation).bytes)
      return generation
    }
  }

  /// The most bytes that are reserved for a batch.
  private static let maximumRoom = 4 << 20

  /// The batch of all writes so far. It is refused when anything it was derived from has changed
  /// since the snapshot, or anything in `footprint`. It includes writes to the tree.
  ///
  /// - Parameter isToBeRead: whether the batch is not committed, but read by a transaction that may
  ///   continue to write. Two documents with the same unique values may differ again at its end.
  mutating func finish(
    guarding footprint: Footprint = Footprint(), with tree: TreePreparation? = nil,
    isToBeRead: Bool = false
  ) throws(DatabaseError) -> PreparedCommit {
    let added = isToBeRead ? nil : try addWitnessedRows(footprint)
    var assembly = Assembly(claims: UniqueClaims(mayConflict: isToBeRead))
    assembly.batch.basis = rows.snapshot.sequence
    try addDocuments(to: &assembly)
    var written = documents
    written += try removeUnlinkedPaths(&assembly)
    written += try removeEndedHolders(&assembly)
    assembly.claims.put(into: &assembly.batch)
    try assembly.holders.settleContents(rows, in: &assembly.batch)
    let nodes = tree?.finish(into: &assembly.batch) ?? []
    guard !assembly.batch.isEmpty else {
      return PreparedCommit(batch: assembly.batch, documents: written, staged: staged)
    }
    var guarded = try guarded(footprint)
    tree?.add(to: &guarded)
    guarded.guardUnchanged(in: &assembly.batch)
    let synced = rows.catalog.seat.isOccupied && !isToBeRead ? SyncedChanges(written) : nil
    assembly.batch.note = CommitNote(.documents(written), tree: nodes, synced: synced)
    if rows.catalog.keepsChanges, !written.isEmpty {
      try assembly.batch.annotate(changesOf: written) { document in
        collections.entry(of: document.collection)?.keyspace.keyedGroup
      }
    }
    let consequences = CommitConsequences(
      edits: changeCatalog(&assembly.batch), firstEnd: assembly.firstEnd,
      releasesContents: assembly.holders.releasesContents, searched: assembly.searched,
      witnessed: added, synced: synced)
    // Callers count what they wrote themselves.
    let own = added == nil ? written : written.filter { !HiddenRows.isRecord($0.path) }
    return PreparedCommit(
      batch: assembly.batch, documents: own, consequences: consequences,
      unsettledIndexes: assembly.claims.unsettled, writesTree: tree?.isEmpty == false,
      staged: staged)
  }

  // MARK: - Documents

  private mutating func addDocuments(to assembly: inout Assembly) throws(DatabaseError) {
    for position in documents.indices { documents[position].findWhetherChanged() }
    for path in releasedPaths { assembly.holders.release(path: path) }
    assembly.holders.bring(staged)
    assembly.holders.expect(expected)
    for document in documents where document.isChanged {
      do throws(DatabaseError) {
        let isFirst = assembly.batch.isEmpty
        try add(document, to: &assembly)
        if isFirst { makeRoom(in: &assembly.batch) }
      } catch {
        throw error.at(path: document.path.name)
      }
    }
  }

  private mutating func add(
    _ document: WrittenDocument, to assembly: inout Assembly
  ) throws(DatabaseError) {
    let entry = try entry(of: document.collection)
    if let field = entry.timeToLive,
      let end = entry.end(of: document.after?.part([field]), now: rows.moment)
    {
      assembly.firstEnd = min(assembly.firstEnd ?? end, end)
    }
    let (key, contents) = try collections.add(
      document, rows.catalog.keys, to: &assembly.batch)
    if let contents {
      let contentsBefore = document.stored?.all.contents ?? []
      if !contents.isEmpty || !contentsBefore.isEmpty {
        assembly.holders.change(from: contentsBefore, to: contents, of: document.path, at: key)
      }
    }
    let ancestors = collections.ancestorIDs(of: document.collection)
    let id = document.path.documentID
    let left = try collections.addIndexRows(of: document, at: key, to: &assembly.batch)
    let indexes = left.map { $0.map { entry.indexes[$0] } } ?? entry.indexes
    for index in entry.ends.isEmpty ? indexes : indexes + entry.ends {
      guard let (before, after) = document.parts(of: index) else { continue }
      let changes = index.changes(from: before, to: after, ancestors: ancestors, id: id)
      try assembly.claims.apply(changes, of: index, for: document.path, to: &assembly.batch)
    }
    for index in entry.searches {
      guard let (before, after) = document.parts(of: index) else { continue }
      let isPut = try assembly.batch.changeWords(
        of: index, from: before, to: after, at: key, isStored: document.stored != nil,
        generation: try assembly.generation(of: index, in: rows), in: rows
      ) { () throws(DatabaseError) in
        try rows.tokenizer(of: index, CollectionPattern(collectionOf: document.path))
      }
      guard isPut else { continue }
      let place = SearchedIndex(
        pattern: CollectionPattern(collectionOf: document.path), keyspace: index.keyspace)
      assembly.searched[place, default: 0] += 1
    }
    for link in entry.links {
      guard let (before, after) = document.parts(of: link) else { continue }
      assembly.holders.change(
        link, from: before, to: after, of: document.path, ancestors: ancestors,
        in: &assembly.batch)
    }
  }

  /// Makes room for the other documents, on the assumption that they are like the first. Growing a
  /// large batch step by step would touch twice the memory.
  private func makeRoom(in batch: inout Batch) {
    let bytes = batch.payloadLength * (documents.count - 1)
    batch.reserve(bytes: min(bytes + bytes / 8, Self.maximumRoom))
  }

  // MARK: - Documents removed with them

  /// Removes the storage paths that no document links after this commit. They are not writes of
  /// their own, because the transaction may continue and link them again.
  private mutating func removeUnlinkedPaths(
    _ assembly: inout Assembly
  ) throws(DatabaseError) -> [WrittenDocument] {
    let deleted = documents.filter { $0.isChanged && $0.after == nil }.compactMap(
      \.path.storagePath)
    let paths = try assembly.holders.settlePaths(rows, deleted: deleted, in: &assembly.batch) {
      path in
      guard let document = document(at: StorageRows.document(at: path)) else { return .untouched }
      return document.after == nil ? .deleted : .put
    }
    var gone: [WrittenDocument] = []
    for path in paths {
      let path = StorageRows.document(at: path)
      var document = try read(path, in: try collection(of: path))
      guard document.before != nil else { continue }
      document.after = nil
      document.isChanged = true
      try add(document, to: &assembly)
      gone.append(document)
    }
    return gone
  }

  /// Removes the expired documents that hold values which this commit claims. No read returns them,
  /// so they must not block a write.
  private mutating func removeEndedHolders(
    _ assembly: inout Assembly
  ) throws(DatabaseError) -> [WrittenDocument] {
    var gone: [WrittenDocument] = []
    for conflict in try assembly.claims.conflicts(in: rows) {
      var document = try read(conflict.holder, in: try collection(of: conflict.holder))
      guard document.isOver, self.document(at: conflict.holder) == nil else {
        try assembly.claims.refuse(conflict)
        continue
      }
      if gone.contains(where: { $0.path == document.path }) { continue }
      document.isChanged = true
      try add(document, to: &assembly)
      gone.append(document)
    }
    return gone
  }

  // MARK: - Guards

  /// The footprint with the documents on which a write had no effect, such as a delete of a missing
  /// document. It would have an effect if another commit came first.
  private func guarded(_ footprint: Footprint) throws(DatabaseError) -> Footprint {
    var footprint = footprint
    for document in documents where !document.isChanged {
      try footprint.add(document.path, in: rows)
    }
    return footprint
  }

  // MARK: - The catalog

  /// The catalog's entry of a collection after this commit.
  private mutating func entry(of collection: Int) throws(DatabaseError) -> CollectionEntry {
    if let entry = collections.entry(of: collection) { return entry }
    let pattern = collections.pattern(of: collection)
    var edit: CatalogEdit
    if let known = try self.edit(pattern.root) {
      edit = known
    } else {
      edit = try CatalogEdit(newFamily: pattern.root, following: lastNewFamily, in: rows)
    }
    let entry = try edit.collection(pattern)
    edits[ExactText(pattern.root)] = edit
    collections.set(entry, of: collection)
    return entry
  }

  /// The highest number among the families that this commit makes.
  private var lastNewFamily: UInt32? {
    edits.values.filter(\.isNewFamily).map(\.family.row.number).max()
  }

  /// Writes the changes of the catalog, including the names that documents have introduced; returns
  /// the edits that update the cached catalog.
  private mutating func changeCatalog(_ batch: inout Batch) -> [CatalogEdit] {
    for (pattern, symbols) in collections.symbols {
      edits[ExactText(pattern.root)]?.add(symbols, to: pattern)
    }
    var changes: [CatalogEdit] = []
    // By number, because each new family determines the next one's number.
    for var edit in edits.values.sorted(by: { $0.family.row.number < $1.family.row.number }) {
      edit.write(to: &batch)
      if edit.changesPicture { changes.append(edit) }
    }
    return changes
  }
}

extension Batch {
  /// Adds a row of an index.
  mutating func put(_ row: IndexRow) {
    put(row.key.bytes, row.value.bytes, keyStamps: row.stamps)
  }
}
