// What rows add to the groups of an `aggregate`, one row after the other: the values of its groups
// and of its aggregates' arguments. A live pipeline adds them to groups that it keeps.

internal import OndolEngine

/// The end of stages before an `aggregate`.
final class ContributionSink: RowSink, DocumentSink {
  /// - Returns: whether more rows are wanted.
  typealias Body = (_ key: [Value], _ values: [Value?]) throws(DatabaseError) -> Bool

  private let groupCount: Int
  /// The groups' expressions, then the arguments.
  private let expressions: StageExpressions
  private var readers: [FieldsOfPart] = []
  private let body: Body

  init(
    _ aggregates: [AliasedAggregate], groups: [AliasedExpression], _ context: PipelineContext,
    _ body: @escaping Body
  ) throws(DatabaseError) {
    let operands = aggregates.map { $0.aggregate.argument ?? PipelineExpression(.null) }
    expressions = try StageExpressions(
      groups.map(\.expression) + operands, of: "aggregate", context)
    groupCount = groups.count
    self.body = body
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    expressions.load(row)
    return try passLoaded()
  }

  private func passLoaded() throws(DatabaseError) -> Bool {
    var key: [Value] = []
    key.reserveCapacity(groupCount)
    for place in 0..<groupCount { key.append(try expressions.value(place) ?? .null) }
    // Aggregates pass over values that cannot be computed.
    let values = expressions.compiled.indices.dropFirst(groupCount).map {
      try? expressions.value($0)
    }
    return try body(key, values)
  }

  var needsKeys: Bool { expressions.fields.contains { $0.form == .name } }

  func begin(_ parts: [QueryPart]) {
    readers = parts.map { FieldsOfPart(expressions.fields, $0) }
  }

  func take(
    _ view: borrowing DocumentView, _ key: RawSpan, part: Int
  ) throws(DatabaseError) -> Bool {
    try readers[part].load(view, key, into: expressions.frame)
    return try passLoaded()
  }

  func finish() {}
}
