// Computing a compiled expression for one row. Here are the forms of nodes and what is common to
// functions; the functions themselves are in the files Evaluation+….

extension CompiledExpression {
  /// The value for the row in the frame; nil when it is absent.
  func value(in frame: EvaluationFrame) throws(ExpressionFailure) -> Value? {
    switch form {
    case .constant(let value): return value
    case .slot(let slot): return frame.slots[slot]
    case .variable(let place): return frame.variables[place]
    case .call(let function, let arguments): return try function.value(of: arguments, in: frame)
    case .matching(let function, let argument, let pattern):
      guard let text = try argument.text(in: frame, of: function) else { return .null }
      return try Texts.matches(function, text, pattern)
    case .automaton(let function, let argument, let automaton, let place):
      guard let text = try argument.text(in: frame, of: function) else { return .null }
      return try Texts.matches(function) { work in
        .boolean(frame.matches(text, place, automaton, work: &work))
      }
    case .test(let function, let argument, let test):
      return try function.value(of: test, for: argument.value(in: frame))
    case .comparison(let function, let orders, let left, let right):
      let (value, operand) = (try left.value(in: frame), try right.value(in: frame))
      return function.compared(value, with: operand, orders)
    case .each(let function, let array, let element, let index, let body):
      return try each(function, array, element, index, body, in: frame)
    }
  }

  /// Whether the value is true: an error, null and all else is not.
  func isTrue(in frame: EvaluationFrame) -> Bool {
    do throws(ExpressionFailure) {
      if case .boolean(true)? = try value(in: frame) { return true }
      return false
    } catch {
      return false
    }
  }

  /// The text; nil when it is null or absent.
  func text(
    in frame: EvaluationFrame, of function: ScalarFunction
  ) throws(ExpressionFailure) -> String? {
    guard let value = try value(in: frame), !value.isNull else { return nil }
    guard let text = value.string else { throw function.needs("a text") }
    return text
  }

  private func each(
    _ function: ScalarFunction, _ array: CompiledExpression, _ element: Int, _ index: Int?,
    _ body: CompiledExpression, in frame: EvaluationFrame
  ) throws(ExpressionFailure) -> Value? {
    guard let value = try array.value(in: frame), !value.isNull else { return .null }
    guard let elements = value.array else { throw function.needs("an array") }
    var found: [Value] = []
    for (place, value) in elements.enumerated() {
      frame.variables[element] = value
      if let index { frame.variables[index] = .integer(Int64(place)) }
      let made = try body.value(in: frame)
      if function == .arrayTransform {
        found.append(made ?? .null)
      } else if made == .boolean(true) {
        found.append(value)
      }
    }
    return .array(found)
  }
}

extension ScalarFunction {
  /// The error of an argument of a wrong type.
  func needs(_ what: String) -> ExpressionFailure { ExpressionFailure("\(rawValue) needs \(what)") }

  /// The function's value for arguments; nil when it is absent.
  func value(
    of arguments: [CompiledExpression], in frame: EvaluationFrame
  ) throws(ExpressionFailure) -> Value? {
    switch self {
    case .and, .or, .xor, .nor, .not, .conditional, .switchOn, .exists, .isAbsent, .ifAbsent,
      .isError, .ifError, .ifNull, .coalesce:
      return try logic(arguments, in: frame)
    case .currentTimestamp: return .timestamp(frame.now)
    case .rand: return .double(frame.nextRandom())
    default: break
    }
    var values: [Value?] = []
    values.reserveCapacity(arguments.count)
    for argument in arguments { values.append(try argument.value(in: frame)) }
    return try value(of: values)
  }

  /// The value of a function that looks at the values of all its arguments.
  private func value(of values: [Value?]) throws(ExpressionFailure) -> Value? {
    switch self {
    case .equal, .notEqual, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .cmp,
      .equalAny, .notEqualAny, .maximum, .minimum, .type, .isType, .error:
      return try compared(values)
    case .array: return .array(values.map { $0 ?? .null })
    case .map, .mapGet, .getField, .mapSet, .mapRemove, .mapMerge, .mapKeys, .mapValues,
      .mapEntries:
      return try ofMap(values)
    case .arrayContains: return try arrayContains(values)
    case .join: return try Texts.joined(values)
    case .offset: return try ofArray(values.map { $0 ?? .null })
    default: break
    }
    // All others are null when an argument is null or absent.
    var present: [Value] = []
    present.reserveCapacity(values.count)
    for value in values {
      guard let value, !value.isNull else { return .null }
      present.append(value)
    }
    return try value(ofPresent: present)
  }

  private func value(ofPresent values: [Value]) throws(ExpressionFailure) -> Value? {
    switch self {
    case .add, .subtract, .multiply, .divide, .mod, .abs, .ceil, .floor, .round, .trunc, .pow,
      .sqrt, .exp, .ln, .log, .log10:
      return try arithmetic(values)
    case .charLength, .byteLength, .concat, .stringConcat, .stringContains, .startsWith, .endsWith,
      .like, .regexContains, .regexMatch, .regexFind, .regexFindAll, .toLower, .toUpper, .trim,
      .ltrim, .rtrim, .stringReverse, .reverse, .substring, .split, .stringIndexOf, .stringRepeat,
      .stringReplaceAll, .stringReplaceOne, .length, .storageSize:
      return try ofText(values)
    case .timestampAdd, .timestampSubtract, .timestampTrunc, .timestampExtract, .timestampDiff,
      .timestampToMicros, .timestampToMillis, .timestampToSeconds, .microsToTimestamp,
      .millisToTimestamp, .secondsToTimestamp:
      return try ofTime(values)
    case .cosineDistance, .dotProduct, .euclideanDistance, .vectorLength, .documentID,
      .collectionID, .parent:
      return try ofVectorOrReference(values)
    default: return try ofArray(values)
    }
  }
}
