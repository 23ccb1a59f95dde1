// A pipeline's answer, and the calls that ask for it: now, or as of a snapshot.

internal import OndolEngine

/// A row of a pipeline's result.
public struct PipelineResult: Sendable, Hashable {
  private let database: Database
  private let row: PipelineRow

  init(_ row: PipelineRow, in database: Database) {
    self.database = database
    self.row = row
  }

  /// When the document was created; nil for a row that is no document.
  public var createTime: Timestamp? { row.stamps?.createTime }

  /// When the document was last changed; nil for a row that is no document.
  public var updateTime: Timestamp? { row.stamps?.updateTime }

  /// The document that the row is; nil for a group and all else that is no document.
  public var reference: DocumentReference? { row.path.map { database.document($0) } }

  /// All columns.
  public func data() -> [String: Value] { row.fields }

  /// The value of a column, or of a path into maps; nil when it is absent.
  public func get(_ field: FieldPath) -> Value? {
    let field = PipelineField(field)
    return row.value(of: field)
  }

  /// The value of a column as a Swift type; nil when it is absent or has another type.
  public func get<Column: FieldReadable>(_ field: FieldPath) -> Column? {
    let value: Value? = get(field)
    return value.flatMap { Column(fieldValue: $0) }
  }

  /// The value of a column; nil when it is absent.
  public subscript(field: FieldPath) -> Value? { self.get(field) }

  /// The value of a column as a Swift type; nil when it is absent or has another type.
  public subscript<Column: FieldReadable>(field: FieldPath) -> Column? { self.get(field) }

  /// The row as a `Decodable` type.
  ///
  /// - Throws: `.invalidArgument`, naming the column, when it does not fit.
  public func data<Content: Decodable>(
    as type: Content.Type, decoder: DocumentDecoder = DocumentDecoder()
  ) throws(DatabaseError) -> Content {
    let stamps = DocumentStamps(version: .missing, updateTime: .minimum, createTime: .minimum)
    let place = row.path ?? DocumentPath(unchecked: ["results", "row"])
    return try DocumentSnapshot(
      reference: database.document(place), contents: .init(stamps: stamps, fields: row.fields)
    ).data(as: type, decoder: decoder)
  }
}

extension Pipeline {
  /// The rows of the answer, all as of now.
  ///
  /// - Throws: `.invalidArgument` for a wrong stage, an unknown function, a wrong number of
  ///   arguments, or a value that cannot be computed; `.resourceExhausted` when a stage would keep
  ///   more than `Options.pipelineMemory` and has no place or no space for a temporary file;
  ///   `.cancelled` when the task was cancelled; otherwise as `QuerySource.getDocuments()`.
  /// - Complexity: as the query of the first stages; then O(rows of each stage).
  public func execute() async throws(DatabaseError) -> [PipelineResult] {
    try database.refuseReadInTransaction()
    return try await PipelinePlan(stages.get()).results(in: database)
  }

  /// The rows of the answer as of a moment.
  ///
  /// - Throws: as `execute()`.
  package func execute(
    at moment: ReadMoment
  ) async throws(DatabaseError) -> [PipelineResult] {
    let plan = try PipelinePlan(stages.get())
    return try await moment.read { [database] (rows) throws(DatabaseError) in
      try plan.results(PipelineContext(database, rows.atOneMoment))
    }
  }
}

extension DatabaseSnapshot {
  /// The rows of a pipeline's answer as of this snapshot.
  ///
  /// Blocks the thread while it reads blocks from disk.
  ///
  /// - Throws: as `Pipeline.execute()`.
  public func execute(_ pipeline: Pipeline) throws(DatabaseError) -> [PipelineResult] {
    let rows = try rows(for: pipeline.database, "")
    return try PipelinePlan(pipeline.stages.get()).results(PipelineContext(database, rows))
  }
}
