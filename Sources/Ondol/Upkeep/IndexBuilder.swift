// Fills a new index with older documents, in small commits while writes continue.
//
// 1. A commit of its own declares the index as `building`. From then on every write maintains its
//   rows, because every write guards the family's row and so was prepared after the declaration.
// 2. The older documents are added in the order of their keys, a few hundred in a commit, or many
//   at a time: see IndexPour. A commit guards the range of documents it was derived from. If one
//   has changed meanwhile, its writer has maintained the index, and the batch is derived again.
//   Each commit also records the progress.
// 3. The index is declared `ready`, and only now serves queries.
//
// A crash leaves it `building`. After the next open, the build resumes at the recorded progress,
// see Resumption.

internal import OndolEngine

/// The progress of an index build.
public struct IndexProgress: Sendable, Hashable {
  /// Documents added since the build began, or resumed after the database was opened.
  public var documents: Int
  /// Documents to add, as far as known now: exact when there are few, otherwise an estimate.
  public var total: Int
}

/// Builds one index.
struct IndexBuilder: Sendable {
  let database: Database
  let pattern: CollectionPattern
  let keyspace: Keyspace

  /// Documents added in one commit, at first.
  static let batchCount = 256
  /// Documents added in one commit once many have been added and no other process writes.
  private static let largestBatchCount = 2048
  /// Pours before a merge; nothing is poured during a merge.
  private static let mostPours = 8
  /// Bytes of documents after which a commit is not made longer.
  static let batchBytes = 1 << 20

  /// Fills the index and declares it ready, unless it is already. Returns false when the index no
  /// longer exists.
  ///
  /// A cancelled task leaves the index with its progress. If documents have duplicates, a unique
  /// index is dropped. If a document's path has no object, a link is dropped.
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

  /// The approximate number of documents to add.
  func countDocuments() async throws(DatabaseError) -> Int {
    try await database.read(try database.engineSnapshot()) { (rows) throws(DatabaseError) in
      guard let index = try index(in: rows), index.state != .ready else { return 0 }
      return try rows.count(of: range(ofMissingFrom: index, in: rows))
    }
  }

  /// The documents that are still to be added.
  func range(ofMissingFrom index: IndexDefinition, in rows: Rows) -> KeyRange {
    var range = KeyRange(prefix: index.documents.prefix)
    if let last = index.lastBuilt(rows.catalog.keys) { range.lower = last + [0] }
    return range
  }

  /// Adds documents after the first `added` ones, and returns how many; nil when there are no more.
  @concurrent
  private func addNextDocuments(behind added: Int) async throws(DatabaseError) -> Int? {
    // A sixteenth of what is done already, so that a short build has no long commit.
    var count = min(max(Self.batchCount, added / 16), Self.largestBatchCount)
    while true {
      try refuseWhenCancelled(
        "building the index continues when the database is opened, or when it is created again")
      do throws(DatabaseError) {
        return try await database.commit(.upkeep, durability: .process) {
          (snapshot) throws(DatabaseError) in
          let most = count
          let step = try await database.read(snapshot) { (rows) throws(DatabaseError) in
            try nextStep(in: rows, atMost: most)
          }
          // Other processes write, so the next attempt is short.
          count = Self.batchCount
          return Derivation(outcome: step?.documents, batch: step?.batch ?? Batch())
        }.outcome
      } catch {
        // One of the two duplicates may have expired, so that no read returns it any more.
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

  /// The rows of the next documents, and the resulting progress; nil when there are no more, or no
  /// index.
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

  /// Records the progress of the index in the batch.
  func note(
    _ index: IndexDefinition, builtThrough last: [UInt8], in batch: inout Batch, _ rows: Rows
  ) {
    var index = index
    index.state = index.built(through: last, rows.catalog.keys)
    let key = CatalogKey.keyspace(keyspace)
    // Dropping the index changes its row.
    batch.guardUnchanged(key.bytes)
    batch.putCatalogRow(key, KeyspaceRow.index(index).bytes)
  }

  /// Adds the rows of up to `most` missing documents to the batch; returns the key of the last one
  /// and their number, or nil when there is none.
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

  /// Adds the row of one document to the batch.
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

  /// Adds the rows of one document to the batch.
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

  /// A document's ids, and the fields that the index uses.
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

  /// The index's own row, which contains its progress.
  func index(in rows: Rows) throws(DatabaseError) -> IndexDefinition? {
    guard let bytes = try rows.row(CatalogKey.keyspace(keyspace)) else { return nil }
    do throws(MalformedBytes) {
      guard case .index(let index) = try KeyspaceRow(bytes.bytes, of: keyspace) else { return nil }
      return index
    } catch {
      throw DatabaseError(catalog: error)
    }
  }

  /// Makes queries use the index, if it still exists; otherwise returns false.
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

/// The progress of a database's index builds.
final class IndexBuilds: Sendable {
  private let state = Guarded<[Keyspace: IndexProgress]>([:])
  /// The unfinished indexes at this process's last check.
  let unmoved = Guarded<Set<UnfinishedIndex>>([])

  /// The current builds.
  var all: [Keyspace: IndexProgress] { state.withLock { $0 } }

  /// - Parameter progress: nil when the index is built, or its build has stopped.
  func note(_ progress: IndexProgress?, of index: Keyspace) {
    state.withLock { $0[index] = progress }
  }
}
