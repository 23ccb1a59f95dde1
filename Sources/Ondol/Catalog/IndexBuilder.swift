// Fills a new index with the documents that are older than it, in small commits while writes go on.
//
// 1. The index is declared, `building`, in a commit of its own. From there on every write maintains
//    its rows, because every write guards the family's row and so was prepared after the
//    declaration.
// 2. The older documents are added in the order of their keys, some hundred a commit. A commit
//    guards the documents it was derived from: if one has changed meanwhile, its writer has
//    maintained the index, and the batch is derived again. Each commit also says how far it came.
// 3. The index is declared `ready`, and only now serves queries.
//
// A crash leaves it `building`; opening the database goes on where the last commit said.

internal import Logging
internal import OndolEngine

/// How far an index is that is being built.
public struct IndexProgress: Sendable, Hashable {
  /// Documents added since this call began.
  public var documents: Int
  /// Documents that are to be added, as known by now.
  public var total: Int
}

/// Builds one index.
struct IndexBuilder {
  let database: Database
  let pattern: CollectionPattern
  let keyspace: Keyspace

  /// Documents added in one commit.
  static let batchCount = 256
  /// Bytes of documents after which a commit is not made longer.
  static let batchBytes = 1 << 20

  /// Fills the index and declares it ready. Does nothing when it is.
  ///
  /// A cancelled task leaves the index as far as it came. A unique index that documents disagree
  /// with is dropped.
  func build(_ progress: (IndexProgress) -> Void = { _ in }) async throws(DatabaseError) {
    do throws(DatabaseError) {
      try await buildInTurn(progress)
    } catch {
      if error.code == .alreadyExists { try await database.dropIndex(keyspace, of: pattern) }
      throw error
    }
  }

  private func buildInTurn(
    _ progress: (IndexProgress) -> Void
  ) async throws(DatabaseError) {
    await database.latches.acquire(.index(keyspace))
    do throws(DatabaseError) {
      var state = IndexProgress(documents: 0, total: try await countDocuments())
      while let count = try await addNextDocuments() {
        state.documents += count
        state.total = max(state.total, state.documents)
        progress(state)
        guard !Task.isCancelled else {
          throw DatabaseError(
            .cancelled,
            "the task was cancelled; the index goes on being built when the database is"
              + " opened, or when it is created again")
        }
      }
      try await declareReady()
    } catch {
      database.latches.release(.index(keyspace))
      throw error
    }
    database.latches.release(.index(keyspace))
  }

  /// Documents that are to be added.
  @concurrent
  private func countDocuments() async throws(DatabaseError) -> Int {
    let snapshot = try database.engineSnapshot()
    guard let index = try await index(at: snapshot), case .building(let through) = index.state
    else { return 0 }
    var walk = RangeWalk(snapshot, [range(of: index, behind: through)])
    var count = 0
    while try walk.next() { count += 1 }
    return count
  }

  private func range(of index: IndexDefinition, behind through: [UInt8]?) -> KeyRange {
    var range = KeyRange(prefix: index.documents.prefix)
    if let through { range.lower = through + [0] }
    return range
  }

  /// Adds documents behind those added so far, and says how many; nil when there are no more.
  @concurrent
  private func addNextDocuments() async throws(DatabaseError) -> Int? {
    while let step = try await nextStep(at: try database.engineSnapshot()) {
      do throws(EngineError) {
        _ = try await database.engine.commit(step.batch, durability: .process)
        return step.documents
      } catch .stale {
        // Let whoever wrote one of the documents finish.
        await Task.yield()
      } catch {
        throw DatabaseError(error)
      }
    }
    return nil
  }

  /// A commit of the builder.
  struct Step: Sendable {
    var batch: Batch
    var documents: Int
  }

  /// The rows of the next documents, and how far the index then is; nil when there are no more, or
  /// no index.
  func nextStep(at snapshot: Snapshot) async throws(DatabaseError) -> Step? {
    guard let family = try await database.catalog.family(pattern.root, at: snapshot),
      let entry = family.collections[pattern],
      var index = try await index(at: snapshot), case .building(let through) = index.state
    else { return nil }
    var batch = Batch()
    batch.basis = snapshot.sequence
    let added = try add(documentsBehind: through, of: entry, to: index, in: snapshot, &batch)
    guard let added else { return nil }
    index.state = .building(through: added.last)
    let key = CatalogKey.keyspace(keyspace)
    let row = KeyspaceRow.index(index).bytes
    // Whoever drops the index changes its row.
    batch.guardUnchanged(key.bytes)
    batch.put(key.bytes, row.bytes)
    return Step(batch: batch, documents: added.count)
  }

  /// Puts the rows of some documents into the batch; answers the key of the last and how many there
  /// are, or nil when there is none.
  private func add(
    documentsBehind through: [UInt8]?, of entry: CollectionEntry, to index: IndexDefinition,
    in snapshot: Snapshot, _ batch: inout Batch
  ) throws(DatabaseError) -> (last: [UInt8], count: Int)? {
    var walk = RangeWalk(snapshot, [range(of: index, behind: through)])
    var claims = UniqueClaims()
    var last: [UInt8]?
    var count = 0
    var bytes = 0
    while count < Self.batchCount, bytes < Self.batchBytes, try walk.next() {
      let key = walk.cursor.key
      let ids = try DocumentKey.ids(in: key, ancestorCount: pattern.ancestorCount)
      let path = DocumentPath(unchecked: zip(pattern.collectionIDs, ids).flatMap { [$0, $1] })
      let value = try walk.value
      let fields: [String: Value]
      do throws(MalformedBytes) {
        fields = try DocumentView(value).fields(entry.symbols)
      } catch {
        throw DatabaseError(error, documentAt: path)
      }
      let rows = index.rows(of: fields, ancestors: ids.dropLast(), id: ids[ids.count - 1])
      try claims.apply(IndexChanges(put: rows), of: index, for: path, to: &batch)
      batch.guardUnchanged(key)
      last = key.array
      count += 1
      bytes += value.byteCount
    }
    try claims.settle(into: &batch, Rows(snapshot, database.catalog, mayBlock: true))
    return last.map { ($0, count) }
  }

  /// The index's own row, which says how far it is.
  private func index(at snapshot: Snapshot) async throws(DatabaseError) -> IndexDefinition? {
    guard let bytes = try await snapshot.row(CatalogKey.keyspace(keyspace)) else { return nil }
    do throws(MalformedBytes) {
      guard case .index(let index) = try KeyspaceRow(bytes.bytes, of: keyspace) else { return nil }
      return index
    } catch {
      throw DatabaseError(catalog: error)
    }
  }

  private func declareReady() async throws(DatabaseError) {
    let snapshot = try database.engineSnapshot()
    guard try await index(at: snapshot)?.state != .ready else { return }
    try await database.changeCatalog(of: pattern.root) { (edit) throws(DatabaseError) in
      let indexes = edit.family.collections[pattern]?.indexes ?? []
      // It may have been dropped meanwhile.
      guard var index = indexes.first(where: { $0.keyspace == keyspace }) else { return }
      index.state = .ready
      edit.put(index, in: pattern)
    }
  }
}

extension Database {
  /// Commits a change of a family's catalog rows, in turn with all others who change it.
  func changeCatalog<R>(
    of root: String, _ change: (inout CatalogEdit) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    let key = LatchKey.family(ExactText(root))
    await latches.acquire(key)
    do throws(DatabaseError) {
      let result = try await changeCatalogInTurn(of: root, change)
      latches.release(key)
      return result
    } catch {
      latches.release(key)
      throw error
    }
  }

  private func changeCatalogInTurn<R>(
    of root: String, _ change: (inout CatalogEdit) throws(DatabaseError) -> R
  ) async throws(DatabaseError) -> R {
    while true {
      let snapshot = try engineSnapshot()
      var edit = try await read(snapshot) { [catalog] (rows) throws(DatabaseError) in
        // The change runs on the caller, where a cold read cannot be begun again.
        let patient = Rows(rows.snapshot, rows.catalog, mayBlock: true)
        if let family = try catalog.family(root, in: rows) {
          return CatalogEdit(family, in: patient)
        }
        return try CatalogEdit(newFamily: root, following: nil, in: patient)
      }
      let result = try change(&edit)
      guard edit.isChanged else { return result }
      var batch = Batch()
      batch.basis = snapshot.sequence
      edit.write(to: &batch)
      do throws(EngineError) {
        let receipt = try await engine.commit(
          batch, durability: OndolEngine.Durability(options.durability))
        edit.resolve(receipt.sequence)
        catalog.install(edit.family)
        return result
      } catch .stale {
        // Another root collection was made at the same moment and took its number.
        await Task.yield()
      } catch {
        throw DatabaseError(error)
      }
    }
  }

  /// Builds and removes what a crash or a cancelled task left unfinished.
  func finishIndexes() async throws(DatabaseError) {
    for family in try catalog.families(at: try engineSnapshot()) {
      for (pattern, entry) in family.collections {
        for index in entry.indexes where index.state != .ready {
          options.logger.notice(
            "finishing an index that was being built",
            metadata: ["collection": "\(pattern)", "index": "\(index.name)"])
          let builder = IndexBuilder(database: self, pattern: pattern, keyspace: index.keyspace)
          do throws(DatabaseError) {
            try await builder.build()
          } catch {
            guard error.code == .alreadyExists else { throw error }
            options.logger.warning("a unique index could not be finished: \(error)")
          }
        }
      }
      for keyspace in family.dropped { try await removeRows(of: keyspace) }
    }
    for family in try catalog.droppedFamilies(at: try engineSnapshot()) {
      try await removeRows(of: family)
    }
    try await finishGroupIndexes()
  }
}
