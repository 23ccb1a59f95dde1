// What `aggregate` computes about rows, as the app writes it. PipelineAccumulator computes it.

/// A number or a value to compute about the rows of a group.
public struct PipelineAggregate: Sendable, Hashable {
  let name: String
  let argument: PipelineExpression?

  init(_ name: String, _ argument: PipelineExpression?) {
    self.name = name
    self.argument = argument
  }

  /// The number of rows.
  public static func count() -> PipelineAggregate { PipelineAggregate("count", nil) }

  /// An aggregate by its name in Firestore's protocol. The call that executes the pipeline throws
  /// `.invalidArgument` for an unknown one.
  public static func function(
    _ name: String, _ argument: (any PipelineOperand)? = nil
  ) -> PipelineAggregate {
    PipelineAggregate(name, argument?.pipelineExpression)
  }

  /// The aggregate under a name.
  public func `as`(_ name: String) -> AliasedAggregate {
    AliasedAggregate(name: name, aggregate: self)
  }
}

/// An aggregate under a name.
public struct AliasedAggregate: Sendable, Hashable {
  /// The name.
  public let name: String
  let aggregate: PipelineAggregate

  /// An aggregate under a name, which is taken literally.
  public init(name: String, aggregate: PipelineAggregate) {
    self.name = name
    self.aggregate = aggregate
  }
}

extension AliasedAggregate {
  /// The number of rows, for chains such as `.count().as("n")` where an aliased aggregate is asked
  /// for.
  public static func count() -> PipelineAggregate { .count() }
}

extension PipelineAggregate: CustomStringConvertible {
  /// The aggregate in readable form.
  public var description: String { "\(name)(\(argument.map { "\($0)" } ?? ""))" }
}

/// What `window` computes for each row from the sorted rows of its group.
public struct PipelineWindow: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    /// The position, 1 for the first row.
    case rowNumber
    /// The position, the same for rows that are equal in the order, with gaps or without.
    case rank
    case denseRank
    /// The sum of the numbers up to the row.
    case runningSum(PipelineExpression)
    /// The sum of the numbers of the whole group.
    case total(PipelineExpression)
    /// The value in the row that many rows before.
    case lag(PipelineExpression, Int)
  }

  let kind: Kind

  /// The position of the row in its group, from 1.
  public static func rowNumber() -> PipelineWindow { PipelineWindow(kind: .rowNumber) }
  /// The position of the row; rows that are equal in the order share the first one's.
  public static func rank() -> PipelineWindow { PipelineWindow(kind: .rank) }
  /// As `rank()`, without gaps after rows that share a position.
  public static func denseRank() -> PipelineWindow { PipelineWindow(kind: .denseRank) }
  /// The exact sum of the numbers in the rows up to this one.
  public static func runningSum(_ operand: any PipelineOperand) -> PipelineWindow {
    PipelineWindow(kind: .runningSum(operand.pipelineExpression))
  }
  /// The exact sum of the numbers in all rows of the group, for shares of a total.
  public static func total(_ operand: any PipelineOperand) -> PipelineWindow {
    PipelineWindow(kind: .total(operand.pipelineExpression))
  }
  /// The value in an earlier row; absent in the first rows.
  ///
  /// - Parameters:
  ///   - operand: the value.
  ///   - rows: how many rows before, 1 or more.
  public static func lag(_ operand: any PipelineOperand, rows: Int = 1) -> PipelineWindow {
    PipelineWindow(kind: .lag(operand.pipelineExpression, rows))
  }

  /// The value under a name.
  public func `as`(_ name: String) -> AliasedWindow { AliasedWindow(name: name, window: self) }
}

/// What `window` computes, under a name.
public struct AliasedWindow: Sendable, Hashable {
  let name: String
  let window: PipelineWindow
}

/// The windows, for chains such as `.rank().as("place")` where an aliased window is asked for.
extension AliasedWindow {
  /// See `PipelineWindow.rowNumber()`.
  public static func rowNumber() -> PipelineWindow { .rowNumber() }
  /// See `PipelineWindow.rank()`.
  public static func rank() -> PipelineWindow { .rank() }
  /// See `PipelineWindow.denseRank()`.
  public static func denseRank() -> PipelineWindow { .denseRank() }
  /// See `PipelineWindow.runningSum(_:)`.
  public static func runningSum(_ operand: any PipelineOperand) -> PipelineWindow {
    .runningSum(operand)
  }
  /// See `PipelineWindow.total(_:)`.
  public static func total(_ operand: any PipelineOperand) -> PipelineWindow { .total(operand) }
  /// See `PipelineWindow.lag(_:rows:)`.
  public static func lag(_ operand: any PipelineOperand, rows: Int = 1) -> PipelineWindow {
    .lag(operand, rows: rows)
  }
}
