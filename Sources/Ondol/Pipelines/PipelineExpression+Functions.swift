// The functions of expressions as methods, so that chains read from left to right. Each makes the
// function with its name in the protocol; ScalarFunction has them all, and what each takes.

extension PipelineComputed {
  private func call(_ name: String, _ others: any PipelineOperand...) -> PipelineExpression {
    PipelineExpression(
      .function(name, [pipelineExpression] + others.map(\.pipelineExpression)))
  }

  private func call(_ name: String, all others: [any PipelineOperand]) -> PipelineExpression {
    PipelineExpression(
      .function(name, [pipelineExpression] + others.map(\.pipelineExpression)))
  }

  // MARK: - Comparing

  /// Whether both are equal: 1 equals 1.0, NaN equals NaN, and null only null.
  public func equal(_ other: any PipelineOperand) -> PipelineExpression { call("equal", other) }

  /// Whether both are not equal.
  public func notEqual(_ other: any PipelineOperand) -> PipelineExpression {
    call("not_equal", other)
  }

  /// Whether this is less. Values of different types, null and NaN are never less or greater.
  public func lessThan(_ other: any PipelineOperand) -> PipelineExpression {
    call("less_than", other)
  }

  /// Whether this is less or equal.
  public func lessThanOrEqual(_ other: any PipelineOperand) -> PipelineExpression {
    call("less_than_or_equal", other)
  }

  /// Whether this is greater.
  public func greaterThan(_ other: any PipelineOperand) -> PipelineExpression {
    call("greater_than", other)
  }

  /// Whether this is greater or equal.
  public func greaterThanOrEqual(_ other: any PipelineOperand) -> PipelineExpression {
    call("greater_than_or_equal", other)
  }

  /// Whether this equals one of the values.
  public func equalAny(_ others: [any PipelineOperand]) -> PipelineExpression {
    call("equal_any", PipelineExpression.function("array", arguments: others))
  }

  /// Whether this equals none of the values.
  public func notEqualAny(_ others: [any PipelineOperand]) -> PipelineExpression {
    call("not_equal_any", PipelineExpression.function("array", arguments: others))
  }

  /// Whether the row has this value, even null.
  public func exists() -> PipelineExpression { call("exists") }
  /// Whether the row lacks this value.
  public func isAbsent() -> PipelineExpression { call("is_absent") }
  /// Whether computing this fails.
  public func isError() -> PipelineExpression { call("is_error") }

  /// This, or another value where this is absent.
  public func ifAbsent(_ other: any PipelineOperand) -> PipelineExpression {
    call("if_absent", other)
  }

  /// This, or another value where computing this fails.
  public func ifError(_ other: any PipelineOperand) -> PipelineExpression {
    call("if_error", other)
  }

  /// This, or another value where this is null or absent.
  public func ifNull(_ other: any PipelineOperand) -> PipelineExpression { call("if_null", other) }

  /// The greatest of this and the others; null and absent ones are passed over.
  public func logicalMaximum(_ others: any PipelineOperand...) -> PipelineExpression {
    call("maximum", all: others)
  }

  /// The least of this and the others; null and absent ones are passed over.
  public func logicalMinimum(_ others: any PipelineOperand...) -> PipelineExpression {
    call("minimum", all: others)
  }

  /// The name of the value's type: `null`, `boolean`, `int64`, `float64`, `decimal128`,
  /// `timestamp`, `string`, `bytes`, `reference`, `geo_point`, `array`, `vector` or `map`.
  public func type() -> PipelineExpression { call("type") }

  // MARK: - Numbers

  /// The sum. Of two integers it is an integer, and an error when it does not fit.
  public func add(_ other: any PipelineOperand) -> PipelineExpression { call("add", other) }
  /// The difference.
  public func subtract(_ other: any PipelineOperand) -> PipelineExpression {
    call("subtract", other)
  }
  /// The product.
  public func multiply(_ other: any PipelineOperand) -> PipelineExpression {
    call("multiply", other)
  }
  /// The quotient. Of two integers it is rounded towards zero, and an error when dividing by zero.
  public func divide(_ other: any PipelineOperand) -> PipelineExpression { call("divide", other) }
  /// The remainder, with the sign of this.
  public func mod(_ other: any PipelineOperand) -> PipelineExpression { call("mod", other) }
  /// The number without its sign.
  public func abs() -> PipelineExpression { call("abs") }
  /// The next whole number that is not less.
  public func ceil() -> PipelineExpression { call("ceil") }
  /// The next whole number that is not greater.
  public func floor() -> PipelineExpression { call("floor") }
  /// The nearest whole number, halves away from zero.
  public func round() -> PipelineExpression { call("round") }
  /// Rounded to that many decimals; before the point when negative.
  public func round(places: Int) -> PipelineExpression { call("round", places) }
  /// The whole part.
  public func trunc() -> PipelineExpression { call("trunc") }
  /// The number to the power of the exponent.
  public func pow(_ exponent: any PipelineOperand) -> PipelineExpression { call("pow", exponent) }
  /// The square root; an error of a negative number.
  public func sqrt() -> PipelineExpression { call("sqrt") }
  /// e to the power of this.
  public func exp() -> PipelineExpression { call("exp") }
  /// The natural logarithm; an error unless this is above zero.
  public func ln() -> PipelineExpression { call("ln") }
  /// The logarithm to the base of ten.
  public func log10() -> PipelineExpression { call("log10") }
  /// The logarithm to a base.
  public func log(_ base: any PipelineOperand) -> PipelineExpression { call("log", base) }

  // MARK: - Texts

  /// The number of Unicode scalars.
  public func charLength() -> PipelineExpression { call("char_length") }
  /// The number of bytes, of a text in UTF-8.
  public func byteLength() -> PipelineExpression { call("byte_length") }
  /// Whether the text matches a pattern in which `%` stands for any text and `_` for one character.
  public func like(_ pattern: any PipelineOperand) -> PipelineExpression { call("like", pattern) }
  /// Whether a regular expression of RE2's syntax matches a part of the text.
  public func regexContains(_ pattern: any PipelineOperand) -> PipelineExpression {
    call("regex_contains", pattern)
  }
  /// Whether a regular expression matches the whole text.
  public func regexMatch(_ pattern: any PipelineOperand) -> PipelineExpression {
    call("regex_match", pattern)
  }
  /// Whether the text contains another.
  public func stringContains(_ part: any PipelineOperand) -> PipelineExpression {
    call("string_contains", part)
  }
  /// Whether the text begins with another.
  public func startsWith(_ prefix: any PipelineOperand) -> PipelineExpression {
    call("starts_with", prefix)
  }
  /// Whether the text ends with another.
  public func endsWith(_ suffix: any PipelineOperand) -> PipelineExpression {
    call("ends_with", suffix)
  }
  /// The texts one after the other.
  public func stringConcat(_ others: any PipelineOperand...) -> PipelineExpression {
    call("string_concat", all: others)
  }
  /// In lower case.
  public func toLower() -> PipelineExpression { call("to_lower") }
  /// In upper case.
  public func toUpper() -> PipelineExpression { call("to_upper") }
  /// Without white space at both ends.
  public func trim() -> PipelineExpression { call("trim") }
  /// With the characters in reverse order.
  public func stringReverse() -> PipelineExpression { call("string_reverse") }
  /// The part from a position on, counted in characters from 0, from the end when negative.
  public func substring(_ position: any PipelineOperand) -> PipelineExpression {
    call("substring", position)
  }
  /// The part of at most a length from a position on.
  public func substring(
    _ position: any PipelineOperand, _ length: any PipelineOperand
  ) -> PipelineExpression {
    call("substring", position, length)
  }
  /// The parts between separators.
  public func split(_ separator: any PipelineOperand) -> PipelineExpression {
    call("split", separator)
  }

  // MARK: - Arrays and maps

  /// The number of elements.
  public func arrayLength() -> PipelineExpression { call("array_length") }
  /// Whether the array has an element that equals the value.
  public func arrayContains(_ element: any PipelineOperand) -> PipelineExpression {
    call("array_contains", element)
  }
  /// Whether the array has all of the values.
  public func arrayContainsAll(_ elements: [any PipelineOperand]) -> PipelineExpression {
    call("array_contains_all", PipelineExpression.function("array", arguments: elements))
  }
  /// Whether the array has one of the values.
  public func arrayContainsAny(_ elements: [any PipelineOperand]) -> PipelineExpression {
    call("array_contains_any", PipelineExpression.function("array", arguments: elements))
  }
  /// The elements of this and the others.
  public func arrayConcat(_ others: any PipelineOperand...) -> PipelineExpression {
    call("array_concat", all: others)
  }
  /// The element at a position from 0, from the end when negative; absent outside the array.
  public func arrayGet(_ position: any PipelineOperand) -> PipelineExpression {
    call("array_get", position)
  }
  /// The elements in reverse order.
  public func arrayReverse() -> PipelineExpression { call("array_reverse") }
  /// The sum of the numbers in the array.
  public func arraySum() -> PipelineExpression { call("sum") }
  /// The elements for which a condition holds; within it, `.variable(name)` is the element.
  public func arrayFilter(
    _ name: String, _ condition: any PipelineOperand
  ) -> PipelineExpression {
    call("array_filter", name, condition)
  }
  /// What an expression makes of each element; within it, `.variable(name)` is the element.
  public func arrayTransform(
    _ name: String, _ expression: any PipelineOperand
  ) -> PipelineExpression {
    call("array_transform", name, expression)
  }
  /// The elements, which are texts, with a separator between.
  public func join(_ separator: any PipelineOperand) -> PipelineExpression {
    call("join", separator)
  }
  /// The value in a map; absent when it has no such name.
  public func mapGet(_ name: any PipelineOperand) -> PipelineExpression { call("map_get", name) }
  /// The map without a name.
  public func mapRemove(_ name: any PipelineOperand) -> PipelineExpression {
    call("map_remove", name)
  }
  /// The map with the entries of the others, the last one of each name.
  public func mapMerge(_ others: any PipelineOperand...) -> PipelineExpression {
    call("map_merge", all: others)
  }

  // MARK: - Times, vectors and references

  /// The time and an amount of a unit: `microsecond`, `millisecond`, `second`, `minute`, `hour` or
  /// `day`.
  public func timestampAdd(
    _ unit: any PipelineOperand, _ amount: any PipelineOperand
  ) -> PipelineExpression {
    call("timestamp_add", unit, amount)
  }
  /// The time less an amount of a unit.
  public func timestampSubtract(
    _ unit: any PipelineOperand, _ amount: any PipelineOperand
  ) -> PipelineExpression {
    call("timestamp_subtract", unit, amount)
  }
  /// The beginning of the second, minute, hour, day, week, month, quarter or year, in UTC.
  public func timestampTruncate(_ granularity: any PipelineOperand) -> PipelineExpression {
    call("timestamp_trunc", granularity)
  }
  /// A part of the time, as `year`, `month`, `day`, `hour` or `dayofweek`, in UTC.
  public func timestampExtract(_ part: any PipelineOperand) -> PipelineExpression {
    call("timestamp_extract", part)
  }
  /// 1 less the cosine of the angle between two vectors.
  public func cosineDistance(_ other: any PipelineOperand) -> PipelineExpression {
    call("cosine_distance", other)
  }
  /// The sum of the products of two vectors' components.
  public func dotProduct(_ other: any PipelineOperand) -> PipelineExpression {
    call("dot_product", other)
  }
  /// The distance between two vectors.
  public func euclideanDistance(_ other: any PipelineOperand) -> PipelineExpression {
    call("euclidean_distance", other)
  }
  /// The id of a reference's document.
  public func documentID() -> PipelineExpression { call("document_id") }
  /// The id of the collection of a reference's document.
  public func collectionID() -> PipelineExpression { call("collection_id") }

  // MARK: - Logic

  /// Whether both are true; null when that cannot be said because one is null or absent.
  public static func && (
    left: Self, right: some PipelineOperand
  ) -> PipelineExpression { PipelineExpression.function("and", left, right) }

  /// Whether one is true; null when that cannot be said because one is null or absent.
  public static func || (
    left: Self, right: some PipelineOperand
  ) -> PipelineExpression { PipelineExpression.function("or", left, right) }

  /// Whether it is false; null when it is null or absent.
  public static prefix func ! (operand: Self) -> PipelineExpression {
    PipelineExpression.function("not", operand)
  }

  // MARK: - Aggregates

  /// The number of rows whose value is neither null nor absent.
  public func count() -> PipelineAggregate { PipelineAggregate("count", pipelineExpression) }
  /// The number of rows for which this is true.
  public func countIf() -> PipelineAggregate { PipelineAggregate("count_if", pipelineExpression) }
  /// The number of different values other than null.
  public func countDistinct() -> PipelineAggregate {
    PipelineAggregate("count_distinct", pipelineExpression)
  }
  /// The exact sum of the numbers; other values are passed over.
  public func sum() -> PipelineAggregate { PipelineAggregate("sum", pipelineExpression) }
  /// The average of the numbers; null when there are none.
  public func average() -> PipelineAggregate { PipelineAggregate("average", pipelineExpression) }
  /// The least value except null; null when there is none.
  public func minimum() -> PipelineAggregate { PipelineAggregate("minimum", pipelineExpression) }
  /// The greatest value except null; null when there is none.
  public func maximum() -> PipelineAggregate { PipelineAggregate("maximum", pipelineExpression) }
  /// The value in the first row; null when it is absent.
  public func first() -> PipelineAggregate { PipelineAggregate("first", pipelineExpression) }
  /// The value in the last row; null when it is absent.
  public func last() -> PipelineAggregate { PipelineAggregate("last", pipelineExpression) }
  /// All values in one array, null for absent ones.
  public func arrayAgg() -> PipelineAggregate {
    PipelineAggregate("array_agg", pipelineExpression)
  }
  /// All different values in one array, null for absent ones.
  public func arrayAggDistinct() -> PipelineAggregate {
    PipelineAggregate("array_agg_distinct", pipelineExpression)
  }
}
