// Long scans, read in parts in parallel. The read path is synchronous and stays so. One executor
// makes the plan. For a scan of many documents it returns where the scan can be split instead of
// carrying it out. Each worker then carries out the same plan for one range after the other. The
// workers' results are combined in their order, which is that of the documents. Between two ranges,
// a worker yields to the app's other tasks.

internal import OndolEngine

/// The outcome of a read.
enum ReadAnswer<Result: Sendable>: Sendable {
  case found(Result)
  /// The plan, to carry out in parts.
  case inParts(ScanParts)
}

/// A scan and where it is split.
struct ScanParts: Sendable {
  let database: Database
  let snapshot: Snapshot
  let shape: QueryShape
  let query: NormalQuery
  private let part: QueryPart
  /// The time that decides which documents have expired.
  private let moment: Int64
  /// Each worker's ranges, consecutive like the workers.
  private let ranges: [[KeyRange]]

  /// The approximate number of documents in one range: a few milliseconds of one core.
  private static let rowsOfRange = 32_768

  /// Returns nil when the executor's plan is not a scan, or not one worth splitting.
  init?(_ executor: Executor) throws(DatabaseError) {
    let (database, rows) = (executor.database, executor.rows)
    guard rows.mayBeInParts, rows.catalog === database.catalog, executor.hasNoUpgrades,
      executor.parts.count == 1, executor.parts[0].plan.ways.count == 1,
      case .scan(let range, reversed: false) = executor.parts[0].plan.ways[0]
    else { return nil }
    let count = try rows.estimatedCount(of: range)
    let width = min(database.engine.scanWidth, count / database.engine.smallestScanPart)
    guard width > 1 else { return nil }
    let turns = 1 + count / width / Self.rowsOfRange
    let cuts = try rows.cuts(of: range, into: width * turns)
    guard !cuts.isEmpty else { return nil }
    let bounds = [range.lower] + cuts + [range.upper]
    let ranges = zip(bounds, bounds.dropFirst()).map { KeyRange(lower: $0, upper: $1) }
    self.database = database
    snapshot = rows.snapshot
    shape = executor.shape
    query = executor.query
    part = executor.parts[0]
    moment = rows.moment
    self.ranges = (0..<width).map { Array(ranges[($0 * turns)..<(($0 + 1) * turns)]) }
  }

  /// Has workers carry out the plan; returns each worker's outcome, in the order of the documents.
  ///
  /// - Parameters:
  ///   - fresh: a worker's initial state.
  ///   - body: carries out the plan for one range, and adds what it finds.
  @concurrent
  func read<State: Sendable>(
    into fresh: State,
    _ body: @escaping @Sendable (inout State, inout Executor) throws(DatabaseError) -> Void
  ) async throws(DatabaseError) -> (states: [State], counts: ExecutionCounts) {
    let results = await withTaskGroup(
      of: (worker: Int, result: Result<(State, ExecutionCounts), DatabaseError>).self
    ) { group in
      for worker in ranges.indices {
        group.addTask {
          (worker, await work(through: ranges[worker], from: fresh, body))
        }
      }
      var results: [Result<(State, ExecutionCounts), DatabaseError>?] = ranges.map { _ in nil }
      for await (worker, result) in group {
        results[worker] = result
        if case .failure = result { group.cancelAll() }
      }
      return results
    }
    var (states, counts): ([State], ExecutionCounts) = ([], ExecutionCounts())
    // The first failure has cancelled the others.
    let failures = results.compactMap { if case .failure(let error) = $0 { error } else { nil } }
    if let failure = failures.first(where: { $0.code != .cancelled }) ?? failures.first {
      throw failure
    }
    for case .success(let (state, own)) in results {
      states.append(state)
      counts.entriesVisited += own.entriesVisited
      counts.documentsExamined += own.documentsExamined
    }
    return (states, counts)
  }

  private func work<State: Sendable>(
    through ranges: [KeyRange], from fresh: State,
    _ body: @escaping @Sendable (inout State, inout Executor) throws(DatabaseError) -> Void
  ) async -> Result<(State, ExecutionCounts), DatabaseError> {
    var (state, counts) = (fresh, ExecutionCounts())
    for range in ranges {
      do throws(DatabaseError) {
        (state, counts) = try await database.read(snapshot, asOf: moment, canBeCancelled: true) {
          [state, counts] (rows) throws(DatabaseError) in
          // A read may be retried, so it must not change our state.
          var (state, executor) = (state, executor(over: range, rows, counts))
          try body(&state, &executor)
          return (state, executor.counts)
        }
      } catch {
        return .failure(error)
      }
      await Task.yield()
    }
    return .success((state, counts))
  }

  /// Reads the rows of the scan's snapshot in one go.
  func read<Result: Sendable>(
    _ body: @escaping @Sendable (Rows) throws(DatabaseError) -> Result
  ) async throws(DatabaseError) -> Result {
    try await database.read(snapshot, asOf: moment, canBeCancelled: true, body)
  }

  private func executor(
    over range: KeyRange, _ rows: Rows, _ counts: ExecutionCounts
  ) -> Executor {
    var plan = part.plan
    plan.ways = [.scan(range, reversed: false)]
    let part = QueryPart(
      naming: part.naming, matcher: part.matcher, plan: plan, awaited: part.awaited,
      indexes: part.indexes)
    return Executor(shape, query, part, in: database, rows, counts)
  }

  /// Uses the whole result once more without another walk: `body` gets an executor that has counted
  /// the workers' steps.
  func finish<Result: Sendable>(
    _ counts: ExecutionCounts,
    _ body: @escaping @Sendable (inout Executor) throws(DatabaseError) -> Result
  ) async throws(DatabaseError) -> Result {
    try await database.read(snapshot, asOf: moment, canBeCancelled: true) {
      (rows) throws(DatabaseError) in
      var executor = Executor(shape, query, part, in: database, rows, counts)
      return try body(&executor)
    }
  }
}

// MARK: - Documents

extension ScanParts {
  /// The documents that one worker has found.
  private struct Found: Sendable {
    var documents: [DocumentSnapshot] = []
    /// The positions of documents, when they must be sorted first.
    var ranked: [Ranked] = []
    var hasLeftOut = false
  }

  /// Returns nil when splitting the search does not pay: when its order is the scan's, it may end
  /// after a few documents.
  init?(documentsOf executor: Executor) throws(DatabaseError) {
    guard executor.query.isWhole || !executor.isInOrder && executor.query.limit > 0 else {
      return nil
    }
    try self.init(executor)
  }

  /// The result of `query`.
  func snapshot(of query: Query) async throws(DatabaseError) -> QuerySnapshot {
    let (limit, overflow) = self.query.limit.addingReportingOverflow(self.query.offset)
    let wanted = overflow ? .max : limit
    let (states, counts) = try await read(into: Found()) {
      (found, executor) throws(DatabaseError) in
      if executor.isInOrder {
        found.documents += try executor.documents()
      } else {
        let (ranked, hasLeftOut) = try executor.sorted(limit: wanted)
        found.ranked += ranked
        if hasLeftOut { found.hasLeftOut = true }
      }
    }
    return try await finish(counts) { (executor) throws(DatabaseError) in
      let result: QuerySnapshot
      if executor.isInOrder {
        result = try executor.snapshot(of: query, states.flatMap(\.documents), isLast: true)
      } else {
        var collector = ResultCollector(executor.query.orders, limit: wanted)
        for document in states.lazy.flatMap(\.ranked) {
          collector.add(document, sortKeys: document.sortKeys)
        }
        let ranked = collector.finish().dropFirst(executor.query.offset)
        let hasLeftOut = collector.hasLeftOut || states.contains(where: \.hasLeftOut)
        let documents = try executor.shaped(ranked)
        result = try executor.snapshot(
          of: query, executor.query.isReversed ? documents.reversed() : documents,
          isLast: !hasLeftOut)
      }
      database.suggestIndex(after: executor, returned: result.count)
      return result
    }
  }
}
