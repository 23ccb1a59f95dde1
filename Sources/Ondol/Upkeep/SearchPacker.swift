// Upkeep of a word index: it fills the index with older documents, gathers newly written documents
// into runs, and merges runs. One at a time for an index, under its latch; writes and searches
// continue meanwhile.
//
// 1. A commit gathers a few hundred documents: their fresh rows become chunks of a new run. It
//   guards the fresh rows, so a write of one of the documents comes before or after.
// 2. Eight runs of a level are merged into one of the next. So a search looks into few runs, and a
//   document is copied once for each level. Postings of deleted documents are left out. A run of
//   which a tenth is deleted is copied for that reason alone. Written chunks belong to no run until
//   the last commit, which replaces the old runs with the new one. A crash leaves chunks outside
//   runs, and these are removed first.
//
// On a store, this applies across all processes: one of them at a time has the index, see
// SharedJob. A process that has lost it meanwhile cannot commit its work.

internal import OndolEngine

/// Fills and gathers one word index.
struct SearchPacker: Sendable {
  let database: Database
  let pattern: CollectionPattern
  let keyspace: Keyspace

  /// The number of documents at which they are gathered.
  static let dueCount = 64
  /// The most documents gathered at once.
  private static let gatheredCount = 2048
  /// Bytes of fresh rows after which a run is not made longer.
  private static let gatheredBytes = 2 << 20
  /// The most generations closed at once.
  private static let closedCount: UInt64 = SearchState.mostClosed
  /// Runs of a level that are merged into one.
  static let mergedCount = 8

  private var job: SharedJob { SharedJob(database, "words", keyspace) }

  private var builder: IndexBuilder {
    IndexBuilder(database: database, pattern: pattern, keyspace: keyspace)
  }

  // MARK: - Building

  /// Adds all documents and declares the index ready, unless it is already. Returns false when the
  /// index no longer exists.
  func build(
    _ progress: (IndexProgress) -> Void = { _ in }
  ) async throws(DatabaseError) -> Bool {
    try await database.latches.acquire(.index(keyspace))
    defer {
      database.builds.note(nil, of: keyspace)
      database.latches.release(.index(keyspace))
    }
    return try await job.doInTurn { (isInherited) async throws(DatabaseError) in
      try await removeRests(isInherited)
      return try await buildInTurn(progress)
    }
  }

  private func buildInTurn(
    _ progress: (IndexProgress) -> Void
  ) async throws(DatabaseError) -> Bool {
    var state = IndexProgress(documents: 0, total: try await builder.countDocuments())
    database.builds.note(state, of: keyspace)
    while let count = try await addNextDocuments() {
      state.documents += count
      state.total = max(state.total, state.documents)
      database.builds.note(state, of: keyspace)
      progress(state)
      while try await merge() {}
    }
    guard try await builder.declareReady() else { return false }
    // Live searches may use it from now on, and then have other terms.
    database.observers.invalidate(below: pattern.root)
    try await gatherAll(atLeast: Self.dueCount)
    return true
  }

  @concurrent
  private func addNextDocuments() async throws(DatabaseError) -> Int? {
    try refuseWhenCancelled(
      "building the index continues when the database is opened, or when it is created again")
    return try await commit { (rows) throws(DatabaseError) in try nextDocuments(in: rows) }
  }

  /// A batch with the words of the next documents that are older than the index.
  private func nextDocuments(in rows: Rows) throws(DatabaseError) -> (Batch, Int)? {
    guard let entry = try rows.entry(of: pattern), let index = try builder.index(in: rows),
      index.state != .ready
    else { return nil }
    let range = builder.range(ofMissingFrom: index, in: rows)
    let reader = SelectionReader(FieldSelection(fields: index.read), entry.symbols)
    var run = GatheredRun(index, pattern.ancestorCount, try rows.searchState(of: index))
    var walk = RangeWalk(rows, [range])
    let tokenizer = try rows.tokenizer(of: index, pattern)
    var (last, count, bytes) = ([UInt8](), 0, 0)
    while count < Self.gatheredCount, bytes < Self.gatheredBytes, try walk.next() {
      try walk.show { (key, value) throws(DatabaseError) in
        last = key.array
        count += 1
        bytes += value.byteCount
        let tail = Array(last.dropFirst(Keyspace.prefixLength))
        // The index already has documents written since its declaration.
        guard try rows.searchedPlace(of: tail, in: index) == nil else { return }
        let (_, fields) = try builder.read(key, value, reader)
        guard let row = index.freshRow(of: index.texts(in: fields), tokenizer) else { return }
        try run.add(row.bytes, tail: tail)
      }
    }
    guard count > 0 else { return nil }
    var batch = Batch()
    batch.basis = rows.snapshot.sequence
    batch.guardUnchanged(from: range.lower.bytes, to: (last + [0]).bytes)
    builder.note(index, builtThrough: last, in: &batch, rows)
    run.put(into: &batch)
    return (batch, count)
  }

  // MARK: - Gathering

  /// Gathers written documents, and merges runs.
  ///
  /// - Parameter closing: closes lower generations; nil for all that exist when it begins.
  func gather(closing: UInt64? = nil) async throws(DatabaseError) {
    try await database.latches.acquire(.index(keyspace))
    defer { database.latches.release(.index(keyspace)) }
    // The process that has the job gathers everything.
    _ = try await job.doUnlessTaken { (isInherited) async throws(DatabaseError) in
      try await removeRests(isInherited)
      try await gatherInTurn(closing: closing)
    }
  }

  private func gatherInTurn(closing: UInt64?) async throws(DatabaseError) {
    try await gatherAll(atLeast: Self.dueCount)
    if database.searches.takesDead(of: keyspace, documents: try await documentCount()) {
      while try await removeDead() {}
    }
    try await close(below: closing ?? .max)
  }

  /// The generation of documents that are written now.
  func generation() async throws(DatabaseError) -> UInt64 {
    try await database.read(try database.engineSnapshot()) { (rows) throws(DatabaseError) in
      guard let index = try builder.index(in: rows) else { return 0 }
      return try rows.searchGeneration(of: index)
    }
  }

  /// The number of documents from which runs were made.
  private func documentCount() async throws(DatabaseError) -> Int {
    try await database.read(try database.engineSnapshot()) { (rows) throws(DatabaseError) in
      guard let index = try builder.index(in: rows) else { return 0 }
      return try rows.searchState(of: index).runs.reduce(0) { $0 + $1.documents }
    }
  }

  /// The generation in the key of a fresh row.
  private func generation(
    of key: RawSpan, in index: IndexDefinition
  ) throws(DatabaseError) -> UInt64 {
    try checkingRow(of: index) { () throws(MalformedBytes) in
      var reader = ByteReader(key)
      _ = try reader.take(index.searchKeys.prefix.count + 1)
      return UInt64(bigEndian: try reader.littleEndian())
    }
  }

  /// Closes generations below a number when none of their documents remains: neither searches nor
  /// upkeep look there again.
  private func close(below limit: UInt64) async throws(DatabaseError) {
    _ = try await commit { (rows) throws(DatabaseError) -> (Batch, Int)? in
      guard let index = try builder.index(in: rows) else { return nil }
      let keys = index.searchKeys
      var state = try rows.searchState(of: index)
      var end = min(limit, state.nextRun, state.firstFresh + Self.closedCount)
      guard end > state.firstFresh else { return nil }
      var walk = RangeWalk(
        rows, [KeyRange(lower: keys.fresh(state.firstFresh), upper: keys.fresh(end))])
      if try walk.next() {
        end = try generation(of: walk.cursor.key, in: index)
        // When it was committed, upkeep had already gone past it.
        database.searches.note(firstFresh: end, of: keyspace)
      }
      guard end > state.firstFresh else { return nil }
      var batch = Batch()
      batch.basis = rows.snapshot.sequence
      batch.guardUnchanged(CatalogKey.keyspace(keyspace).bytes)
      batch.guardUnchanged(keys.state.bytes)
      batch.guardUnchanged(from: keys.fresh(state.firstFresh).bytes, to: keys.fresh(end).bytes)
      for old in state.firstClosed..<state.firstFresh { batch.delete(keys.closed(old).bytes) }
      for closed in state.firstFresh..<end { batch.put(keys.closed(closed).bytes, [1].bytes) }
      (state.firstClosed, state.firstFresh) = (state.firstFresh, end)
      batch.put(keys.state.bytes, state.bytes.bytes)
      return (batch, 1)
    }
  }

  /// Gathers everything and merges all runs into one, the state in which a search reads the least.
  func gatherEverything() async throws(DatabaseError) {
    try await database.latches.acquire(.index(keyspace))
    defer { database.latches.release(.index(keyspace)) }
    try await job.doInTurn { (isInherited) async throws(DatabaseError) in
      try await removeRests(isInherited)
      try await gatherEverythingInTurn()
    }
  }

  private func gatherEverythingInTurn() async throws(DatabaseError) {
    database.searches.note(firstFresh: 0, of: keyspace)
    try await gatherAll(atLeast: 1)
    while try await merge(atLeast: 2, acrossLevels: true) {}
    while try await removeDead() {}
    try await close(below: .max)
  }

  private func gatherAll(atLeast least: Int) async throws(DatabaseError) {
    while try await gatherNext(atLeast: least) {
      while try await merge() {}
    }
  }

  /// Makes a run of documents that are not in one yet; false when there are fewer than `least`.
  @concurrent
  private func gatherNext(atLeast least: Int) async throws(DatabaseError) -> Bool {
    try refuseWhenCancelled("what is not gathered yet is found all the same")
    let end = Guarded<UInt64>(0)
    let count = try await commit { (rows) throws(DatabaseError) -> (Batch, Int)? in
      guard let index = try builder.index(in: rows) else { return nil }
      let keys = index.searchKeys
      let state = try rows.searchState(of: index)
      var run = GatheredRun(index, pattern.ancestorCount, state)
      let start = keys.fresh(max(state.firstFresh, database.searches.firstFresh(of: keyspace)))
      var batch = Batch()
      batch.basis = rows.snapshot.sequence
      batch.guardUnchanged(CatalogKey.keyspace(keyspace).bytes)
      var walk = RangeWalk(rows, [KeyRange(lower: start, upper: keys.runs(from: 0))])
      var (count, bytes) = (0, 0)
      var last = state.firstFresh
      while count < Self.gatheredCount, bytes < Self.gatheredBytes, try walk.next() {
        try walk.show { (key, value) throws(DatabaseError) in
          last = try generation(of: key, in: index)
          batch.guardUnchanged(key)
          batch.delete(key)
          try run.add(value, tail: key.extracting(start.count...).array)
          count += 1
          bytes += value.byteCount
        }
      }
      guard count >= least || bytes >= Self.gatheredBytes else { return nil }
      run.put(into: &batch)
      let reached = last
      end.withLock { $0 = reached }
      return (batch, count)
    }
    guard let count, count > 0 else { return false }
    database.searches.note(firstFresh: end.withLock { $0 }, of: keyspace)
    return true
  }

  /// Commits what `derive` makes of a snapshot; nil when that is nothing.
  private func commit(
    _ derive: @escaping @Sendable (Rows) throws(DatabaseError) -> (Batch, Int)?
  ) async throws(DatabaseError) -> Int? {
    try await database.commit(.upkeep, durability: .process) {
      (snapshot) throws(DatabaseError) -> Derivation<Int?> in
      let step = try await database.read(snapshot) {
        (rows) throws(DatabaseError) -> (Batch, Int)? in
        guard var step = try derive(rows) else { return nil }
        try job.guardTurn(in: &step.0, rows)
        return step
      }
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
    guard runs.count >= least else { return false }
    return try await merge(runs, of: index, state, at: snapshot)
  }

  /// Copies a run of which a tenth is deleted; false when there is none.
  private func removeDead() async throws(DatabaseError) -> Bool {
    let snapshot = try database.engineSnapshot()
    let found = try await database.read(snapshot) {
      (rows) throws(DatabaseError) -> (IndexDefinition, SearchState, SearchRun)? in
      guard let index = try builder.index(in: rows) else { return nil }
      let state = try rows.searchState(of: index)
      for run in state.runs {
        let dead = run.documents - (try rows.aliveCount(of: run, index))
        if dead > 0, dead * 10 >= run.documents { return (index, state, run) }
      }
      return nil
    }
    guard let (index, state, run) = found else { return false }
    return try await merge([run], of: index, state, at: snapshot)
  }

  /// Makes one run from several consecutive ones.
  private func merge(
    _ runs: [SearchRun], of index: IndexDefinition, _ state: SearchState, at snapshot: Snapshot
  ) async throws(DatabaseError) -> Bool {
    guard let first = runs.first, let last = runs.last else { return false }
    let merger = try await database.read(snapshot) { (rows) throws(DatabaseError) in
      try RunMerger(index, runs, pattern.ancestorCount, in: rows)
    }
    let merged = SearchRun(
      number: state.nextRun, first: first.first, count: Int(last.first - first.first) + last.count,
      documents: merger.documents)
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
        for chunk in part.chunks {
          let key = index.searchKeys.chunk(target.number, chunk.key, chunk.ordinal)
          batch.put(key.bytes, chunk.bytes.bytes)
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
      let documents = target.documents > 0 ? [target] : []
      state.runs.replaceSubrange(place..<(place + runs.count), with: documents)
      state.nextRun += 1
      var batch = Batch()
      batch.basis = rows.snapshot.sequence
      batch.guardUnchanged(CatalogKey.keyspace(keyspace).bytes)
      batch.guardUnchanged(index.searchKeys.state.bytes)
      batch.put(index.searchKeys.state.bytes, state.bytes.bytes)
      return (batch, 1)
    }
    if isDone != nil {
      for run in runs { try await remove(run.number) }
    }
    return isDone != nil
  }

  /// Removes chunks outside runs: those of an unfinished merge, and those of merged runs that were
  /// not removed. Once after the database was opened, and after a failure. Other merged runs are
  /// removed by their number, because walking over removed rows takes time.
  ///
  /// - Parameter isInherited: whether another process may have left some since.
  private func removeRests(_ isInherited: Bool) async throws(DatabaseError) {
    guard database.searches.takesRests(of: keyspace) || isInherited else { return }
    do throws(DatabaseError) {
      while let run = try await firstRest() { try await remove(run) }
    } catch {
      database.searches.noteRests(of: keyspace)
      throw error
    }
  }

  /// The number of the first run of which only chunks exist.
  private func firstRest() async throws(DatabaseError) -> UInt64? {
    try await database.read(try database.engineSnapshot()) {
      (rows) throws(DatabaseError) -> UInt64? in
      guard let index = try builder.index(in: rows) else { return nil }
      let known = Set(try rows.searchState(of: index).runs.map(\.number))
      let keys = index.searchKeys
      var walk = RangeWalk(
        rows, [KeyRange(lower: keys.runs(from: 0), upper: keys.document(0))])
      var isThere = try walk.next()
      while isThere {
        let key = walk.cursor.key.array
        let run = try checkingRow(of: index) { () throws(MalformedBytes) in
          var reader = ByteReader(key.bytes)
          _ = try reader.take(keys.prefix.count + 1)
          return UInt64(bigEndian: try reader.littleEndian())
        }
        guard known.contains(run) else { return run }
        isThere = try walk.next(from: keys.runs(from: run + 1))
      }
      return nil
    }
  }

  /// Removes the chunks of a run.
  private func remove(_ run: UInt64) async throws(DatabaseError) {
    let behind = Guarded<[UInt8]?>(nil)
    var isLeft = true
    while isLeft {
      try refuseWhenCancelled("what is left of runs goes later")
      isLeft =
        try await commit { (rows) throws(DatabaseError) -> (Batch, Int)? in
          guard let index = try builder.index(in: rows) else { return nil }
          guard !(try rows.searchState(of: index).runs.contains { $0.number == run }) else {
            return nil
          }
          var range = index.searchKeys.range(run)
          if let start = behind.withLock({ $0 }) { range.lower = start }
          var walk = RangeWalk(rows, [range])
          var batch = Batch()
          batch.basis = rows.snapshot.sequence
          batch.guardUnchanged(CatalogKey.keyspace(keyspace).bytes)
          var last: [UInt8] = []
          var count = 0
          while count < 2048, try walk.next() {
            last = walk.cursor.key.array
            batch.delete(last.bytes)
            count += 1
          }
          guard count > 0 else { return nil }
          let next = last + [0]
          behind.withLock { $0 = next }
          return (batch, count)
        } != nil
    }
  }
}

/// A run for a batch.
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

  /// Adds a document with these terms.
  mutating func add(_ row: RawSpan, tail: [UInt8]) throws(DatabaseError) {
    do throws(MalformedBytes) {
      let fresh = try FreshRow(row.array)
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
      number: state.nextRun, first: state.nextOrdinal, count: documents.count,
      documents: documents.count)
    for chunk in builder.chunks() {
      batch.put(keys.chunk(run.number, chunk.key, chunk.ordinal).bytes, chunk.bytes.bytes)
    }
    for (number, document) in documents.enumerated() {
      let ordinal = run.first + UInt64(number)
      let row = SearchedDocument(lengths: document.lengths, tail: document.tail)
      batch.put(keys.document(ordinal).bytes, row.bytes.bytes)
      batch.put(
        keys.place(document.tail).bytes, SearchedPlace.gathered(ordinal).bytes.bytes)
    }
    state.nextOrdinal += UInt64(documents.count)
    state.nextRun += 1
    state.runs.append(run)
    batch.guardUnchanged(keys.state.bytes)
    batch.put(keys.state.bytes, state.bytes.bytes)
  }
}
