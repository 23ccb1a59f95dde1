// Properties of a row's type where a typed pipeline computes: in expressions, in orders, in columns
// and in aggregates.

/// The properties of the rows of a typed pipeline, for expressions.
@dynamicMemberLookup
public struct PipelineProperties<Row: Codable & Sendable>: Sendable {
  private let fields: ModelFields<Row>

  init(_ fields: ModelFields<Row>) {
    self.fields = fields
  }

  /// A property.
  public subscript<Content: Encodable>(
    dynamicMember member: any KeyPath<Row, Content> & Sendable
  ) -> PipelineProperty<Row, Content> { PipelineProperty(ModelProperty(member), fields) }
}

/// A property of a row, from which expressions can be computed: `$0.price.multiply($0.count)`.
@dynamicMemberLookup
public struct PipelineProperty<Row: Codable & Sendable, Content: Encodable>: PipelineComputed {
  private let property: ModelProperty<Row, Content>
  private let fields: ModelFields<Row>

  init(_ property: ModelProperty<Row, Content>, _ fields: ModelFields<Row>) {
    self.property = property
    self.fields = fields
  }

  /// The field that the property is stored in; of a document's id, its text.
  public var pipelineExpression: PipelineExpression {
    do throws(DatabaseError) {
      return try fields.expression(of: property)
    } catch {
      return PipelineExpression(.invalid(error))
    }
  }

  /// A property of the property.
  public subscript<Member: Encodable>(
    dynamicMember member: any KeyPath<Content, Member> & Sendable
  ) -> PipelineProperty<Row, Member> {
    PipelineProperty<Row, Member>(property[dynamicMember: member], fields)
  }

  /// A property of the property, when that exists.
  public subscript<Wrapped: Encodable, Member: Encodable>(
    dynamicMember member: any KeyPath<Wrapped, Member> & Sendable
  ) -> PipelineProperty<Row, Member?> where Content == Wrapped? {
    PipelineProperty<Row, Member?>(property[dynamicMember: member], fields)
  }
}

extension ModelFields {
  /// What a property is computed from.
  func expression<Content: Encodable>(
    of property: ModelProperty<Model, Content>
  ) throws(DatabaseError) -> PipelineExpression {
    let field = Field(try path(of: property))
    // A type has the id where a pipeline has a reference.
    return field.field.form == .name ? field.documentID() : field.pipelineExpression
  }

  /// The column that becomes a property.
  ///
  /// Throws `.invalidArgument` for a property that is no column of its own.
  func column<Content: Encodable>(
    _ property: any KeyPath<Model, Content> & Sendable
  ) throws(DatabaseError) -> String {
    let path = try path(of: ModelProperty(property))
    let names = path.isDocumentID ? [] : try path.names()
    guard names.count == 1 else {
      throw DatabaseError(
        .invalidArgument,
        "\(ModelProperty(property)) is no column of its own; name a property of the row itself",
        field: "\(path)")
    }
    return names[0]
  }
}

// MARK: - Orders

/// What a typed pipeline sorts by.
public struct TypedOrdering<Row: Codable & Sendable>: Sendable {
  let make: @Sendable (ModelFields<Row>) throws(DatabaseError) -> PipelineOrdering

  /// The least value first; rows without the value come before it.
  public static func ascending<Content: Encodable & Sendable>(
    _ property: any KeyPath<Row, Content> & Sendable
  ) -> TypedOrdering {
    TypedOrdering { (fields) throws(DatabaseError) in
      PipelineOrdering(try fields.expression(of: ModelProperty(property)))
    }
  }

  /// The greatest value first; rows without the value come last.
  public static func descending<Content: Encodable & Sendable>(
    _ property: any KeyPath<Row, Content> & Sendable
  ) -> TypedOrdering {
    TypedOrdering { (fields) throws(DatabaseError) in
      PipelineOrdering(
        try fields.expression(of: ModelProperty(property)), descending: true)
    }
  }

  /// An order by an expression, as in `.computed { $0.title.charLength().descending() }`.
  public static func computed(
    _ order: @escaping @Sendable (PipelineProperties<Row>) -> PipelineOrdering
  ) -> TypedOrdering { TypedOrdering { order(PipelineProperties($0)) } }
}

// MARK: - Columns

/// A column of a typed pipeline: what is computed of a row, and the property that it becomes.
public struct TypedColumn<Row: Codable & Sendable, Next: Codable & Sendable>: Sendable {
  typealias Make =
    @Sendable (ModelFields<Row>, ModelFields<Next>) throws(DatabaseError) -> AliasedExpression

  let make: Make

  /// A property as it is.
  public static func property<Content: Encodable & Sendable>(
    _ property: any KeyPath<Row, Content> & Sendable,
    as name: any KeyPath<Next, Content> & Sendable
  ) -> TypedColumn { TypedColumn(property, name) }

  /// A property as it is; a row without it has null.
  public static func property<Content: Encodable & Sendable>(
    _ property: any KeyPath<Row, Content> & Sendable,
    as name: any KeyPath<Next, Content?> & Sendable
  ) -> TypedColumn { TypedColumn(property, name) }

  /// An expression, as in `.computed({ $0.price.multiply($0.count) }, as: \.total)`. The types of
  /// expressions are known only to the rows: one that does not fit is an error of the row.
  public static func computed<Content: Encodable & Sendable>(
    _ expression: @escaping @Sendable (PipelineProperties<Row>) -> PipelineExpression,
    as name: any KeyPath<Next, Content> & Sendable
  ) -> TypedColumn {
    TypedColumn { (fields, next) throws(DatabaseError) in
      AliasedExpression(
        name: try next.column(name), expression: expression(PipelineProperties(fields)))
    }
  }

  private init(_ make: @escaping Make) {
    self.make = make
  }

  private init<Content: Encodable & Sendable, Named: Encodable & Sendable>(
    _ property: any KeyPath<Row, Content> & Sendable, _ name: any KeyPath<Next, Named> & Sendable
  ) {
    make = { (fields, next) throws(DatabaseError) in
      AliasedExpression(
        name: try next.column(name), expression: try fields.expression(of: ModelProperty(property)))
    }
  }
}

// MARK: - Aggregates

/// A number or a value about the rows of a group, and the property that it becomes.
public struct TypedAggregate<Row: Codable & Sendable, Next: Codable & Sendable>: Sendable {
  typealias Make =
    @Sendable (ModelFields<Row>, ModelFields<Next>) throws(DatabaseError) -> AliasedAggregate

  let make: Make

  private init(_ make: @escaping Make) {
    self.make = make
  }

  private init<Content: Encodable & Sendable, Named: Encodable & Sendable>(
    _ name: String, of property: any KeyPath<Row, Content> & Sendable,
    as named: any KeyPath<Next, Named> & Sendable
  ) {
    make = { (fields, next) throws(DatabaseError) in
      AliasedAggregate(
        name: try next.column(named),
        aggregate: PipelineAggregate(name, try fields.expression(of: ModelProperty(property))))
    }
  }

  /// The number of rows.
  public static func count(as name: any KeyPath<Next, Int> & Sendable) -> TypedAggregate {
    TypedAggregate { (_, next) throws(DatabaseError) in
      AliasedAggregate(name: try next.column(name), aggregate: .count())
    }
  }

  /// The number of different values of a property.
  public static func countDistinct<Content: Encodable & Sendable>(
    _ property: any KeyPath<Row, Content> & Sendable, as name: any KeyPath<Next, Int> & Sendable
  ) -> TypedAggregate { TypedAggregate("count_distinct", of: property, as: name) }

  /// The exact sum of a property.
  public static func sum<Number: Encodable & Numeric & Sendable>(
    _ property: any KeyPath<Row, Number> & Sendable,
    as name: any KeyPath<Next, Number> & Sendable
  ) -> TypedAggregate { TypedAggregate("sum", of: property, as: name) }

  /// The exact sum of a property over the rows that have it.
  public static func sum<Number: Encodable & Numeric & Sendable>(
    _ property: any KeyPath<Row, Number?> & Sendable,
    as name: any KeyPath<Next, Number> & Sendable
  ) -> TypedAggregate { TypedAggregate("sum", of: property, as: name) }

  /// The average of a property; nil when there is no number.
  public static func average<Number: Encodable & Sendable>(
    _ property: any KeyPath<Row, Number> & Sendable,
    as name: any KeyPath<Next, Double?> & Sendable
  ) -> TypedAggregate { TypedAggregate("average", of: property, as: name) }

  /// The least value of a property.
  public static func minimum<Content: Encodable & Sendable>(
    _ property: any KeyPath<Row, Content> & Sendable,
    as name: any KeyPath<Next, Content> & Sendable
  ) -> TypedAggregate { TypedAggregate("minimum", of: property, as: name) }

  /// The least value of a property; nil when there is none.
  public static func minimum<Content: Encodable & Sendable>(
    _ property: any KeyPath<Row, Content> & Sendable,
    as name: any KeyPath<Next, Content?> & Sendable
  ) -> TypedAggregate { TypedAggregate("minimum", of: property, as: name) }

  /// The greatest value of a property.
  public static func maximum<Content: Encodable & Sendable>(
    _ property: any KeyPath<Row, Content> & Sendable,
    as name: any KeyPath<Next, Content> & Sendable
  ) -> TypedAggregate { TypedAggregate("maximum", of: property, as: name) }

  /// The greatest value of a property; nil when there is none.
  public static func maximum<Content: Encodable & Sendable>(
    _ property: any KeyPath<Row, Content> & Sendable,
    as name: any KeyPath<Next, Content?> & Sendable
  ) -> TypedAggregate { TypedAggregate("maximum", of: property, as: name) }

  /// An aggregate of an expression, as in
  /// `.computed({ $0.price.multiply($0.count).sum() }, as: \.value)`.
  public static func computed<Content: Encodable & Sendable>(
    _ aggregate: @escaping @Sendable (PipelineProperties<Row>) -> PipelineAggregate,
    as name: any KeyPath<Next, Content> & Sendable
  ) -> TypedAggregate {
    TypedAggregate { (fields, next) throws(DatabaseError) in
      AliasedAggregate(
        name: try next.column(name), aggregate: aggregate(PipelineProperties(fields)))
    }
  }
}
