// Upkeep of an index of words: fills it with the documents that are older than it, gathers
// documents that were written since into runs, and merges runs. One at a time for an index, under
// its latch; writes and searches go on meanwhile.
//
// 1. A commit gathers some hundred documents: their fresh rows become chunks of a new run. It
//    guards the fresh rows, so whoever writes one of the documents comes before or after.
// 2. Eight runs of a level are merged into one of the next, so that a search looks into few and a
//    document is copied once a level. Postings of documents that are no more are left out. What is
//    written belongs to no run until the last commit, which puts the new run in the place of the
//    old ones; a crash leaves rows of no run, and those are removed first of all.

internal import OndolEngine

/// Fills and gathers one index of words.
struct SearchPacker: Sendable {
  let database: Database
  let pattern: CollectionPattern
  let keyspace: Keyspace

  /// Documents that are gathered at once.
  static let gatheredCount = 512
  /// Bytes of fresh rows after which a run is not made longer.
  private static let gatheredBytes = 1 << 20
  /// Runs of a level that are merged into one.
  static let mergedCount = 8

  private var builder: IndexBuilder {
    IndexBuilder(database: database, pattern: pattern, keyspace: keyspace)
  }

  // MARK: - Building

  /// Adds all documents and declares the index ready, unless it is. False when there is no such
  /// index any more.
  func build(
    _ progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> Bool {
    try await database.latches.acquire(.index(keyspace))
    defer {
      database.builds.note(nil, of: keyspace)
      database.latches.release(.index(keyspace))
    }
    var state = IndexProgress(documents: 0, total: try await builder.countDocuments())
    database.builds.note(state, of: keyspace)
    try await removeRests()
    while let count = try await addNextDocuments() {
      state.documents += count
      state.total = max(state.total, state.documents)
      database.builds.note(state, of: keyspace)
      progress(state)
      while try await merge() {}
    }
    guard try await builder.declareReady() else { return false }
    try await gatherAll(atLeast: Self.gatheredCount)
    return true
  }

  @concurrent
  private func addNextDocuments() async throws(DatabaseError) -> Int? {
    try refuseWhenCancelled(
      "the index goes on being built when the database is opened, or when it is created again")
    return try await commit { (rows) throws(DatabaseError) in try nextDocuments(in: rows) }
  }

  /// A batch with the words of the next documents that are older than the index.
  private func nextDocuments(in rows: Rows) throws(DatabaseError) -> (Batch, Int)? {
    guard let entry = try rows.entry(of: pattern), let index = try builder.index(in: rows),
      case .building(let through) = index.state
    else { return nil }
    let range = builder.range(of: index, behind: through)
    let keys = index.searchKeys
    let reader = SelectionReader(FieldSelection(fields: index.read), entry.symbols)
    var run = GatheredRun(index, pattern.ancestorCount, try rows.searchState(of: index))
    var walk = RangeWalk(rows, [range])
    var (last, count, bytes) = ([UInt8](), 0, 0)
    while count < Self.gatheredCount, bytes < Self.gatheredBytes, try walk.next() {
      try walk.show { (key, value) throws(DatabaseError) in
        last = key.array
        count += 1
        bytes += value.byteCount
        let tail = Array(last.dropFirst(Keyspace.prefixLength))
        // What was written since the index was declared is in it.
        guard try rows.row(keys.fresh(tail)) == nil, try rows.row(keys.ordinal(tail)) == nil
        else { return }
        let (_, fields) = try builder.read(key, value, reader)
        guard let row = index.freshRow(of: index.texts(in: fields)) else { return }
        try run.add(row.bytes, tail: tail)
      }
    }
    guard count > 0 else { return nil }
    var batch = Batch()
    batch.basis = rows.snapshot.sequence
    batch.guardUnchanged(from: range.lower.bytes, to: (last + [0]).bytes)
    builder.note(index, builtThrough: last, in: &batch)
    run.put(into: &batch)
    return (batch, count)
  }

  // MARK: - Gathering

  /// Gathers what was written, and merges.
  func gather() async throws(DatabaseError) {
    try await database.latches.acquire(.index(keyspace))
    defer { database.latches.release(.index(keyspace)) }
    try await removeRests()
    try await gatherAll(atLeast: Self.gatheredCount)
  }

  /// Gathers all there is and merges all runs into one: what a search reads least of.
  func gatherEverything() async throws(DatabaseError) {
    try await database.latches.acquire(.index(keyspace))
    defer { database.latches.release(.index(keyspace)) }
    try await removeRests()
    try await gatherAll(atLeast: 1)
    while try await merge(atLeast: 2, acrossLevels: true) {}
  }

  private func gatherAll(atLeast least: Int) async throws(DatabaseError) {
    while try await gatherNext(atLeast: least) {
      while try await merge() {}
    }
  }

  /// Makes a run of documents that are not gathered yet; false when there are fewer than `least`.
  @concurrent
  private func gatherNext(atLeast least: Int) async throws(DatabaseError) -> Bool {
    try refuseWhenCancelled("what is not gathered yet is found all the same")
    let count = try await commit { (rows) throws(DatabaseError) -> (Batch, Int)? in
      guard let index = try builder.index(in: rows) else { return nil }
      let keys = index.searchKeys
      var run = GatheredRun(index, pattern.ancestorCount, try rows.searchState(of: index))
      var batch = Batch()
      batch.basis = rows.snapshot.sequence
      batch.guardUnchanged(CatalogKey.keyspace(keyspace).bytes)
      var walk = RangeWalk(rows, [KeyRange(lower: keys.fresh([]), upper: keys.runs(from: 0))])
      var (count, bytes) = (0, 0)
      while count < Self.gatheredCount, bytes < Self.gatheredBytes, try walk.next() {
        try walk.show { (key, value) throws(DatabaseError) in
          batch.guardUnchanged(key)
          batch.delete(key)
          try run.add(value, tail: key.extracting(keys.fresh([]).count...).array)
          count += 1
          bytes += value.byteCount
        }
      }
      guard count >= least || bytes >= Self.gatheredBytes else { return nil }
      run.put(into: &batch)
      return (batch, count)
    }
    return (count ?? 0) > 0
  }

  /// Commits what `derive` makes of a snapshot; nil when that is nothing.
  private func commit(
    _ derive: @escaping @Sendable (Rows) throws(DatabaseError) -> (Batch, Int)?
  ) async throws(DatabaseError) -> Int? {
    try await database.commit(.upkeep, durability: .process) {
      (snapshot) throws(DatabaseError) -> Derivation<Int?> in
      let step = try await database.read(snapshot, derive)
      return Derivation(outcome: step?.1, batch: step?.0 ?? Batch())
    }.outcome
  }

  // MARK: - Merging

  /// Merges runs, if there are enough; false when there are not.
  private func merge(
    atLeast least: Int = mergedCount, acrossLevels: Bool = false
  ) async throws(DatabaseError) -> Bool {
    let snapshot = try database.engineSnapshot()
    let found = try await database.read(snapshot) {
      (rows) throws(DatabaseError) -> (IndexDefinition, SearchState)? in
      guard let index = try builder.index(in: rows) else { return nil }
      return (index, try rows.searchState(of: index))
    }
    guard let (index, state) = found, let last = state.runs.last else { return false }
    let runs =
      acrossLevels
      ? state.runs
      : Array(
        state.runs.reversed().prefix { $0.level <= last.level }.reversed())
    guard runs.count >= least, let first = runs.first else { return false }
    var merged = SearchRun(
      number: state.nextRun, level: min(64, (runs.map(\.level).max() ?? 0) + 1),
      first: first.first, count: 0)
    merged.count = Int(last.first - first.first) + last.count
    let merger = try await database.read(snapshot) { (rows) throws(DatabaseError) in
      try RunMerger(index, runs, pattern.ancestorCount, in: rows)
    }
    var behind: [UInt8]?
    while true {
      try refuseWhenCancelled("runs are merged later")
      let start = behind
      let part = try await database.read(snapshot) { (rows) throws(DatabaseError) in
        try merger.part(behind: start, in: rows)
      }
      let target = merged
      _ = try await commit { (rows) throws(DatabaseError) in
        guard try builder.index(in: rows) != nil else { return nil }
        var batch = Batch()
        batch.basis = rows.snapshot.sequence
        batch.guardUnchanged(CatalogKey.keyspace(keyspace).bytes)
        for (bytes, key, ordinal) in part.chunks {
          batch.put(index.searchKeys.chunk(target.number, key, ordinal).bytes, bytes.bytes)
        }
        return (batch, part.chunks.count)
      }
      guard let next = part.next else { break }
      behind = next
    }
    let target = merged
    let isDone = try await commit { (rows) throws(DatabaseError) in
      guard try builder.index(in: rows) != nil else { return nil }
      var state = try rows.searchState(of: index)
      guard let place = state.runs.firstIndex(of: first), state.nextRun == target.number else {
        return nil
      }
      state.runs.replaceSubrange(place..<(place + runs.count), with: [target])
      state.nextRun += 1
      var batch = Batch()
      batch.basis = rows.snapshot.sequence
      batch.guardUnchanged(CatalogKey.keyspace(keyspace).bytes)
      batch.guardUnchanged(index.searchKeys.state.bytes)
      batch.put(index.searchKeys.state.bytes, state.bytes.bytes)
      return (batch, 1)
    }
    try await removeRests()
    return isDone != nil
  }

  /// Removes chunks of runs that there are not: of merged ones, and of a merge that was not ended.
  private func removeRests() async throws(DatabaseError) {
    var isLeft = true
    while isLeft {
      try refuseWhenCancelled("what is left of runs goes later")
      isLeft =
        try await commit { (rows) throws(DatabaseError) -> (Batch, Int)? in
          guard let index = try builder.index(in: rows) else { return nil }
          let known = Set(try rows.searchState(of: index).runs.map(\.number))
          let keys = index.searchKeys
          let range = KeyRange(lower: keys.runs(from: 0), upper: keys.document(0))
          var walk = RangeWalk(rows, [range])
          var batch = Batch()
          batch.basis = rows.snapshot.sequence
          batch.guardUnchanged(CatalogKey.keyspace(keyspace).bytes)
          var count = 0
          var isThere = try walk.next()
          while isThere, count < 2048 {
            let key = walk.cursor.key.array
            let run = try checkingRow(of: index) { () throws(MalformedBytes) in
              var reader = ByteReader(key.bytes)
              _ = try reader.take(keys.prefix.count + 1)
              return UInt64(bigEndian: try reader.littleEndian())
            }
            if known.contains(run) {
              isThere = try walk.next(from: keys.runs(from: run + 1))
            } else {
              batch.delete(key.bytes)
              count += 1
              isThere = try walk.next()
            }
          }
          return count > 0 ? (batch, count) : nil
        } != nil
    }
  }
}

/// A run on its way into a batch.
private struct GatheredRun {
  private let index: IndexDefinition
  private let ancestorCount: Int
  private var state: SearchState
  private var builder = RunBuilder()
  private var documents: [(tail: [UInt8], lengths: [Int])] = []

  init(_ index: IndexDefinition, _ ancestorCount: Int, _ state: SearchState) {
    self.index = index
    self.ancestorCount = ancestorCount
    self.state = state
  }

  /// Adds a document that has these terms.
  mutating func add(_ row: RawSpan, tail: [UInt8]) throws(DatabaseError) {
    do throws(MalformedBytes) {
      let fresh = try FreshRow(row)
      let scope = try index.scope(ofTail: tail, ancestorCount: ancestorCount)
      try builder.add(fresh, scope: scope, UInt32(documents.count))
      documents.append((tail, fresh.lengths))
    } catch {
      throw DatabaseError(searching: index, error)
    }
  }

  mutating func put(into batch: inout Batch) {
    guard !documents.isEmpty else { return }
    let keys = index.searchKeys
    let run = SearchRun(
      number: state.nextRun, level: 0, first: state.nextOrdinal, count: documents.count)
    for (bytes, key, ordinal) in builder.chunks() {
      batch.put(keys.chunk(run.number, key, ordinal).bytes, bytes.bytes)
    }
    for (number, document) in documents.enumerated() {
      let ordinal = run.first + UInt64(number)
      let row = SearchedDocument(lengths: document.lengths, tail: document.tail)
      batch.put(keys.document(ordinal).bytes, row.bytes.bytes)
      var value: [UInt8] = []
      value.appendVarint(ordinal)
      batch.put(keys.ordinal(document.tail).bytes, value.bytes)
    }
    state.nextOrdinal += UInt64(documents.count)
    state.nextRun += 1
    state.runs.append(run)
    batch.guardUnchanged(keys.state.bytes)
    batch.put(keys.state.bytes, state.bytes.bytes)
  }
}
