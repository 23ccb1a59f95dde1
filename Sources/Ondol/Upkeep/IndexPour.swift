// Fills an index with many documents at a time. Their rows are derived from one snapshot on two
// threads, sorted, and poured into segments, past the log and the memtables (Pour in the engine).
// Later changes of the documents take precedence, because writes maintain the index from its
// declaration on. Then a commit records the progress of the index. If a crash comes before that
// commit, the same rows are derived again.
//
// Unique indexes are not poured, because writing a row must detect that it exists already. Links
// are not poured either, because they check objects as well as documents.

internal import OndolEngine

extension IndexBuilder {
  enum PourOutcome: Sendable {
    /// This many documents were added.
    case poured(Int)
    /// The shard is being merged.
    case notNow
    /// Too little is left, or the index is of a kind that is not poured.
    case never
  }

  /// The approximate number of documents that are poured at once: a few dozen megabytes of rows.
  private static let pourCount = 1_000_000
  /// If the rows of one half exceed this many bytes, commits add them instead.
  fileprivate static let pourBytes = 256 << 20

  /// The rows of some documents.
  fileprivate struct Derived: Sendable {
    var rows = KeyBatch()
    var count = 0
    /// The key of the last document.
    var last: [UInt8] = []
    var isTooLarge = false
  }

  /// The work to do.
  private struct Work: Sendable {
    var index: IndexDefinition
    var entry: CollectionEntry
    var range: KeyRange
    var count: Int
  }

  /// Pours the rows of the next documents, if they are many.
  @concurrent
  func pourNextDocuments() async throws(DatabaseError) -> PourOutcome {
    try refuseWhenCancelled(
      "building the index continues when the database is opened, or when it is created again")
    guard try await work(in: try database.engineSnapshot()) != nil else { return .never }
    let pour = try await rethrowing { () async throws(EngineError) in
      try await database.engine.beginPour(into: keyspace.rawValue)
    }
    guard let pour else { return .notNow }
    let outcome: PourOutcome
    do throws(DatabaseError) {
      outcome = try await fill(pour)
    } catch {
      await pour.end()
      throw error
    }
    await pour.end()
    return outcome
  }

  private func work(in snapshot: Snapshot) async throws(DatabaseError) -> Work? {
    try await database.read(snapshot) { (rows) throws(DatabaseError) in
      guard let family = try rows.catalog.family(pattern.root, in: rows),
        let entry = family.collections[pattern],
        let index = try index(in: rows), index.state != .ready,
        !index.kind.isUnique, !index.kind.isLink
      else { return nil }
      let range = range(ofMissingFrom: index, in: rows)
      let count = try rows.count(of: range)
      guard count >= max(1, database.engine.smallestPour) else { return nil }
      return Work(index: index, entry: entry, range: range, count: count)
    }
  }

  private func fill(_ pour: Pour) async throws(DatabaseError) -> PourOutcome {
    guard let work = try await work(in: pour.snapshot) else { return .never }
    let parts = 2 * max(1, work.count / Self.pourCount)
    let snapshot = pour.snapshot
    let cuts = try await rethrowing { () async throws(EngineError) in
      try await snapshot.readBlocking { () throws(EngineError) in
        try snapshot.cuts(
          from: work.range.lower, to: work.range.upper, into: parts, mayBlock: true)
      }
    }
    let bounds = [work.range.lower] + cuts + [work.range.upper]
    let ranges = zip(bounds, bounds.dropFirst()).prefix(2).map { KeyRange(lower: $0, upper: $1) }
    async let first = derive(work, ranges[0], pour.snapshot)
    let second = ranges.count > 1 ? await derive(work, ranges[1], pour.snapshot) : nil
    var derived = [try await first.get()]
    if let second { derived.append(try second.get()) }
    guard !derived.contains(where: \.isTooLarge) else { return .never }
    let batches = derived.map(\.rows)
    let isPoured = try await rethrowing { () async throws(EngineError) in
      try await pour.write(batches)
    }
    // The index, or another one, may have been dropped; the next step finds out.
    guard isPoured else { return .notNow }
    guard let last = derived.last(where: { $0.count > 0 })?.last else { return .never }
    try await note(through: last)
    return .poured(derived.reduce(0) { $0 + $1.count })
  }

  private func note(through last: [UInt8]) async throws(DatabaseError) {
    _ = try await database.commit(.upkeep, durability: .process) {
      (snapshot) throws(DatabaseError) in
      let batch = try await database.read(snapshot) { (rows) throws(DatabaseError) in
        var batch = Batch()
        batch.basis = rows.snapshot.sequence
        if let index = try index(in: rows), case .building = index.state {
          note(index, builtThrough: last, in: &batch, rows)
        }
        return batch
      }
      return Derivation(outcome: (), batch: batch)
    }
  }

  // MARK: - Rows

  private func derive(
    _ work: Work, _ range: KeyRange, _ snapshot: Snapshot
  ) async -> Result<Derived, DatabaseError> {
    do throws(DatabaseError) {
      let derived = try await database.read(snapshot, canBeCancelled: true) {
        (rows) throws(DatabaseError) in
        var derived = try derive(work, range, in: rows)
        derived.rows.sort()
        return derived
      }
      return .success(derived)
    } catch {
      return .failure(error)
    }
  }

  private func derive(
    _ work: Work, _ range: KeyRange, in rows: Rows
  ) throws(DatabaseError) -> Derived {
    let (index, symbols) = (work.index, work.entry.symbols)
    var plain = PlainIndexRows(index, symbols, ancestorCount: pattern.ancestorCount)
    let reader = SelectionReader(FieldSelection(fields: index.read), symbols)
    var derived = Derived()
    var walk = RangeWalk(rows, [range])
    while !derived.isTooLarge, try walk.next() {
      try walk.show { (key, value) throws(DatabaseError) in
        derived.count += 1
        derived.last.removeAll(keepingCapacity: true)
        derived.last.append(key)
        guard plain != nil else {
          let (ids, fields) = try read(key, value, reader)
          for row in index.rows(of: fields, ancestors: ids.dropLast(), id: ids[ids.count - 1]) {
            derived.add(row.key)
          }
          return
        }
        do throws(MalformedBytes) {
          if let row = try plain?.key(of: DocumentView(value), key) { derived.add(row) }
        } catch {
          let ids = try DocumentKey.ids(in: key, ancestorCount: pattern.ancestorCount)
          throw DatabaseError(error, documentAt: path(ids))
        }
      }
    }
    return derived
  }
}

extension IndexBuilder.Derived {
  fileprivate mutating func add(_ row: [UInt8]) {
    if !rows.append(row.bytes) || rows.byteCount > IndexBuilder.pourBytes { isTooLarge = true }
  }
}
