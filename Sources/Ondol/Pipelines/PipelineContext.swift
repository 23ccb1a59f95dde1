// What all stages of one execution share: the rows of the snapshot, the memory that they may keep,
// and how often a cancelled task is noticed.

internal import OndolEngine

/// One execution of a pipeline. Not Sendable: an execution stays on its thread.
final class PipelineContext {
  let database: Database
  let rows: Rows
  let now: Timestamp
  /// Records the documents and ranges that a transaction reads.
  private let note: (PipelineRead) throws(DatabaseError) -> Void
  private let mostMemory: Int
  private var memory = 0
  private var rowsLeft = PipelineContext.rowsOfBatch
  /// Rows that each stage has passed on, by the place of the stage; for explanations.
  var counts: [Int] = []

  /// Rows between two looks at whether the task was cancelled.
  private static let rowsOfBatch = 256
  /// Bytes of a row, a group or a key beside its values.
  static let overhead = 96

  init(
    _ database: Database, _ rows: Rows,
    note: @escaping (PipelineRead) throws(DatabaseError) -> Void = { _ in }
  ) {
    self.database = database
    self.rows = rows
    self.note = note
    now = Timestamp(unchecked: rows.moment)
    mostMemory = database.pipelineMemory
  }

  func willRead(_ read: PipelineRead) throws(DatabaseError) { try note(read) }

  /// A frame for the expressions of one stage.
  func frame(variables: Int) -> EvaluationFrame {
    EvaluationFrame(now: now, variables: variables) { [database] in
      UInt64(bitPattern: database.random(below: .max)) << 1
    }
  }

  /// Notes that a stage keeps bytes until the end.
  ///
  /// Throws `.resourceExhausted` beyond the memory of `Options.pipelineMemory`.
  func keep(_ bytes: Int, in stage: StaticString) throws(DatabaseError) {
    memory += bytes
    guard memory > mostMemory else { return }
    throw DatabaseError(
      .resourceExhausted,
      "the stage \(stage) keeps more than \(mostMemory) bytes of rows; filter or limit them"
        + " before it, or raise Options.pipelineMemory")
  }

  /// Notes that a stage has dropped bytes that it kept.
  func release(_ bytes: Int) { memory -= bytes }

  /// Called for each row of a source; throws `.cancelled` within a batch of rows after the task was
  /// cancelled.
  func step() throws(DatabaseError) {
    rowsLeft -= 1
    guard rowsLeft == 0 else { return }
    rowsLeft = Self.rowsOfBatch
    if rows.canBeCancelled { try refuseWhenCancelled() }
  }
}

/// What an execution reads, for the footprint of a transaction.
enum PipelineRead {
  case query(Executor)
  case document(DocumentPath)
}

/// A stage, or the end, that rows are passed to one after the other.
protocol RowSink: AnyObject {
  /// Takes a row. Returns false when it wants no more.
  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool

  /// Called once after the last row; not after an error.
  func finish() throws(DatabaseError)
}

/// The end of a pipeline: its rows.
final class RowCollector: RowSink {
  private(set) var rows: [PipelineRow] = []

  func take(_ row: PipelineRow) -> Bool {
    rows.append(row)
    return true
  }

  func finish() {}
}

/// Counts the rows that a stage passes on.
final class RowCounter: RowSink {
  private let context: PipelineContext
  private let place: Int
  private let next: any RowSink

  init(_ context: PipelineContext, _ place: Int, _ next: any RowSink) {
    self.context = context
    self.place = place
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    context.counts[place] += 1
    return try next.take(row)
  }

  func finish() throws(DatabaseError) { try next.finish() }
}

/// The expressions of a stage with the frame that they are computed in.
final class StageExpressions {
  private let stage: StaticString
  let compiled: [CompiledExpression]
  let fields: [PipelineField]
  let frame: EvaluationFrame

  init(
    _ expressions: [PipelineExpression], of stage: StaticString, _ context: PipelineContext
  ) throws(DatabaseError) {
    self.stage = stage
    var compiler = ExpressionCompiler(of: "\(stage)")
    var compiled: [CompiledExpression] = []
    for expression in expressions { compiled.append(try compiler.compile(expression)) }
    self.compiled = compiled
    fields = compiler.slots.fields
    frame = context.frame(variables: compiler.variableCount)
  }

  func load(_ row: PipelineRow) { frame.load(row, fields) }

  /// Whether the first expression is true for the loaded row.
  var isTrue: Bool { compiled[0].isTrue(in: frame) }

  /// The value of an expression for the loaded row; nil when it is absent.
  ///
  /// Throws `.invalidArgument` when it cannot be computed.
  func value(_ place: Int) throws(DatabaseError) -> Value? {
    do throws(ExpressionFailure) {
      return try compiled[place].value(in: frame)
    } catch {
      throw DatabaseError(.invalidArgument, "the stage \(stage): \(error.message)")
    }
  }

  /// The values of all expressions for the row.
  func values(of row: PipelineRow) throws(DatabaseError) -> [Value?] {
    load(row)
    var values: [Value?] = []
    values.reserveCapacity(compiled.count)
    for place in compiled.indices { values.append(try value(place)) }
    return values
  }
}
