// Stages 1 and 2 of the write path for one attempt: it reads what is stored from a snapshot and
// applies intents; WritePreparation+Batch makes one batch of the result. It changes nothing
// outside, so an attempt that turns out to be stale is simply dropped.

internal import OndolEngine

/// A batch, and the changes it represents.
struct PreparedCommit: Sendable {
  var batch: Batch
  /// The documents in the order of their first write.
  var documents: [WrittenDocument]
  var consequences = CommitConsequences()
  /// Unique indexes in which two documents claim one row, or whose rows are unknown before the
  /// commit. Only for a batch that is read and not committed.
  var unsettledIndexes: Set<Keyspace> = []
  /// Whether it writes to the tree.
  var writesTree = false
  /// Contents that the commit makes stored.
  var staged: [StagedContent] = []
}

/// Derives a batch from a snapshot.
struct WritePreparation {
  private(set) var rows: Rows
  /// Changes of the catalog, by root collection.
  var edits: [ExactText: CatalogEdit] = [:]
  var collections = WrittenCollections()
  /// In the order of their first write.
  var documents: [WrittenDocument] = []
  private var positions: [DocumentPath: Int] = [:]
  /// Storage paths that the commit removes when no document links them.
  private(set) var releasedPaths: [String] = []
  /// Contents that the commit makes stored.
  private(set) var staged: [StagedContent] = []
  /// Contents that the commit may make stored though their bytes are elsewhere.
  private(set) var expected: [ExchangedContent] = []
  /// Nil when the database has no witness, or the witness makes this commit itself.
  private(set) var witness: (any CommitWitness)?
  /// The writes that the witness sees.
  var witnessed: [WitnessedWrite] = []

  init(_ rows: Rows) {
    self.rows = rows.atOneMoment
    witness = rows.catalog.witness
  }

  /// Keeps the writes from the witness: it has made them itself.
  mutating func leaveUnwitnessed() {
    witness = nil
  }

  /// Prepares a commit of `writes`, several of which may be to one document.
  ///
  /// - Parameter stored: the stored rows of their documents, if they were looked up already.
  ///
  /// Throws the errors of preconditions and limits, naming the document.
  static func prepare(
    _ writes: [DocumentWrite], of stored: StoredRows? = nil,
    bringing contents: [StagedContent] = [], in rows: Rows
  ) throws(DatabaseError) -> PreparedCommit {
    var preparation = WritePreparation(rows)
    preparation.bring(contents)
    preparation.documents.reserveCapacity(writes.count)
    preparation.positions.reserveCapacity(writes.count)
    for (place, write) in writes.enumerated() {
      try preparation.apply(write, stored?[place])
    }
    return try preparation.finish()
  }

  /// The document as the writes so far leave it; nil when none of them writes it.
  func document(at path: DocumentPath) -> WrittenDocument? {
    positions[path].map { documents[$0] }
  }

  /// The root collections written to.
  var roots: Set<ExactText> { Set(documents.map { ExactText($0.path.segments[0]) }) }

  /// Whether nothing was written.
  var isEmpty: Bool { documents.isEmpty }

  /// The same, continuing with the same rows read on another thread.
  func reading(_ rows: Rows) -> WritePreparation {
    var preparation = self
    preparation.rows = rows.atOneMoment
    preparation.edits = edits.mapValues { $0.reading(preparation.rows) }
    return preparation
  }

  /// The value at a place of the document as the writes so far leave it; nil when there is none.
  func value(at place: FieldNames, of path: DocumentPath) -> Value? {
    document(at: path)?.after.flatMap { $0.value(at: place) }
  }

  // MARK: - Applying

  /// Adds a write after the previous ones.
  ///
  /// - Parameter stored: the document's key and row, if they are known.
  ///
  /// Throws when its precondition is not met, naming the document; then nothing is added.
  mutating func apply(
    _ write: DocumentWrite, _ stored: (key: [UInt8], row: [UInt8]?)? = nil
  ) throws(DatabaseError) {
    if write.intent.precondition == .isUnlinked {
      if let path = write.path.storagePath { releasedPaths.append(path) }
      return
    }
    do throws(DatabaseError) {
      let position = try position(of: write.path, stored)
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
      if case .keep = write.intent.change { return }
      documents[position].after = after
      documents[position].isUntouched = false
      if let witness { note(write, for: witness) }
    } catch {
      throw error.at(path: write.path.name)
    }
  }

  /// Whether a write that is skipped in some states is wanted in this one.
  private func isWanted(_ precondition: Precondition, _ document: WrittenDocument) -> Bool {
    switch precondition {
    case .isOver: document.isOver
    case .isOutdated: document.before != nil && document.isOutdated && !document.isUnreadable
    case .meets(let condition):
      !document.isUnreadable
        && (document.after.map { condition.isMet($0.all, document.path) } ?? false)
    default: true
    }
  }

  /// Makes the commit store contents that its documents refer to.
  mutating func bring(_ contents: [StagedContent]) {
    staged += contents
  }

  /// Makes the commit store contents that its documents refer to, unless they are stored, though
  /// their bytes are elsewhere.
  mutating func expect(_ contents: [ExchangedContent]) {
    expected += contents
  }

  /// The document's place in the list; reads it from the snapshot when it is new.
  private mutating func position(
    of path: DocumentPath, _ stored: (key: [UInt8], row: [UInt8]?)?
  ) throws(DatabaseError) -> Int {
    let next = documents.count
    if let position = positions[path] { return position }
    let collection = try collection(of: path)
    documents.append(try read(path, in: collection, stored))
    positions[path] = next
    return next
  }

  /// The place of the document's collection among the written ones.
  mutating func collection(of path: DocumentPath) throws(DatabaseError) -> Int {
    if let collection = collections.index(of: path) { return collection }
    let collection = path.collection
    let pattern = CollectionPattern(collection)
    let entry = try edit(pattern.root)?.family.collections[pattern]
    let upgrade = entry.flatMap { rows.pendingUpgrade(of: pattern, $0) }
    return collections.add(collection, pattern, entry, upgrade)
  }

  /// The stored state of a document.
  mutating func read(
    _ path: DocumentPath, in collection: Int, _ stored: (key: [UInt8], row: [UInt8]?)? = nil
  ) throws(DatabaseError) -> WrittenDocument {
    var document = WrittenDocument(path: path, collection: collection)
    let row: [UInt8]?
    if let stored {
      document.key = stored.key
      row = stored.row
    } else if let key = collections.key(of: path, in: collection) {
      document.key = key
      row = try rows.row(key)
    } else {
      row = nil
    }
    guard let row, let entry = collections.entry(of: collection) else { return document }
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
  mutating func edit(_ root: String) throws(DatabaseError) -> CatalogEdit? {
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
    case .none, .isOver, .isOutdated, .isUnlinked, .meets:
      break
    case .object(let condition):
      try condition.check(document.after?.all, at: document.path.name)
    case .exists(true):
      guard !exists else { return }
      throw DatabaseError(
        .notFound, "there is no document to update", suggestion: "use setData or create to make one"
      )
    case .exists(false):
      guard exists else { return }
      throw DatabaseError(
        .alreadyExists, "the document exists already", suggestion: "use setData to replace it")
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
}
