// Conditions of queries as expressions of pipelines, for typed pipelines, which share the
// conditions of typed queries.

extension PipelineExpression {
  /// An expression that is true where the condition is met.
  ///
  /// Throws `.invalidArgument` for a comparison of texts other than by their bytes.
  init(_ tree: FilterTree) throws(DatabaseError) {
    switch tree {
    case .field(let filter): try self.init(filter)
    case .all(let trees): self = try Self.combined("and", trees, ofNone: true)
    case .any(let trees): self = try Self.combined("or", trees, ofNone: false)
    }
  }

  private static func combined(
    _ function: String, _ trees: [FilterTree], ofNone: Bool
  ) throws(DatabaseError) -> PipelineExpression {
    var parts: [PipelineExpression] = []
    for tree in trees { parts.append(try PipelineExpression(tree)) }
    return parts.isEmpty
      ? PipelineExpression(.boolean(ofNone)) : .function(function, arguments: parts)
  }

  private init(_ filter: FieldFilter) throws(DatabaseError) {
    let field: PipelineExpression
    switch filter.field {
    case .field(let names): field = Field(FieldPath(names)).pipelineExpression
    case .documentID: field = Field(.documentID()).documentID()
    case .compared:
      throw DatabaseError(
        .invalidArgument, "\(filter.field): a pipeline compares texts by their bytes alone")
    }
    switch filter.condition {
    case .equal(let operand): self = field.equal(operand)
    case .notEqual(let operand): self = field.isValue.and(field.notEqual(operand))
    case .less(let operand): self = field.lessThan(operand)
    case .lessOrEqual(let operand): self = field.lessThanOrEqual(operand)
    case .greater(let operand): self = field.greaterThan(operand)
    case .greaterOrEqual(let operand): self = field.greaterThanOrEqual(operand)
    case .isIn(let operands): self = .function("equal_any", field, Value.array(operands))
    case .notIn(let operands):
      self =
        operands.containsSorted(.null)
        ? PipelineExpression(.boolean(false))
        : field.isValue.and(.function("not_equal_any", field, Value.array(operands)))
    case .arrayContains(let operand): self = field.arrayContains(operand)
    case .arrayContainsAny(let operands):
      self = .function("array_contains_any", field, Value.array(operands))
    case .hasPrefix(let prefix): self = field.startsWith(prefix.text)
    case .matchesText:
      throw DatabaseError(
        .invalidArgument, "\(filter.field): a pipeline compares texts by their bytes alone")
    }
  }

  /// Whether the field is there and not null.
  private var isValue: PipelineExpression { exists().and(notEqual(Value.null)) }

  private func and(_ other: PipelineExpression) -> PipelineExpression {
    .function("and", self, other)
  }
}
