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
  /// Whether the thread may wait for a disk.
  private let mayWait: Bool
  private var spill: Spill?
  /// Whether it is one of several parts of a scan, which write no scratch file.
  private let isPart: Bool
  /// Whether what is read counts as read by a transaction.
  let notesReads: Bool
  /// Documents that lookups have read: of each lookup, in the order in which they are made.
  var referred: [JoinedDocuments] = []
  private var lookupCount = 0
  private var rowsLeft = PipelineContext.rowsOfBatch
  /// Rows that each stage has passed on, by the place of the stage; for explanations.
  var counts: [Int] = []

  /// Rows between two looks at whether the task was cancelled.
  private static let rowsOfBatch = 256
  /// Bytes of a row, a group or a key beside its values.
  static let overhead = 96

  /// What ends a scan in parts: one of them has no more room.
  static let partIsFull = DatabaseError(.resourceExhausted, "a part of a scan is full")

  /// - Parameters:
  ///   - mayWait: whether the thread may wait for a disk; nil when it may where rows may.
  ///   - isPart: whether it is one of several parts of a scan.
  init(
    _ database: Database, _ rows: Rows, mayWait: Bool? = nil, isPart: Bool = false,
    note: ((PipelineRead) throws(DatabaseError) -> Void)? = nil
  ) {
    self.database = database
    self.rows = rows
    self.note = note ?? { _ in }
    notesReads = note != nil
    self.isPart = isPart
    now = Timestamp(unchecked: rows.moment)
    mostMemory = database.pipelineMemory
    self.mayWait = mayWait ?? rows.mayBlock
  }

  /// Begins with documents that lookups of an equal pipeline have read.
  func take(_ documents: [JoinedDocuments]) {
    referred = documents
    memory += documents.reduce(0) { $0 + $1.bytes }
  }

  /// The place in `referred` for a lookup.
  func newLookup(_ extent: NeededFields.Extent) -> Int {
    let place = lookupCount
    lookupCount += 1
    if place == referred.count {
      referred.append(JoinedDocuments(extent))
    } else if referred[place].extent != extent {
      release(referred[place].bytes)
      referred[place] = JoinedDocuments(extent)
    }
    return place
  }

  func willRead(_ read: PipelineRead) throws(DatabaseError) { try note(read) }

  /// A frame for the expressions of one stage.
  func frame(variables: Int) -> EvaluationFrame {
    EvaluationFrame(now: now, variables: variables) { [database] in
      UInt64(bitPattern: database.random(below: .max)) << 1
    }
  }

  /// Whether stages may keep so many more bytes.
  func hasRoom(for bytes: Int) -> Bool { bytes <= mostMemory - memory }

  /// Bytes that a stage keeps before it writes them to the scratch file, even when the others have
  /// all of the memory: runs of a few rows would be read again and again.
  var worthSpilling: Int { mostMemory / 16 }

  /// Notes that a stage keeps bytes. One that finds no room for them writes to the scratch file
  /// first.
  func keep(_ bytes: Int) { memory += bytes }

  /// Notes that a stage keeps bytes that it cannot write to the scratch file.
  ///
  /// Throws `.resourceExhausted` beyond the memory of `Options.pipelineMemory`.
  func keep(_ bytes: Int, in stage: StaticString) throws(DatabaseError) {
    guard hasRoom(for: bytes) else { throw exhausted(stage) }
    memory += bytes
  }

  /// The scratch file, for a stage that has no more room.
  ///
  /// Throws `.resourceExhausted` when the database has no place for one, and `.cold` when the
  /// thread may not wait for a disk.
  func spill(of stage: StaticString) throws(DatabaseError) -> Spill {
    if let spill { return spill }
    if isPart { throw Self.partIsFull }
    guard mayWait else { throw .cold }
    let file = try rethrowing { [database] () throws(EngineError) in
      try database.engine.makeScratchFile()
    }
    guard let file else { throw exhausted(stage) }
    let made = Spill(file, pieceLength: min(max(mostMemory / 64, 4 << 10), 256 << 10))
    spill = made
    return made
  }

  private func exhausted(_ stage: StaticString) -> DatabaseError {
    DatabaseError(
      .resourceExhausted,
      "the stage \(stage) keeps more than \(mostMemory) bytes of rows; filter or limit them"
        + " before it, or raise Options.pipelineMemory")
  }

  /// Notes that a stage has dropped bytes that it kept.
  func release(_ bytes: Int) { memory -= bytes }

  /// Counts a row that a stage has passed on.
  func count(_ place: Int) { counts[place] += 1 }

  /// Called for each row of a source; throws `.cancelled` within a batch of rows after the task was
  /// cancelled.
  func step() throws(DatabaseError) {
    rowsLeft -= 1
    guard rowsLeft == 0 else { return }
    rowsLeft = Self.rowsOfBatch
    if rows.canBeCancelled { try refuseWhenCancelled() }
  }
}

extension DatabaseError {
  /// Whether a part of a scan had no more room.
  var isOfFullPart: Bool {
    code == PipelineContext.partIsFull.code && message == PipelineContext.partIsFull.message
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

  /// The rows so far, which are forgotten.
  func takeAll() -> [PipelineRow] {
    defer { rows.removeAll(keepingCapacity: true) }
    return rows
  }
}

/// Counts the rows that a stage passes on, and adds the place of the next stage to its errors.
final class RowCounter: RowSink {
  private let plan: PipelinePlan
  private let context: PipelineContext
  private let place: Int
  private let next: any RowSink

  init(_ plan: PipelinePlan, _ context: PipelineContext, _ place: Int, _ next: any RowSink) {
    self.plan = plan
    self.context = context
    self.place = place
    self.next = next
  }

  func take(_ row: PipelineRow) throws(DatabaseError) -> Bool {
    context.count(place)
    do throws(DatabaseError) {
      return try next.take(row)
    } catch {
      throw plan.placed(error, at: place)
    }
  }

  func finish() throws(DatabaseError) {
    do throws(DatabaseError) {
      try next.finish()
    } catch {
      throw plan.placed(error, at: place)
    }
  }
}

/// The expressions of a stage with the frame that they are computed in.
final class StageExpressions {
  private let stage: StaticString
  let compiled: [CompiledExpression]
  let fields: [PipelineField]
  let frame: EvaluationFrame
  /// Where the fields are in the columns of the row before; nil for one that is no column.
  private var places: [Int?] = []
  private var layout: RowLayout?

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

  /// Puts the fields of the row into the slots.
  func load(_ row: PipelineRow) {
    frame.slots.removeAll(keepingCapacity: true)
    guard case .columns(let layout, let values) = row.form else {
      for field in fields { frame.slots.append(row.value(of: field)) }
      return
    }
    if layout !== self.layout {
      places = fields.map { field in
        guard case .names(let names) = field.form, names.count == 1 else { return nil }
        return layout.place(of: names[0])
      }
      self.layout = layout
    }
    for (field, place) in zip(fields, places) {
      if let place {
        frame.slots.append(values[place])
      } else {
        frame.slots.append(row.value(of: field))
      }
    }
  }

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
    return try loadedValues()
  }

  /// The values of all expressions for the loaded row.
  func loadedValues() throws(DatabaseError) -> [Value?] {
    var values: [Value?] = []
    values.reserveCapacity(compiled.count)
    for place in compiled.indices { values.append(try value(place)) }
    return values
  }
}
