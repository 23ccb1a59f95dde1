// A readable explanation of a pipeline: the part that a query serves and how, and the stages after
// it, with their rows when the pipeline was carried out.

internal import OndolEngine

/// How a pipeline is carried out, and at what cost.
public struct PipelineExplanation: Sendable, CustomStringConvertible {
  /// The names of the first stages that one query serves, beginning with the source. A condition
  /// that it serves in part is also among the `stages`.
  public let served: [String]
  /// How that query finds its documents; nil when the source is not a single query.
  public let query: QueryExplanation?
  /// The stages after the query.
  public let stages: [Stage]
  /// Documents that the source has passed on; nil without `analyze`.
  public let sourceRows: Int?
  /// How long it took; nil without `analyze`.
  public let duration: Duration?

  /// A stage after the query.
  public struct Stage: Sendable, Hashable {
    /// Its name in the protocol.
    public let name: String
    /// Rows that it has passed on; nil without `analyze`.
    public let rows: Int?
  }

  /// The fields by which rows come that no stage sorts; empty when their order does not show.
  public let order: [String]

  /// The whole explanation, one line for each point.
  public var description: String { lines.joined(separator: "\n") }

  /// The lines of the description: what the execution cost, under the heading that Firestore's
  /// explanations have, and the stages.
  package var lines: [String] {
    var lines: [String] = []
    if let duration, let sourceRows {
      lines.append("Execution:")
      lines.append("  results returned: \(stages.last?.rows ?? sourceRows)")
      lines.append("  documents passed on: \(sourceRows)")
      lines.append("  duration: \(duration)")
      lines.append("")
    }
    lines.append("Tree:")
    lines.append("  \(served.joined(separator: ", "))\(Self.rows(sourceRows))")
    if let query { lines += query.lines.map { "    \($0)" } }
    if !order.isEmpty { lines.append("    in the order of \(order.joined(separator: ", "))") }
    for stage in stages { lines.append("  \(stage.name)\(Self.rows(stage.rows))") }
    return lines
  }

  private static func rows(_ count: Int?) -> String {
    count.map { ": \($0) row\($0 == 1 ? "" : "s")" } ?? ""
  }
}

extension Pipeline {
  /// How the pipeline is carried out: which stages a query serves, with which index, and which
  /// stages follow it.
  ///
  /// - Parameter analyze: whether it is carried out, to count the rows of each stage.
  /// - Throws: as `execute()`.
  public func explain(analyze: Bool = false) async throws(DatabaseError) -> PipelineExplanation {
    let plan = try PipelinePlan(stages.get())
    let start = ContinuousClock.now
    let counts = try await database.query(mayBeShort: false) {
      [database] (rows) throws(DatabaseError) -> [Int]? in
      guard analyze else { return nil }
      let context = PipelineContext(database, rows.atOneMoment)
      _ = try PipelineExecution(plan, context).rows()
      return context.counts
    }
    let duration = ContinuousClock.now - start
    var query: QueryExplanation?
    if case .query(let shape) = plan.source {
      query = try await Query(database: database, shape: shape).explain()
    }
    return PipelineExplanation(
      served: plan.served.map(\.name), query: query,
      stages: plan.rest.enumerated().map { place, stage in
        PipelineExplanation.Stage(name: stage.name, rows: counts.map { $0[place + 1] })
      },
      sourceRows: counts.map { $0[0] }, duration: analyze ? duration : nil,
      order: plan.order.map { "\($0.expression)" })
  }
}

extension Query {
  fileprivate init(database: Database, shape: QueryShape) {
    self.init(database: database, source: .success(shape.source))
    self.shape = .success(shape)
  }
}
