// The public pipeline: a value that grows by stages and reads nothing until it is executed. A stage
// with a wrong argument is an error of the call that executes the pipeline.

/// Stages through which rows pass: a source, then conditions, computed columns, groups, orders.
///
/// ```swift
/// let genres = try await database.pipeline()
///   .collection("books")
///   .where(Field("rating").greaterThan(4) && Field("tags").arrayContains("classic"))
///   .aggregate(.count().as("books"), Field("rating").average().as("mean"),
///     groups: [Field("genre")])
///   .sort(Field("mean").descending())
///   .limit(5)
///   .execute()
/// ```
///
/// Stages and functions have the names and the meaning of Firestore's pipelines, which its clients
/// can only send to a server. Here they read one snapshot of the database, also in a transaction
/// and in a `DatabaseSnapshot`, and `snapshots` follows the answer. `lookup` and `window` are
/// Ondol's own.
///
/// The first stages, as far as a query can do the same, are carried out as one: indexes serve them.
/// Rows pass through the other stages one by one. Stages that need all rows at once keep
/// `Options.pipelineMemory` bytes of them, and write the others to a temporary file beside the
/// database.
///
/// Rows that no stage sorts come in the order of the query with the same conditions: by the fields
/// of its inequalities, then by name. Rows of all documents and groups come as they were found.
public struct Pipeline: Sendable, Hashable {
  /// The database that is read.
  public let database: Database
  private(set) var stages: Result<[PipelineStage], DatabaseError>

  init(database: Database, stages: Result<[PipelineStage], DatabaseError>) {
    self.database = database
    self.stages = stages
  }

  /// A pipeline of these stages.
  package init(database: Database, stages: [PipelineStage]) {
    self.database = database
    self.stages = .success(stages)
  }

  func adding(_ stage: PipelineStage) -> Pipeline {
    Pipeline(database: database, stages: stages.map { $0 + [stage] })
  }

  // MARK: - Rows

  /// Keeps the rows for which a condition is true. Where it is null, absent or an error, it is not.
  public func `where`(_ condition: some PipelineOperand) -> Pipeline {
    adding(.filter(condition.pipelineExpression))
  }

  /// Skips the first rows.
  public func offset(_ count: Int) -> Pipeline { adding(.offset(count)) }

  /// Keeps the first rows and drops the others.
  public func limit(_ count: Int) -> Pipeline { adding(.limit(count)) }

  /// Sorts by expressions, the first one first. Of different types, values are in the order of
  /// types in which queries sort; rows without a value come first.
  ///
  /// - Complexity: O(n log n); with a limit after it, as many rows are kept as the limit has.
  public func sort(_ orders: PipelineOrdering...) -> Pipeline { adding(.sort(orders)) }

  /// Keeps that many rows by chance, each set of them as likely as any other.
  public func sample(_ count: Int) -> Pipeline { adding(.sample(.rows(count))) }

  /// Keeps each row with a probability from 0 to 1.
  public func sample(share: Double) -> Pipeline { adding(.sample(.share(share))) }

  /// The rows of this pipeline, then those of another one. Rows in both come twice.
  public func union(_ other: Pipeline) -> Pipeline {
    guard other.database === database else {
      return Pipeline(
        database: database,
        stages: .failure(
          DatabaseError(.invalidArgument, "a union is of pipelines of one database")))
    }
    return Pipeline(
      database: database,
      stages: stages.flatMap { own in other.stages.map { own + [.union($0)] } })
  }

  // MARK: - Columns

  /// Rows of these columns and nothing else. A column without a value is left out.
  public func select(_ columns: any PipelineSelectable...) -> Pipeline {
    adding(.select(columns.map(\.pipelineSelection)))
  }

  /// Rows with these columns in addition, instead of fields with the same names.
  public func addFields(_ columns: any PipelineSelectable...) -> Pipeline {
    adding(.addFields(columns.map(\.pipelineSelection)))
  }

  /// Rows without these fields.
  public func removeFields(_ fields: FieldPath...) -> Pipeline {
    adding(.removeFields(fields.map { PipelineField($0) }))
  }

  /// Rows that become a map, or its fields beside their own. A row whose value is no map makes the
  /// call throw `.invalidArgument`.
  public func replace(
    with map: some PipelineOperand, _ replacement: MapReplacement = .fullReplace
  ) -> Pipeline {
    adding(.replaceWith(map.pipelineExpression, replacement))
  }

  /// A row for each element of an array, which the column of that name gets.
  ///
  /// - Parameters:
  ///   - array: the array; a row with anything else stays one row, with an empty one none.
  ///   - indexField: the column that gets the element's position, from 0.
  public func unnest(
    _ array: any PipelineSelectable, indexField: String? = nil
  ) -> Pipeline {
    adding(.unnest(array.pipelineSelection, indexField: indexField))
  }

  // MARK: - Groups

  /// One row for each group with its aggregates, or a single row of all rows without groups. An
  /// absent value groups with null. Aggregates pass over values that cannot be computed.
  ///
  /// - Complexity: O(n); memory for the groups.
  public func aggregate(
    _ aggregates: AliasedAggregate..., groups: [any PipelineSelectable] = []
  ) -> Pipeline {
    aggregate(aggregates, groups: groups)
  }

  /// The same with a list of aggregates, for code that makes them.
  public func aggregate(
    _ aggregates: [AliasedAggregate], groups: [any PipelineSelectable] = []
  ) -> Pipeline {
    adding(.aggregate(aggregates, groups: groups.map(\.pipelineSelection)))
  }

  /// One row for each different combination of values.
  public func distinct(_ columns: any PipelineSelectable...) -> Pipeline {
    adding(.distinct(columns.map(\.pipelineSelection)))
  }

  /// Columns that depend on a row's place among the sorted rows of its group: ranks, running sums,
  /// earlier values. Firestore has no equivalent. Rows come in the order of groups, then of orders.
  ///
  /// - Complexity: O(n log n), and memory for all rows.
  public func window(
    _ windows: AliasedWindow..., groups: [any PipelineOperand] = [],
    orders: [PipelineOrdering] = []
  ) -> Pipeline {
    adding(
      .window(windows, groups: groups.map(\.pipelineExpression), orders: orders))
  }

  // MARK: - Other documents

  /// The document that a reference leads to as a map in a column; null when there is none.
  /// Firestore has no equivalent.
  public func lookup(_ reference: some PipelineOperand, as name: String) -> Pipeline {
    adding(
      .lookup(PipelineLookup(match: .reference(reference.pipelineExpression), name: name)))
  }

  /// The documents of another collection whose field equals a value, as a list of maps in a column.
  /// Firestore has no equivalent.
  ///
  /// - Parameters:
  ///   - path: the other collection.
  ///   - field: its field.
  ///   - value: a value of the row.
  ///   - name: the column.
  /// - Complexity: the other collection is read once and kept.
  public func lookup(
    in path: String, where field: FieldPath, equals value: some PipelineOperand, as name: String
  ) -> Pipeline {
    let collection = Result { () throws(DatabaseError) in try CollectionPath(path) }
    return Pipeline(
      database: database,
      stages: stages.flatMap { own in
        collection.map { path in
          own + [
            .lookup(
              PipelineLookup(
                match: .equal(path, PipelineField(field), value.pipelineExpression), name: name))
          ]
        }
      })
  }

  /// The rows whose vectors are nearest to one, the nearest first. Rows without a vector of the
  /// same length are left out.
  ///
  /// - Parameters:
  ///   - field: the rows' vector.
  ///   - vector: the sought one.
  ///   - measure: how far two vectors are apart.
  ///   - limit: rows at most.
  ///   - distanceField: a column that gets the distance.
  /// - Complexity: O(n) distances: there is no index of vectors.
  public func findNearest(
    _ field: some PipelineOperand, to vector: VectorValue, measure: DistanceMeasure,
    limit: Int? = nil, distanceField: String? = nil
  ) -> Pipeline {
    adding(
      .findNearest(
        NearestSearch(
          field: field.pipelineExpression, vector: vector, measure: measure, limit: limit,
          distanceField: distanceField)))
  }

  /// The documents of the source that have words in their texts, the best first; see `SearchQuery`.
  /// It is the second stage, after a collection or a collection group.
  ///
  /// - Parameters:
  ///   - text: as people type it.
  ///   - fields: fields of one index of words; those of the widest one when empty.
  ///   - limit: documents at most.
  ///   - scoreField: a column that gets the score.
  public func search(
    _ text: String, in fields: [FieldPath] = [], limit: Int? = nil, scoreField: String? = nil
  ) -> Pipeline {
    adding(
      .search(
        PipelineSearch(text: text, fields: fields, limit: limit, scoreField: scoreField)))
  }
}

/// The beginning of a pipeline, which needs a source of rows.
public struct PipelineSource: Sendable {
  let database: Database

  /// The documents of a collection.
  ///
  /// - Parameter path: the collection; with a wrong one, the call that executes the pipeline throws
  ///   `.invalidArgument`.
  public func collection(_ path: String) -> Pipeline {
    let path = Result { () throws(DatabaseError) in try CollectionPath(path) }
    return Pipeline(database: database, stages: path.map { [.collection($0)] })
  }

  /// The documents of all collections with an id.
  public func collectionGroup(_ id: String) -> Pipeline {
    Pipeline(database: database, stages: [.collectionGroup(id)])
  }

  /// All documents.
  public func allDocuments() -> Pipeline { Pipeline(database: database, stages: [.database]) }

  /// These documents, as far as they exist.
  public func documents(_ references: [DocumentReference]) -> Pipeline {
    let paths = Result { () throws(DatabaseError) in
      var paths: [DocumentPath] = []
      for reference in references { paths.append(try reference.place.get()) }
      return paths
    }
    return Pipeline(database: database, stages: paths.map { [.documents($0)] })
  }

  /// Rows that are given here.
  public func literals(_ rows: [[AliasedExpression]]) -> Pipeline {
    Pipeline(database: database, stages: [.literals(rows)])
  }
}

extension Database {
  /// Begins a pipeline.
  public func pipeline() -> PipelineSource { PipelineSource(database: self) }
}
