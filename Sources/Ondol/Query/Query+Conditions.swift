// The ten conditions Firestore has, one on the beginning of a text, and any combination of them.

extension QuerySource {
  /// Documents whose field equals the value; nil stands for null. 1 equals 1.0, and NaN equals NaN.
  public func whereField(_ field: FieldPath, isEqualTo value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isEqualTo: value))
  }

  /// Documents that have the field, neither null nor equal to the value.
  public func whereField(_ field: FieldPath, isNotEqualTo value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isNotEqualTo: value))
  }

  /// Documents whose field is of the value's type and less.
  public func whereField(_ field: FieldPath, isLessThan value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isLessThan: value))
  }

  /// Documents whose field is of the value's type and not greater.
  public func whereField(_ field: FieldPath, isLessThanOrEqualTo value: (any FieldContent)?)
    -> Query
  {
    whereFilter(.whereField(field, isLessThanOrEqualTo: value))
  }

  /// Documents whose field is of the value's type and greater.
  public func whereField(_ field: FieldPath, isGreaterThan value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, isGreaterThan: value))
  }

  /// Documents whose field is of the value's type and not less.
  public func whereField(_ field: FieldPath, isGreaterThanOrEqualTo value: (any FieldContent)?)
    -> Query
  {
    whereFilter(.whereField(field, isGreaterThanOrEqualTo: value))
  }

  /// Documents whose field equals one of the values, of which there may be any number, null and NaN
  /// among them. With an index on the field the cost is one lookup a value; without one, one pass
  /// over the collection.
  public func whereField(_ field: FieldPath, in values: [(any FieldContent)?]) -> Query {
    whereFilter(.whereField(field, in: values))
  }

  /// Documents that have the field, neither null nor equal to one of the values. Nothing is, when
  /// null is among them.
  public func whereField(_ field: FieldPath, notIn values: [(any FieldContent)?]) -> Query {
    whereFilter(.whereField(field, notIn: values))
  }

  /// Documents whose field is an array with an element that equals the value.
  public func whereField(_ field: FieldPath, arrayContains value: (any FieldContent)?) -> Query {
    whereFilter(.whereField(field, arrayContains: value))
  }

  /// Documents whose field is an array with an element that equals one of the values.
  public func whereField(_ field: FieldPath, arrayContainsAny values: [(any FieldContent)?])
    -> Query
  {
    whereFilter(.whereField(field, arrayContainsAny: values))
  }

  /// Documents whose field is a text that begins with `prefix`, compared by UTF-8 bytes. Results
  /// are ordered by the field unless the query says otherwise.
  public func whereField(_ field: FieldPath, hasPrefix prefix: String) -> Query {
    whereFilter(.whereField(field, hasPrefix: prefix))
  }

  /// Documents that meet the filter, which may combine conditions at will.
  public func whereFilter(_ filter: Filter) -> Query {
    query.changed { (shape) throws(DatabaseError) in try shape.add(filter.tree.get()) }
  }
}
