// Pipelines whose rows are values of a type. Properties find their columns as those of typed
// queries find their fields (ModelFields), and conditions are the same. A stage that makes other
// rows names the type that they have, and which property of it each column becomes.

internal import OndolEngine

/// A pipeline whose rows are values of a type.
///
/// ```swift
/// struct Genre: Codable, Sendable { var genre: String?; var books: Int; var mean: Double? }
///
/// let best: [Genre] = try await books.pipeline()
///   .where(\.rating > 4)
///   .aggregate(
///     as: Genre.self, .count(as: \.books), .average(\.rating, as: \.mean),
///     groups: .property(\.genre, as: \.genre)
///   )
///   .sort(.descending(\.mean))
///   .limit(5)
///   .execute()
/// ```
///
/// It behaves like its `pipeline` in every respect. An error of a property is one of the call that
/// executes the pipeline.
public struct TypedPipeline<Row: Codable & Sendable>: Sendable {
  /// The same pipeline without the type, for stages that a typed pipeline has no call for;
  /// `Pipeline.of(_:encoder:decoder:)` gives it a type again.
  public let pipeline: Pipeline
  let fields: ModelFields<Row>

  init(_ pipeline: Pipeline, _ fields: ModelFields<Row>) {
    self.pipeline = pipeline
    self.fields = fields
  }

  /// A pipeline with more stages, whose rows may be of another type.
  private func changed<Next>(
    _ next: ModelFields<Next>, _ change: (Pipeline) throws(DatabaseError) -> Pipeline
  ) -> TypedPipeline<Next> {
    do throws(DatabaseError) {
      return TypedPipeline<Next>(try change(pipeline), next)
    } catch {
      return TypedPipeline<Next>(
        Pipeline(
          database: pipeline.database, stages: pipeline.stages.flatMap { _ in .failure(error) }),
        next)
    }
  }

  private func changed(
    _ change: (Pipeline) throws(DatabaseError) -> Pipeline
  ) -> TypedPipeline { changed(fields, change) }

  /// What is known of another type, stored in the same way.
  private func known<Next>(_ type: Next.Type) -> ModelFields<Next> {
    ModelFields.of(fields.encoder, fields.decoder, in: pipeline.database)
  }
}

extension TypedCollection {
  /// Begins a pipeline with the collection's documents.
  public func pipeline() -> TypedPipeline<Model> {
    TypedPipeline(collection.database.pipeline().collection(collection.path), fields)
  }
}

extension Pipeline {
  /// The pipeline with rows of a type.
  ///
  /// - Parameters:
  ///   - type: the type, whose properties are the columns.
  ///   - encoder: how values that rows are compared with are stored.
  ///   - decoder: how rows are read; by default with the encoder's strategies.
  public func of<Row: Codable & Sendable>(
    _ type: Row.Type, encoder: DocumentEncoder = DocumentEncoder(),
    decoder: DocumentDecoder? = nil
  ) -> TypedPipeline<Row> {
    let decoder =
      decoder
      ?? DocumentDecoder(keyStrategy: encoder.keyStrategy, dateStrategy: encoder.dateStrategy)
    return TypedPipeline(self, ModelFields.of(encoder, decoder, in: database))
  }
}

// MARK: - Rows

extension TypedPipeline {
  /// Keeps the rows that meet a condition.
  ///
  /// - Parameter filter: as in `books.pipeline().where(\.rating > 4)`. NaN is neither less nor
  ///   greater than a number. The call that executes the pipeline throws `.invalidArgument` for a
  ///   comparison of texts other than by their bytes.
  public func `where`(_ filter: TypedFilter<Row>) -> TypedPipeline {
    changed { (pipeline) throws(DatabaseError) in
      pipeline.where(try PipelineExpression(filter.filter(fields).tree.get()))
    }
  }

  /// Keeps the rows that meet a condition.
  ///
  /// - Parameter filter: makes the condition, as in `where { $0.rating > 4 && $0.year < 1990 }`.
  public func `where`(
    _ filter: (ModelProperties<Row>) -> TypedFilter<Row>
  ) -> TypedPipeline { self.where(filter(ModelProperties())) }

  /// Keeps the rows for which an expression is true.
  ///
  /// - Parameter condition: makes the expression, as in
  ///   `where { $0.title.charLength().greaterThan(20) }`.
  public func `where`(
    _ condition: (PipelineProperties<Row>) -> PipelineExpression
  ) -> TypedPipeline { changed { $0.where(condition(PipelineProperties(fields))) } }

  /// Sorts by properties or expressions, the first one first. See `Pipeline.sort(_:)`.
  public func sort(_ orders: TypedOrdering<Row>...) -> TypedPipeline {
    changed { (pipeline) throws(DatabaseError) in
      var made: [PipelineOrdering] = []
      for order in orders { made.append(try order.make(fields)) }
      return pipeline.adding(.sort(made))
    }
  }

  /// Skips the first rows.
  public func offset(_ count: Int) -> TypedPipeline { changed { $0.offset(count) } }

  /// Keeps the first rows and drops the others.
  public func limit(_ count: Int) -> TypedPipeline { changed { $0.limit(count) } }

  /// Keeps that many rows by chance. See `Pipeline.sample(_:)`.
  public func sample(_ count: Int) -> TypedPipeline { changed { $0.sample(count) } }

  /// The rows of this pipeline, then those of another one. Rows in both come twice.
  public func union(_ other: TypedPipeline) -> TypedPipeline {
    changed { $0.union(other.pipeline) }
  }
}

// MARK: - Columns and groups

extension TypedPipeline {
  /// Rows of these columns and nothing else.
  ///
  /// - Parameters:
  ///   - type: the type of the rows.
  ///   - columns: what each of its properties becomes.
  public func select<Next: Codable & Sendable>(
    as type: Next.Type, _ columns: TypedColumn<Row, Next>...
  ) -> TypedPipeline<Next> {
    let next = known(type)
    return changed(next) { (pipeline) throws(DatabaseError) in
      pipeline.adding(.select(try Self.made(columns, fields, next)))
    }
  }

  /// One row for each different combination of values.
  ///
  /// - Parameters:
  ///   - type: the type of the rows.
  ///   - columns: what each of its properties becomes.
  public func distinct<Next: Codable & Sendable>(
    as type: Next.Type, _ columns: TypedColumn<Row, Next>...
  ) -> TypedPipeline<Next> {
    let next = known(type)
    return changed(next) { (pipeline) throws(DatabaseError) in
      pipeline.adding(.distinct(try Self.made(columns, fields, next)))
    }
  }

  /// One row for each group with its aggregates, or a single row of all rows without groups. See
  /// `Pipeline.aggregate(_:groups:)`.
  ///
  /// - Parameters:
  ///   - type: the type of the groups.
  ///   - aggregates: numbers about a group, each with the property that it becomes.
  ///   - groups: what the rows of a group agree in.
  public func aggregate<Next: Codable & Sendable>(
    as type: Next.Type, _ aggregates: TypedAggregate<Row, Next>...,
    groups: TypedColumn<Row, Next>...
  ) -> TypedPipeline<Next> {
    let next = known(type)
    return changed(next) { (pipeline) throws(DatabaseError) in
      var made: [AliasedAggregate] = []
      for aggregate in aggregates { made.append(try aggregate.make(fields, next)) }
      return pipeline.adding(.aggregate(made, groups: try Self.made(groups, fields, next)))
    }
  }

  private static func made<Next>(
    _ columns: [TypedColumn<Row, Next>], _ fields: ModelFields<Row>, _ next: ModelFields<Next>
  ) throws(DatabaseError) -> [AliasedExpression] {
    var made: [AliasedExpression] = []
    for column in columns { made.append(try column.make(fields, next)) }
    return made
  }
}

// MARK: - Results

extension TypedPipeline {
  /// The rows of the answer, all as of now.
  ///
  /// - Throws: as `Pipeline.execute()`, and `.failedPrecondition` for the first row that does not
  ///   fit the type.
  public func execute() async throws(DatabaseError) -> [Row] {
    try rows(of: await pipeline.execute())
  }

  /// The answer now, and again whenever it changes. For each row it has the value, or why the row
  /// does not fit the type. See `Pipeline.snapshots`.
  public var snapshots: Updates<[Result<Row, DatabaseError>]> {
    pipeline.snapshots.map { [fields] snapshot in
      snapshot.results.map { result in
        Result { () throws(DatabaseError) in try fields.row(of: result) }
      }
    }
  }

  /// How the pipeline is carried out. See `Pipeline.explain(analyze:)`.
  public func explain(analyze: Bool = false) async throws(DatabaseError) -> PipelineExplanation {
    try await pipeline.explain(analyze: analyze)
  }

  fileprivate func rows(of results: [PipelineResult]) throws(DatabaseError) -> [Row] {
    var rows: [Row] = []
    rows.reserveCapacity(results.count)
    for result in results { rows.append(try fields.row(of: result)) }
    return rows
  }
}

extension ModelFields {
  /// A row of a pipeline.
  ///
  /// Throws `.failedPrecondition` when it does not fit the type.
  fileprivate func row(of result: PipelineResult) throws(DatabaseError) -> Model {
    try result.data(as: Model.self, decoder: decoder)
  }
}

extension Transaction {
  /// The rows of a typed pipeline's answer, the transaction's own writes included.
  ///
  /// - Throws: as `execute(_:)` of an untyped pipeline, and `.failedPrecondition` for the first row
  ///   that does not fit the type.
  public func execute<Row>(_ pipeline: TypedPipeline<Row>) throws(DatabaseError) -> [Row] {
    try pipeline.rows(of: try execute(pipeline.pipeline))
  }
}

extension DatabaseSnapshot {
  /// The rows of a typed pipeline's answer as of this snapshot.
  ///
  /// - Throws: as `execute(_:)` of an untyped pipeline, and `.failedPrecondition` for the first row
  ///   that does not fit the type.
  public func execute<Row>(_ pipeline: TypedPipeline<Row>) throws(DatabaseError) -> [Row] {
    try pipeline.rows(of: try execute(pipeline.pipeline))
  }
}

extension TypedPipeline: CustomStringConvertible {
  /// The type and the names of the stages.
  public var description: String {
    switch pipeline.stages {
    case .success(let stages): "\(Row.self): \(stages.map(\.name).joined(separator: ", "))"
    case .failure(let error): "\(Row.self): \(error)"
    }
  }
}
