// Fills a new index with the documents that are older than it, in small commits while writes go on.
//
// 1. The index is declared, `building`, in a commit of its own. From there on every write maintains
//    its rows, because every write guards the family's row and so was prepared after the
//    declaration.
// 2. The older documents are added in the order of their keys, some hundred a commit, or many at a
//    time: see IndexPour. A commit guards the range of documents it was derived from: if one has
//    changed meanwhile, its writer has maintained the index, and the batch is derived again. Each
//    commit also says how far it came.
// 3. The index is declared `ready`, and only now serves queries.
//
// A crash leaves it `building`; after the next opening it goes on where the last commit said, see
// Resumption.

internal import OndolEngine

/// How far an index is that is being built.
public struct IndexProgress: Sendable, Hashable {
  /// Documents added since the building began, or went on after the database was opened.
  public var documents: Int
  /// Documents that are to be added, as far as known by now: exact when they are few, else an
  /// estimate.
  public var total: Int
}

/// Builds one index.
struct IndexBuilder: Sendable {
  let database: Database
  let pattern: CollectionPattern
  let keyspace: Keyspace

  /// Documents added in one commit, at first.
  static let batchCount = 256
  /// Documents added in one commit while nobody else writes and many have been added.
  private static let largestBatchCount = 2048
  /// Pours after which there is a merge; none is poured beside one.
  private static let mostPours = 8
  /// Bytes of documents after which a commit is not made longer.
  static let batchBytes = 1 << 20

  /// Fills the index and declares it ready, unless it is. False when there is no such index any
  /// more.
  ///
  /// A cancelled task leaves the index as far as it came. A unique index that documents disagree
  /// with is dropped, and so is a link that leads nowhere in one of them.
  func build(
    _ progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> Bool {
    do throws(DatabaseError) {
      return try await buildInTurn(progress)
    } catch {
      if error.isOfDocument { try await database.dropIndex(keyspace, of: pattern) }
      throw error
    }
  }

  private func buildInTurn(
    _ progress: (IndexProgress) -> Void
  ) async throws(DatabaseError) -> Bool {
    try await database.latches.acquire(.index(keyspace))
    defer {
      database.builds.note(nil, of: keyspace)
      database.latches.release(.index(keyspace))
    }
    var state = IndexProgress(documents: 0, total: try await countDocuments())
    note(state)
    var mayPour = true
    var pours = 0
    while true {
      var count: Int?
      if mayPour {
        switch try await pourNextDocuments() {
        case .poured(let documents):
          count = documents
          pours += 1
        case .notNow: break
        case .never: mayPour = false
        }
        if pours == Self.mostPours || !mayPour && pours > 0 {
          database.engine.mergePoured(into: keyspace.rawValue)
          pours = 0
        }
      }
      if count == nil { count = try await addNextDocuments(behind: state.documents) }
      guard let count else { break }
      state.documents += count
      state.total = max(state.total, state.documents)
      note(state)
      progress(state)
    }
    return try await declareReady()
  }

  private func note(_ state: IndexProgress) {
    database.builds.note(state, of: keyspace)
  }

  /// Documents that are to be added, about.
  func countDocuments() async throws(DatabaseError) -> Int {
    try await database.read(try database.engineSnapshot()) { (rows) throws(DatabaseError) in
      guard let index = try index(in: rows), index.state != .ready else { return 0 }
      return try rows.count(of: range(ofMissingFrom: index, in: rows))
    }
  }

  /// The documents that are to be added yet.
  func range(ofMissingFrom index: IndexDefinition, in rows: Rows) -> KeyRange {
    var range = KeyRange(prefix: index.documents.prefix)
    if let last = index.lastBuilt(rows.catalog.keys) { range.lower = last + [0] }
    return range
  }

  /// Adds documents behind the `added` first, and says how many; nil when there are no more.
  @concurrent
  private func addNextDocuments(behind added: Int) async throws(DatabaseError) -> Int? {
    // A sixteenth of what is done already, so that a commit is never long for what is short.
    var count = min(max(Self.batchCount, added / 16), Self.largestBatchCount)
    while true {
      try refuseWhenCancelled(
        "the index goes on being built when the database is opened, or when it is created again")
      do throws(DatabaseError) {
        return try await database.commit(.upkeep, durability: .process) {
          (snapshot) throws(DatabaseError) in
          let most = count
          let step = try await database.read(snapshot) { (rows) throws(DatabaseError) in
            try nextStep(in: rows, atMost: most)
          }
          // Where others write, the next attempt is a short one.
          count = Self.batchCount
          return Derivation(outcome: step?.documents, batch: step?.batch ?? Batch())
        }.outcome
      } catch {
        // One of two that agree may be over, which nobody sees any more.
        guard error.code == .alreadyExists, try await database.removeEnded() > 0 else {
          throw error
        }
      }
    }
  }

  /// A commit of the builder.
  struct Step: Sendable {
    var batch: Batch
    var documents: Int
  }

  /// The rows of the next documents, and how far the index then is; nil when there are no more, or
  /// no index.
  func nextStep(
    in rows: Rows, atMost most: Int = batchCount
  ) throws(DatabaseError) -> Step? {
    guard let family = try rows.catalog.family(pattern.root, in: rows),
      let entry = family.collections[pattern],
      let index = try index(in: rows), index.state != .ready
    else { return nil }
    var batch = Batch()
    batch.basis = rows.snapshot.sequence
    let added = try add(most, of: entry, to: index, rows, &batch)
    guard let added else { return nil }
    note(index, builtThrough: added.last, in: &batch, rows)
    return Step(batch: batch, documents: added.count)
  }

  /// Has the batch say how far the index is.
  func note(
    _ index: IndexDefinition, builtThrough last: [UInt8], in batch: inout Batch, _ rows: Rows
  ) {
    var index = index
    index.state = index.built(through: last, rows.catalog.keys)
    let key = CatalogKey.keyspace(keyspace)
    // Whoever drops the index changes its row.
    batch.guardUnchanged(key.bytes)
    batch.putCatalogRow(key, KeyspaceRow.index(index).bytes)
  }

  /// Puts the rows of up to `most` documents that are missing into the batch; answers the key of
  /// the last and how many there are, or nil when there is none.
  private func add(
    _ most: Int, of entry: CollectionEntry, to index: IndexDefinition, _ stored: Rows,
    _ batch: inout Batch
  ) throws(DatabaseError) -> (last: [UInt8], count: Int)? {
    let range = range(ofMissingFrom: index, in: stored)
    var walk = RangeWalk(stored, [range])
    var last: [UInt8] = []
    var count = 0
    var bytes = 0
    var claims = UniqueClaims()
    var plain = PlainIndexRows(index, entry.symbols, ancestorCount: pattern.ancestorCount)
    let reader = SelectionReader(FieldSelection(fields: index.read), entry.symbols)
    while count < most, bytes < Self.batchBytes, try walk.next() {
      try walk.show { (key, value) throws(DatabaseError) in
        if plain != nil {
          try add(key, value, &plain, &batch)
        } else {
          try add(key, value, to: index, reader, stored, &claims, &batch)
        }
        last = key.array
        count += 1
        bytes += value.byteCount
      }
    }
    guard count > 0 else { return nil }
    batch.guardUnchanged(from: range.lower.bytes, to: (last + [0]).bytes)
    try claims.settle(into: &batch, stored)
    return (last, count)
  }

  /// Puts the row of one document into the batch.
  private func add(
    _ key: RawSpan, _ value: RawSpan, _ plain: inout PlainIndexRows?, _ batch: inout Batch
  ) throws(DatabaseError) {
    do throws(MalformedBytes) {
      if let row = try plain?.key(of: DocumentView(value), key) {
        batch.put(row.bytes, RawSpan())
      }
    } catch {
      let ids = try DocumentKey.ids(in: key, ancestorCount: pattern.ancestorCount)
      throw DatabaseError(error, documentAt: path(ids))
    }
  }

  /// Puts the rows of one document into the batch.
  private func add(
    _ key: RawSpan, _ value: RawSpan, to index: IndexDefinition, _ reader: SelectionReader,
    _ stored: Rows, _ claims: inout UniqueClaims, _ batch: inout Batch
  ) throws(DatabaseError) {
    let (ids, fields) = try read(key, value, reader)
    let rows = index.rows(of: fields, ancestors: ids.dropLast(), id: ids[ids.count - 1])
    try claims.apply(IndexChanges(put: rows), of: index, for: path(ids), to: &batch)
    if index.kind.isLink, !rows.isEmpty {
      try stored.requireObjects(linkedBy: index, fields, at: path(ids), in: &batch)
    }
  }

  /// A document's ids, and of its fields those that the index has to do with.
  func read(
    _ key: RawSpan, _ value: RawSpan, _ reader: SelectionReader
  ) throws(DatabaseError) -> (ids: [String], fields: [String: Value]) {
    let ids = try DocumentKey.ids(in: key, ancestorCount: pattern.ancestorCount)
    do throws(MalformedBytes) {
      return (ids, try reader.fields(of: DocumentView(value)))
    } catch {
      throw DatabaseError(error, documentAt: path(ids))
    }
  }

  func path(_ ids: [String]) -> DocumentPath {
    DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] })
  }

  /// The index's own row, which says how far it is.
  func index(in rows: Rows) throws(DatabaseError) -> IndexDefinition? {
    guard let bytes = try rows.row(CatalogKey.keyspace(keyspace)) else { return nil }
    do throws(MalformedBytes) {
      guard case .index(let index) = try KeyspaceRow(bytes.bytes, of: keyspace) else { return nil }
      return index
    } catch {
      throw DatabaseError(catalog: error)
    }
  }

  /// Has queries use the index, if it is still there; false otherwise.
  func declareReady() async throws(DatabaseError) -> Bool {
    try await database.changeCatalog(of: pattern.root) { (edit) throws(DatabaseError) in
      let indexes = edit.family.collections[pattern]?.allIndexes ?? []
      guard var index = indexes.first(where: { $0.keyspace == keyspace }) else { return false }
      guard index.state != .ready else { return true }
      index.state = .ready
      edit.put(index, in: pattern)
      return true
    }
  }
}

/// How far the indexes of a database are that are being built.
final class IndexBuilds: Sendable {
  private let state = Guarded<[Keyspace: IndexProgress]>([:])
  /// What was unfinished when this process looked last.
  let unmoved = Guarded<Set<UnfinishedIndex>>([])

  /// What is being built now.
  var all: [Keyspace: IndexProgress] { state.withLock { $0 } }

  /// - Parameter progress: nil when the index is built, or not being built any more.
  func note(_ progress: IndexProgress?, of index: Keyspace) {
    state.withLock { $0[index] = progress }
  }
}
