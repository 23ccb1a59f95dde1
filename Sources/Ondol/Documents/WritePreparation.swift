// Stages 1 and 2 of the write path for one attempt: what is stored is read from a snapshot, intents
// are applied, and the documents, their index rows and whatever the catalog gains become one batch.
// Nothing outside is changed, so an attempt that turns out to be stale is simply dropped.

internal import OndolEngine

/// One write of a commit.
struct DocumentWrite: Sendable {
  var path: DocumentPath
  var intent: WriteIntent
}

/// A document that a commit writes: what is stored, and what the commit makes of it.
struct WrittenDocument: Sendable {
  var path: DocumentPath
  var before: DocumentSnapshot.Contents?
  /// The fields of the row that is there: those of `before`, or of a document whose time is over.
  var stored: [String: Value]?
  /// The fields of `before`, which are those stored unless they were upgraded.
  var visible: [String: Value]?
  /// With `Timestamp.pending` where the commit's time will be.
  var after: [String: Value]?
  /// Found out once all writes are applied. A write that changes nothing leaves the version as it
  /// is.
  fileprivate(set) var isChanged = false

  /// Whether there is a row of a document whose time is over.
  var isOver: Bool { before == nil && stored != nil }

  fileprivate mutating func findWhetherChanged() {
    isChanged =
      switch (stored, after) {
      case (nil, nil): false
      case (let stored?, let after?): !stored.isIdentical(to: after)
      default: true
      }
  }
}

/// A batch, and what it stands for.
struct PreparedCommit: Sendable {
  var batch: Batch
  /// The documents in the order of their first write.
  var documents: [WrittenDocument]
  /// Families as they are after the commit, where it changes them.
  var changedFamilies: [Family]
  /// The moment the first of the documents ends.
  var firstEnd: Int64?
}

/// Derives a batch from a snapshot.
struct WritePreparation {
  private let rows: Rows
  private var edits: [ExactText: CatalogEdit] = [:]
  private var documents: [WrittenDocument] = []
  private var positions: [DocumentPath: Int] = [:]
  private var firstEnd: Int64?

  init(_ rows: Rows) {
    self.rows = rows
  }

  /// Prepares a commit of `writes`, several of which may be to one document.
  ///
  /// Throws what the preconditions and limits demand, naming the document.
  static func prepare(
    _ writes: [DocumentWrite], in rows: Rows
  ) throws(DatabaseError) -> PreparedCommit {
    var preparation = WritePreparation(rows)
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
    do throws(DatabaseError) {
      let position = try position(of: write.path)
      let document = documents[position]
      if write.intent.precondition == .isOver, !document.isOver { return }
      let after = write.intent.apply(to: document.after)
      try check(write.intent.precondition, document, attempted: after)
      documents[position].after = after
    } catch {
      throw error.at(path: "\(write.path)")
    }
  }

  /// Where the document stands in the list; read from the snapshot when it is met first.
  private mutating func position(of path: DocumentPath) throws(DatabaseError) -> Int {
    if let position = positions[path] { return position }
    let stored = try stored(path)
    let fields = stored?.contents.fields
    let isOver = stored.map { $0.entry.isOver($0.contents, at: rows.catalog.clock()) } ?? false
    var before = isOver ? nil : stored?.contents
    var visible = isOver ? nil : fields
    if let stored, let contents = before,
      let pending = rows.catalog.pendingUpgrade(
        of: CollectionPattern(path.collection), stored.entry)
    {
      before = try pending.apply(contents, at: path)
      visible = before?.fields
    }
    positions[path] = documents.count
    documents.append(
      WrittenDocument(
        path: path, before: before, stored: fields, visible: visible, after: visible))
    return documents.count - 1
  }

  private mutating func stored(
    _ path: DocumentPath
  ) throws(DatabaseError) -> (contents: DocumentSnapshot.Contents, entry: CollectionEntry)? {
    let pattern = CollectionPattern(path.collection)
    guard let entry = try edit(pattern.root)?.family.collections[pattern] else { return nil }
    let key = DocumentKey.key(entry.keyspace, path)
    guard let row = try rows.row(key) else { return nil }
    do throws(MalformedBytes) {
      return (try DocumentSnapshot.Contents(row: row, symbols: entry.symbols), entry)
    } catch {
      throw DatabaseError(error, documentAt: path)
    }
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
    _ precondition: Precondition, _ document: WrittenDocument, attempted: [String: Value]?
  ) throws(DatabaseError) {
    let exists = document.after != nil
    switch precondition {
    case .none, .isOver:
      break
    case .exists(true):
      guard !exists else { return }
      throw DatabaseError(.notFound, "there is no document to update; setData or create makes one")
    case .exists(false):
      guard exists else { return }
      throw DatabaseError(.alreadyExists, "there is a document already; setData replaces it")
    case .version(let version):
      let stored = document.before?.stamps.version ?? .missing
      guard stored != version else { return }
      throw DatabaseError(
        .aborted,
        "the document has version \(stored) and not \(version): another write came first",
        conflict: .init(stored: document.visible, attempted: attempted))
    case .updateTime(let time):
      guard document.before?.stamps.updateTime != time else { return }
      throw DatabaseError(
        .failedPrecondition, "the document was not updated at \(time)",
        conflict: .init(stored: document.visible, attempted: attempted))
    }
  }

  // MARK: - Into bytes

  /// The batch of all writes so far. It is refused when anything it was derived from has changed
  /// since the snapshot, or anything in `footprint`.
  mutating func finish(
    guarding footprint: Footprint = Footprint()
  ) throws(DatabaseError) -> PreparedCommit {
    var batch = Batch()
    batch.basis = rows.snapshot.sequence
    for position in documents.indices { documents[position].findWhetherChanged() }
    var claims = UniqueClaims()
    for document in documents where document.isChanged {
      do throws(DatabaseError) {
        try add(document, to: &batch, &claims)
      } catch {
        throw error.at(path: "\(document.path)")
      }
    }
    try claims.settle(into: &batch, rows)
    guard !batch.isEmpty else {
      return PreparedCommit(batch: batch, documents: documents, changedFamilies: [])
    }
    try guarded(footprint).guardUnchanged(in: &batch)
    var changed: [Family] = []
    // By number, because each new family says which number the next one gets.
    for var edit in edits.values.sorted(by: { $0.family.row.number < $1.family.row.number }) {
      edit.write(to: &batch)
      if edit.isChanged { changed.append(edit.family) }
    }
    return PreparedCommit(
      batch: batch, documents: documents, changedFamilies: changed, firstEnd: firstEnd)
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

  private mutating func add(
    _ document: WrittenDocument, to batch: inout Batch, _ claims: inout UniqueClaims
  ) throws(DatabaseError) {
    let collection = document.path.collection
    let pattern = CollectionPattern(collection)
    let root = ExactText(pattern.root)
    var edit: CatalogEdit
    if let known = try self.edit(pattern.root) {
      edit = known
    } else {
      edit = try CatalogEdit(newFamily: pattern.root, following: lastNewFamily, in: rows)
    }
    let entry = try edit.collection(pattern)
    if let end = entry.end(of: document.after, now: rows.catalog.clock()) {
      firstEnd = min(firstEnd ?? end, end)
    }
    let key = DocumentKey.key(entry.keyspace, document.path)
    if let after = document.after {
      var symbols = entry.symbols
      let encoded = try ValueEncoder.document(
        after, createTime: document.before?.stamps.createTime, symbols: &symbols)
      edit.add(symbols, to: pattern)
      batch.put(key.bytes, encoded.bytes.bytes, stamps: encoded.stamps)
    } else {
      batch.delete(key.bytes)
    }
    batch.guardUnchanged(key.bytes)
    for index in entry.indexes {
      let changes = index.changes(
        from: document.stored, to: document.after, ancestors: collection.ancestorIDs,
        id: document.path.documentID)
      try claims.apply(changes, of: index, for: document.path, to: &batch)
    }
    edits[root] = edit
  }

  /// The highest number among the families this commit makes.
  private var lastNewFamily: UInt32? {
    edits.values.filter(\.isNewFamily).map(\.family.row.number).max()
  }
}

extension DocumentKey {
  static func key(_ keyspace: Keyspace, _ path: DocumentPath) -> [UInt8] {
    key(keyspace, ancestors: path.collection.ancestorIDs, id: path.documentID)
  }
}

extension Batch {
  /// Adds changes of indexes.
  mutating func apply(_ changes: [IndexChange]) {
    for change in changes {
      switch change {
      case .put(let row): put(row.key.bytes, row.value.bytes, keyStamps: row.stamps)
      case .delete(let key): delete(key.bytes)
      }
    }
  }
}
