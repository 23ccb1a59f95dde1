// Stages 1 and 2 of the write path for one attempt: what is stored is read from a snapshot, intents
// are applied, and the documents, their index rows and whatever the catalog gains become one batch.
// Nothing outside is changed, so an attempt that turns out to be stale is simply dropped.

internal import OndolEngine

/// A batch, and what it stands for.
struct PreparedCommit: Sendable {
  var batch: Batch
  /// The documents in the order of their first write.
  var documents: [WrittenDocument]
  var consequences = CommitConsequences()
  /// Unique indexes that two documents claim one row of, or whose rows are not known before the
  /// commit. Only where the batch is to be read.
  var unsettledIndexes: Set<Keyspace> = []
  /// Whether it writes to the tree.
  var writesTree = false
  /// Contents that the commit makes stored.
  var staged: [StagedContent] = []
}

/// Derives a batch from a snapshot.
struct WritePreparation {
  /// The most that is reserved for a batch.
  private static let maximumRoom = 4 << 20

  private let rows: Rows
  private var edits: [ExactText: CatalogEdit] = [:]
  private var collections = WrittenCollections()
  private var documents: [WrittenDocument] = []
  private var positions: [DocumentPath: Int] = [:]
  private var firstEnd: Int64?
  /// Storage paths that go with the commit when no document links them.
  private var releasedPaths: [String] = []
  /// Contents that the commit makes stored.
  private(set) var staged: [StagedContent] = []

  init(_ rows: Rows) {
    self.rows = rows.atOneMoment
  }

  /// Prepares a commit of `writes`, several of which may be to one document.
  ///
  /// Throws what the preconditions and limits demand, naming the document.
  static func prepare(
    _ writes: [DocumentWrite], bringing contents: [StagedContent] = [], in rows: Rows
  ) throws(DatabaseError) -> PreparedCommit {
    var preparation = WritePreparation(rows)
    preparation.bring(contents)
    for write in writes {
      try preparation.apply(write)
    }
    return try preparation.finish()
  }

  /// The document as the writes so far leave it; nil when none of them was to it.
  func document(at path: DocumentPath) -> WrittenDocument? {
    positions[path].map { documents[$0] }
  }

  /// The root collections written to.
  var roots: Set<ExactText> { Set(documents.map { ExactText($0.path.segments[0]) }) }

  /// Whether nothing was written.
  var isEmpty: Bool { documents.isEmpty }

  // MARK: - Applying

  /// Adds a write, behind those before.
  ///
  /// Throws what its precondition demands, naming the document; then nothing is added.
  mutating func apply(_ write: DocumentWrite) throws(DatabaseError) {
    if write.intent.precondition == .isUnlinked {
      if let path = write.path.storagePath { releasedPaths.append(path) }
      return
    }
    do throws(DatabaseError) {
      let position = try position(of: write.path)
      guard isWanted(write.intent.precondition, documents[position]) else { return }
      if let obstacle = documents[position].obstacle, documents[position].isUntouched,
        case .patch = write.intent.change
      {
        throw obstacle
      }
      let after = try write.intent.apply(to: documents[position].after)
      if write.intent.precondition != .none {
        try check(write.intent.precondition, documents[position], attempted: after)
      }
      documents[position].after = after
      documents[position].isUntouched = false
    } catch {
      throw error.at(path: write.path.name)
    }
  }

  /// Whether a write that is passed over in some states is not to be in this one.
  private func isWanted(_ precondition: Precondition, _ document: WrittenDocument) -> Bool {
    switch precondition {
    case .isOver: document.isOver
    case .isOutdated: document.before != nil && document.isOutdated && !document.isUnreadable
    default: true
    }
  }

  /// Has the commit make contents stored that documents of it refer to.
  mutating func bring(_ contents: [StagedContent]) {
    staged += contents
  }

  /// Where the document stands in the list; read from the snapshot when it is met first.
  private mutating func position(of path: DocumentPath) throws(DatabaseError) -> Int {
    if let position = positions[path] { return position }
    let collection = try collection(of: path)
    let document = try read(path, in: collection)
    positions[path] = documents.count
    documents.append(document)
    return documents.count - 1
  }

  /// The place of the document's collection among those written to.
  private mutating func collection(of path: DocumentPath) throws(DatabaseError) -> Int {
    if let collection = collections.index(of: path) { return collection }
    let collection = path.collection
    let pattern = CollectionPattern(collection)
    let entry = try edit(pattern.root)?.family.collections[pattern]
    let upgrade = entry.flatMap { rows.pendingUpgrade(of: pattern, $0) }
    return collections.add(collection, pattern, entry, upgrade)
  }

  /// What is stored of a document.
  private mutating func read(
    _ path: DocumentPath, in collection: Int
  ) throws(DatabaseError) -> WrittenDocument {
    var document = WrittenDocument(path: path, collection: collection)
    guard let key = collections.key(of: path, in: collection), let row = try rows.row(key),
      let entry = collections.entry(of: collection)
    else { return document }
    let contents: DocumentSnapshot.Contents
    do throws(MalformedBytes) {
      contents = try DocumentSnapshot.Contents(row: row, symbols: entry.symbols)
    } catch {
      throw DatabaseError(error, documentAt: path)
    }
    document.stored = WrittenFields(contents)
    document.storedStamps = contents.stamps
    document.shown = document.stored
    var shown = contents
    if let upgrade = collections.upgrade(of: collection), upgrade.concerns(contents.stamps.version)
    {
      document.isOutdated = true
      do throws(DatabaseError) {
        shown = try upgrade.apply(contents, at: path)
        document.shown = .decoded(shown.fields)
      } catch {
        guard error.isUnreadable else { throw error }
        document.obstacle = error
        document.shown = nil
      }
    }
    if entry.timeToLive != nil, entry.isOver(shown, at: rows.moment) { return document }
    document.before = shown
    document.visible = document.shown ?? document.stored
    document.after = document.visible
    return document
  }

  /// The changes of the family so far; nil when there is no such family yet.
  private mutating func edit(_ root: String) throws(DatabaseError) -> CatalogEdit? {
    if let edit = edits[ExactText(root)] { return edit }
    guard let family = try rows.catalog.family(root, in: rows) else { return nil }
    let edit = CatalogEdit(family, in: rows)
    edits[ExactText(root)] = edit
    return edit
  }

  private func check(
    _ precondition: Precondition, _ document: WrittenDocument, attempted: WrittenFields?
  ) throws(DatabaseError) {
    let exists = document.after != nil
    switch precondition {
    case .none, .isOver, .isOutdated, .isUnlinked:
      break
    case .object(let condition):
      try condition.check(document.after?.all, at: document.path.name)
    case .exists(true):
      guard !exists else { return }
      throw DatabaseError(
        .notFound, "there is no document to update", suggestion: "setData or create makes one")
    case .exists(false):
      guard exists else { return }
      throw DatabaseError(
        .alreadyExists, "there is a document already", suggestion: "setData replaces it")
    case .version(let version):
      let stored = document.before?.stamps.version ?? .missing
      guard stored != version else { return }
      throw DatabaseError(
        .aborted,
        "the document has version \(stored) and not \(version): another write came first",
        conflict: .init(stored: document.visible?.all, attempted: attempted?.all))
    case .updateTime(let time):
      guard document.before?.stamps.updateTime != time else { return }
      throw DatabaseError(
        .failedPrecondition, "the document was not updated at \(time)",
        conflict: .init(stored: document.visible?.all, attempted: attempted?.all))
    }
  }

  // MARK: - Into bytes

  /// The batch of all writes so far. It is refused when anything it was derived from has changed
  /// since the snapshot, or anything in `footprint`. Writes to the tree become part of it.
  ///
  /// - Parameter isToBeRead: the batch is not committed, but read by a transaction that may go on
  ///   writing; two documents that agree in what is unique may differ again by its end.
  mutating func finish(
    guarding footprint: Footprint = Footprint(), with tree: TreePreparation? = nil,
    isToBeRead: Bool = false
  ) throws(DatabaseError) -> PreparedCommit {
    var batch = Batch()
    batch.basis = rows.snapshot.sequence
    for position in documents.indices { documents[position].findWhetherChanged() }
    var claims = UniqueClaims(mayConflict: isToBeRead)
    var holders = HolderChanges()
    for path in releasedPaths { holders.release(path: path) }
    holders.bring(staged)
    for document in documents where document.isChanged {
      do throws(DatabaseError) {
        let isFirst = batch.isEmpty
        try add(document, to: &batch, &claims, &holders)
        if isFirst { makeRoom(in: &batch) }
      } catch {
        throw error.at(path: document.path.name)
      }
    }
    var documents = documents + (try removeUnlinkedPaths(&batch, &claims, &holders))
    documents += try removeEndedHolders(&batch, &claims, &holders)
    addNewNames()
    claims.put(into: &batch)
    try holders.settleContents(rows, in: &batch)
    let nodes = tree?.finish(into: &batch) ?? []
    guard !batch.isEmpty else {
      return PreparedCommit(batch: batch, documents: documents, staged: staged)
    }
    var guarded = try guarded(footprint)
    tree?.add(to: &guarded)
    guarded.guardUnchanged(in: &batch)
    batch.note = CommitNote(.documents(documents), tree: nodes)
    if rows.catalog.keepsChanges, !documents.isEmpty { try batch.annotate(changesOf: documents) }
    var consequences = CommitConsequences(
      firstEnd: firstEnd, releasesContents: holders.releasesContents)
    // By number, because each new family says which number the next one gets.
    for var edit in edits.values.sorted(by: { $0.family.row.number < $1.family.row.number }) {
      edit.write(to: &batch)
      if edit.changesPicture { consequences.edits.append(edit) }
    }
    return PreparedCommit(
      batch: batch, documents: documents, consequences: consequences,
      unsettledIndexes: claims.unsettled, writesTree: tree?.isEmpty == false, staged: staged)
  }

  /// The footprint with the documents to which a write makes no difference, such as a delete where
  /// there is none: it would, had somebody else come first.
  private func guarded(_ footprint: Footprint) throws(DatabaseError) -> Footprint {
    var footprint = footprint
    for document in documents where !document.isChanged {
      try footprint.add(document.path, in: rows)
    }
    return footprint
  }

  /// Makes room for the other documents, supposing that they are like the first. A large batch that
  /// grew step by step would touch twice the memory.
  private func makeRoom(in batch: inout Batch) {
    let bytes = batch.payloadLength * (documents.count - 1)
    batch.reserve(bytes: min(bytes + bytes / 8, Self.maximumRoom))
  }

  /// Takes the storage paths out that no document links any more after this commit. They are no
  /// writes of their own: a transaction that goes on may link them again.
  private mutating func removeUnlinkedPaths(
    _ batch: inout Batch, _ claims: inout UniqueClaims, _ holders: inout HolderChanges
  ) throws(DatabaseError) -> [WrittenDocument] {
    let deleted = documents.filter { $0.isChanged && $0.after == nil }.compactMap(
      \.path.storagePath)
    let paths = try holders.settlePaths(rows, deleted: deleted, in: &batch) { path in
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
      try add(document, to: &batch, &claims, &holders)
      gone.append(document)
    }
    return gone
  }

  /// Takes the documents out whose time is over and that hold values which this commit takes:
  /// nobody sees them, so they hold up nobody.
  private mutating func removeEndedHolders(
    _ batch: inout Batch, _ claims: inout UniqueClaims, _ holders: inout HolderChanges
  ) throws(DatabaseError) -> [WrittenDocument] {
    var gone: [WrittenDocument] = []
    for conflict in try claims.conflicts(in: rows) {
      var document = try read(conflict.holder, in: try collection(of: conflict.holder))
      guard document.isOver, positions[conflict.holder] == nil else {
        try claims.refuse(conflict)
        continue
      }
      if gone.contains(where: { $0.path == document.path }) { continue }
      document.isChanged = true
      try add(document, to: &batch, &claims, &holders)
      gone.append(document)
    }
    return gone
  }

  private mutating func add(
    _ document: WrittenDocument, to batch: inout Batch, _ claims: inout UniqueClaims,
    _ holders: inout HolderChanges
  ) throws(DatabaseError) {
    let entry = try entry(of: document.collection)
    if let field = entry.timeToLive,
      let end = entry.end(of: document.after?.part([field]), now: rows.moment)
    {
      firstEnd = min(firstEnd ?? end, end)
    }
    let (key, contents) = try collections.add(document, to: &batch)
    if let contents {
      let contentsBefore = document.stored?.all.contents ?? []
      if !contents.isEmpty || !contentsBefore.isEmpty {
        holders.change(from: contentsBefore, to: contents, of: document.path, at: key)
      }
    }
    let ancestors = collections.ancestorIDs(of: document.collection)
    let id = document.path.documentID
    for index in entry.ends.isEmpty ? entry.indexes : entry.indexes + entry.ends {
      guard let (before, after) = document.parts(of: index) else { continue }
      let changes = index.changes(from: before, to: after, ancestors: ancestors, id: id)
      try claims.apply(changes, of: index, for: document.path, to: &batch)
    }
    for link in entry.links {
      guard let (before, after) = document.parts(of: link) else { continue }
      holders.change(
        link, from: before, to: after, of: document.path, ancestors: ancestors, in: &batch)
    }
  }

  /// What the catalog has of a collection after this commit.
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

  /// Gives the catalog the names that documents have brought.
  private mutating func addNewNames() {
    for (pattern, symbols) in collections.symbols {
      edits[ExactText(pattern.root)]?.add(symbols, to: pattern)
    }
  }

  /// The highest number among the families this commit makes.
  private var lastNewFamily: UInt32? {
    edits.values.filter(\.isNewFamily).map(\.family.row.number).max()
  }
}

extension Batch {
  /// Adds a row of an index.
  mutating func put(_ row: IndexRow) {
    put(row.key.bytes, row.value.bytes, keyStamps: row.stamps)
  }
}
