// A scan in parts for a pipeline that begins with groups: each processor groups the rows of its
// ranges, and the groups are put together in the order of the ranges, so that they are those of one
// walk. The stages after the groups run once. See ScanParts.

internal import OndolEngine

/// Gets the operator of the stage that groups.
final class PartGroups {
  var aggregate: AggregateOperator?
}

/// What one worker has found in its ranges. A class, because a large table must not be copied for
/// each range. A range that is read again has added nothing.
private final class GroupedRanges: Sendable {
  struct State: Sendable {
    var groups: PipelineGroups?
    var bytes = 0
    /// The documents that lookups have read.
    var referred: [JoinedDocuments] = []
  }

  let state = Guarded(State())
}

extension PipelinePlan {
  /// The place of the groups, when all stages before them look at one row at a time and nothing
  /// depends on another order of rows than that of documents' names.
  private var placeOfGroups: Int? {
    guard order.count <= 1, case .query(let shape) = source, shape.limit == nil else { return nil }
    for (place, stage) in rest.enumerated() {
      switch stage {
      case .aggregate, .distinct: return place
      case .window where totals?.place == place: continue
      default: guard stage.makesRowsOfEach else { return nil }
      }
    }
    return nil
  }

  /// Where the scan of a pipeline that groups can be split; nil when that does not pay, or the
  /// pipeline does not begin so.
  func parts(
    _ database: Database, _ rows: Rows
  ) throws(DatabaseError) -> ScanParts? {
    guard placeOfGroups != nil, case .query(let shape) = source else { return nil }
    return try ScanParts(try Executor(shape, in: database, rows))
  }

  /// The rows of the answer, from a scan in parts; nil when the pipeline does not begin with
  /// groups.
  ///
  /// Throws `PipelineContext.partIsFull` when the groups do not fit the memory.
  fileprivate func rows(_ scan: ScanParts) async throws(DatabaseError) -> [PipelineRow]? {
    guard let place = placeOfGroups else { return nil }
    let (states, counts) = try await scan.read(into: GroupedRanges?.none) {
      (ranges, executor) throws(DatabaseError) in
      let known = ranges ?? GroupedRanges()
      ranges = known
      try group(&executor, through: place, into: known)
    }
    var all: (groups: PipelineGroups, bytes: Int)?
    for ranges in states {
      ranges?.state.withLock { state in
        guard let groups = state.groups else { return }
        if all == nil {
          all = (groups, state.bytes)
        } else {
          let kept = all?.groups.add(groups) ?? 0
          all?.bytes += kept
        }
      }
    }
    guard let all else { return nil }
    return try await scan.finish(counts) { (executor) throws(DatabaseError) in
      let collector = RowCollector()
      try PipelineExecution(
        self, PipelineContext(executor.database, executor.rows), depth: 1
      ).run(all.groups, bytes: all.bytes, from: place, into: collector)
      return collector.rows
    }
  }

  /// Adds the groups of one range.
  private func group(
    _ executor: inout Executor, through place: Int, into ranges: GroupedRanges
  ) throws(DatabaseError) {
    let context = PipelineContext(executor.database, executor.rows, isPart: true)
    // What was read serves the next range, even if this one must be read again.
    context.take(
      ranges.state.withLock { state in
        defer { state.referred = [] }
        return state.referred
      })
    defer { ranges.state.withLock { [referred = context.referred] in $0.referred = referred } }
    let found = PartGroups()
    try PipelineExecution(self, context, depth: 1, partGroups: found)
      .group(&executor, through: place)
    guard let (groups, bytes) = found.aggregate?.takeGroups() else { return }
    let kept = ranges.state.withLock { state in
      // Nothing after this can fail but for want of memory, which ends the scan.
      if state.groups == nil {
        (state.groups, state.bytes) = (groups, bytes)
      } else {
        let kept = state.groups?.add(groups) ?? 0
        state.bytes += kept
      }
      return state.bytes
    }
    if kept > executor.database.pipelineMemory / 2 { throw PipelineContext.partIsFull }
  }

  /// The rows of the answer.
  func results(_ context: PipelineContext) throws(DatabaseError) -> [PipelineResult] {
    var plan = self
    if let rewrite = TotalsRewrite(self) {
      let rows = try PipelineExecution(rewrite.first, context, depth: 1).rows()
      plan = rewrite.second(rows, in: context.database) ?? self
    }
    return try PipelineExecution(plan, context).rows().map {
      PipelineResult($0, in: context.database)
    }
  }

  /// The rows of the answer as of now, by as many processors as there are.
  func results(in database: Database) async throws(DatabaseError) -> [PipelineResult] {
    let rewrite = TotalsRewrite(self)
    let first = rewrite?.first ?? self
    let answer = try await database.query(mayBeShort: false) {
      (rows) throws(DatabaseError) -> ReadAnswer<[PipelineResult]> in
      if let parts = try first.parts(database, rows.atOneMoment) { return .inParts(parts) }
      return .found(try results(PipelineContext(database, rows.atOneMoment)))
    }
    guard case .inParts(let scan) = answer else {
      guard case .found(let results) = answer else { return [] }
      return results
    }
    do throws(DatabaseError) {
      var rows = try await first.rows(scan)
      if let rewrite {
        let second = rows.flatMap { rewrite.second($0, in: database) }
        rows = try await second?.rows(scan)
      }
      if let rows { return rows.map { PipelineResult($0, in: database) } }
    } catch {
      guard error.isOfFullPart else { throw error }
    }
    // One walk writes to a scratch file what it cannot keep.
    return try await scan.read { (rows) throws(DatabaseError) in
      try results(PipelineContext(database, rows))
    }
  }
}
