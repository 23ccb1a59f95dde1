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
  /// A cancelled task leaves the index as far as it came.
  @concurrent
  func build() async throws(DatabaseError) {
    await database.latches.acquire(.index(keyspace))
    do throws(DatabaseError) {
      while try await addNextDocuments() {
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

  /// Adds documents behind those added so far; false when there are no more.
  private func addNextDocuments() async throws(DatabaseError) -> Bool {
    while let batch = try await nextBatch(at: try database.engineSnapshot()) {
      do throws(EngineError) {
        _ = try await database.engine.commit(batch, durability: .process)
        return true
      } catch .stale {
        // Let whoever wrote one of the documents finish.
        await Task.yield()
      } catch {
        throw DatabaseError(error)
      }
    }
    return false
  }

  /// The rows of the next documents, and how far the index then is; nil when there are no more.
  func nextBatch(at snapshot: Snapshot) async throws(DatabaseError) -> Batch? {
    guard let family = try await database.catalog.family(pattern.root, at: snapshot),
      let entry = family.collections[pattern],
      var index = try await index(at: snapshot), case .building(let through) = index.state
    else { return nil }
    var batch = Batch()
    batch.basis = snapshot.sequence
    let last = try add(documentsBehind: through, of: entry, to: index, in: snapshot, &batch)
    guard let last else { return nil }
    index.state = .building(through: last)
    let row = KeyspaceRow.index(index).bytes
    batch.put(CatalogKey.keyspace(keyspace).bytes, row.bytes)
    return batch
  }

  /// Puts the rows of some documents into the batch; answers the key of the last, or nil when there
  /// is none.
  private func add(
    documentsBehind through: [UInt8]?, of entry: CollectionEntry, to index: IndexDefinition,
    in snapshot: Snapshot, _ batch: inout Batch
  ) throws(DatabaseError) -> [UInt8]? {
    let prefix = entry.keyspace.prefix
    let range = KeyRange(
      lower: through.map { $0 + [0] } ?? prefix, upper: prefix + [KeyCoding.afterAll])
    var walk = RangeWalk(snapshot, [range])
    var last: [UInt8]?
    var count = 0
    var bytes = 0
    while count < Self.batchCount, bytes < Self.batchBytes, try walk.next() {
      let key = walk.cursor.key
      let ids = try DocumentKey.ids(in: key, ancestorCount: pattern.ancestorCount)
      let value = try walk.value
      do throws(MalformedBytes) {
        let fields = try DocumentView(value).fields(entry.symbols)
        let rows = index.rows(of: fields, ancestors: ids.dropLast(), id: ids[ids.count - 1])
        batch.apply(rows.map { .put($0) })
      } catch {
        throw DatabaseError(
          .dataLoss, "a document's bytes are damaged at \(error.offset): \(error.reason)",
          path: "\(pattern): \(ids.joined(separator: "/"))")
      }
      batch.guardUnchanged(key)
      last = key.array
      count += 1
      bytes += value.byteCount
    }
    return last
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
    guard var index = try await index(at: snapshot), index.state != .ready else { return }
    index.state = .ready
    try await database.changeCatalog(of: pattern.root) { (edit) throws(DatabaseError) in
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
        if let family = try catalog.family(root, in: rows) { return CatalogEdit(family) }
        return try CatalogEdit(newFamily: root, following: nil, in: rows)
      }
      let result = try change(&edit)
      guard edit.isChanged else { return result }
      var batch = Batch()
      batch.basis = snapshot.sequence
      edit.write(to: &batch)
      do throws(EngineError) {
        _ = try await engine.commit(
          batch, durability: OndolEngine.Durability(options.durability))
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

  /// Builds what a crash or a cancelled task left unfinished.
  func finishIndexes() async throws(DatabaseError) {
    for family in try catalog.families(at: try engineSnapshot()) {
      for (pattern, entry) in family.collections {
        for index in entry.indexes where index.state != .ready {
          options.logger.notice(
            "finishing an index that was being built",
            metadata: ["collection": "\(pattern)", "index": "\(index.name)"])
          let builder = IndexBuilder(database: self, pattern: pattern, keyspace: index.keyspace)
          try await builder.build()
        }
      }
    }
  }
}
