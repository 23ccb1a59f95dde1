// Functions of numbers. Integers stay integers, and a result that does not fit is an error instead
// of another number. A double makes the result a double. Decimals are added and subtracted exactly
// with each other and with integers; all other functions take them as doubles.

internal import OndolEngine

extension ScalarFunction {
  func arithmetic(_ values: [Value]) throws(ExpressionFailure) -> Value {
    switch self {
    case .add, .subtract, .multiply, .divide, .mod, .pow: return try binary(values[0], values[1])
    case .round, .trunc: return try rounded(values)
    case .abs, .ceil, .floor: return try simple(values[0])
    default: return .double(try transcendental(values))
    }
  }

  private func number(_ value: Value) throws(ExpressionFailure) -> Double {
    switch value {
    case .integer(let number): return Double(number)
    case .double(let number): return number
    case .decimal(let number): return number.double
    default: throw needs("a number")
    }
  }

  // MARK: - Two numbers

  private func binary(_ left: Value, _ right: Value) throws(ExpressionFailure) -> Value {
    switch (left, right) {
    case (.integer(let left), .integer(let right)): return try integers(left, right)
    case (.decimal, .decimal), (.decimal, .integer), (.integer, .decimal):
      if self == .add || self == .subtract { return try decimals(left, right) }
    default: break
    }
    let (left, right) = (try number(left), try number(right))
    switch self {
    case .add: return .double(left + right)
    case .subtract: return .double(left - right)
    case .multiply: return .double(left * right)
    case .divide: return .double(left / right)
    case .mod: return .double(left.truncatingRemainder(dividingBy: right))
    default: return .double(Mathematics.power(left, right))
    }
  }

  private func integers(_ left: Int64, _ right: Int64) throws(ExpressionFailure) -> Value {
    let result: (partialValue: Int64, overflow: Bool)
    switch self {
    case .add: result = left.addingReportingOverflow(right)
    case .subtract: result = left.subtractingReportingOverflow(right)
    case .multiply: result = left.multipliedReportingOverflow(by: right)
    case .divide, .mod:
      guard right != 0 else { throw ExpressionFailure("\(rawValue): division by zero") }
      result =
        self == .divide
        ? left.dividedReportingOverflow(by: right)
        : left.remainderReportingOverflow(dividingBy: right)
      if self == .mod { return .integer(result.overflow ? 0 : result.partialValue) }
    default: return try power(left, right)
    }
    guard !result.overflow else { throw overflow }
    return .integer(result.partialValue)
  }

  /// By squaring, so that the number of steps is that of the exponent's bits.
  private func power(_ base: Int64, _ exponent: Int64) throws(ExpressionFailure) -> Value {
    guard exponent >= 0 else {
      return .double(Mathematics.power(Double(base), Double(exponent)))
    }
    var (result, square, left): (Int64, Int64, Int64) = (1, base, exponent)
    while left > 0 {
      if left & 1 == 1 {
        let (product, overflow) = result.multipliedReportingOverflow(by: square)
        guard !overflow else { throw self.overflow }
        result = product
      }
      left >>= 1
      guard left > 0 else { break }
      let (product, overflow) = square.multipliedReportingOverflow(by: square)
      guard !overflow else { throw self.overflow }
      square = product
    }
    return .integer(result)
  }

  private func decimals(_ left: Value, _ right: Value) throws(ExpressionFailure) -> Value {
    var sum = DecimalSum()
    for (value, isTaken) in [(left, false), (right, self == .subtract)] {
      switch value {
      case .integer(let number): sum.add(isTaken ? -Int128(number) : Int128(number))
      case .decimal(let number): if isTaken { sum.remove(number) } else { sum.add(number) }
      default: throw needs("a number")
      }
    }
    guard let result = sum.value else { throw overflow }
    return .decimal(result)
  }

  private var overflow: ExpressionFailure {
    ExpressionFailure("\(rawValue): the result does not fit")
  }

  // MARK: - One number

  private func simple(_ value: Value) throws(ExpressionFailure) -> Value {
    if case .integer(let number) = value {
      guard self == .abs else { return value }
      guard number != .min else { throw overflow }
      return .integer(number.magnitude > UInt64(Int64.max) ? number : Int64(number.magnitude))
    }
    let number = try number(value)
    switch self {
    case .abs: return .double(number.magnitude)
    case .ceil: return .double(number.rounded(.up))
    default: return .double(number.rounded(.down))
    }
  }

  /// To whole numbers, or to a number of decimals.
  private func rounded(_ values: [Value]) throws(ExpressionFailure) -> Value {
    let rule: FloatingPointRoundingRule = self == .round ? .toNearestOrAwayFromZero : .towardZero
    var places: Int64 = 0
    if values.count > 1 {
      guard let count = values[1].integer else { throw needs("an integer of decimals") }
      places = count
    }
    if case .integer(let number) = values[0] {
      guard places < 0 else { return values[0] }
      // No integer has so many digits.
      guard places > -20 else { return .integer(0) }
      return .integer(try Self.rounded(number, toPower: -places, rule, failing: overflow))
    }
    let number = try number(values[0])
    guard number.isFinite, places != 0 else { return .double(number.rounded(rule)) }
    // Beyond these, nothing is left to round, or everything.
    guard places < 324 else { return .double(number) }
    guard places > -309 else { return .double(0) }
    let scale = Mathematics.power(10, Double(places.magnitude))
    let scaled = places > 0 ? number * scale : number / scale
    guard scaled.isFinite else { return .double(number) }
    let whole = scaled.rounded(rule)
    return .double(places > 0 ? whole / scale : whole * scale)
  }

  private static func rounded(
    _ number: Int64, toPower power: Int64, _ rule: FloatingPointRoundingRule,
    failing overflow: ExpressionFailure
  ) throws(ExpressionFailure) -> Int64 {
    var scale: Int128 = 1
    for _ in 0..<power { scale *= 10 }
    let whole = Int128(number)
    let rest = whole % scale
    var result = whole - rest
    if rule == .toNearestOrAwayFromZero, rest.magnitude * 2 >= scale.magnitude {
      result += number < 0 ? -scale : scale
    }
    guard let fitting = Int64(exactly: result) else { throw overflow }
    return fitting
  }

  private func transcendental(_ values: [Value]) throws(ExpressionFailure) -> Double {
    let number = try number(values[0])
    switch self {
    case .exp: return Mathematics.exponential(number)
    case .sqrt:
      guard !(number < 0) else { throw needs("a number that is not negative") }
      return number.squareRoot()
    default: break
    }
    guard !(number <= 0) else { throw needs("a number above zero") }
    switch self {
    case .log10: return Mathematics.decimalLogarithm(number)
    case .log where values.count > 1:
      let base = try self.number(values[1])
      guard !(base <= 0), base != 1 else { throw needs("a base above zero other than 1") }
      return Mathematics.logarithm(number) / Mathematics.logarithm(base)
    default: return Mathematics.logarithm(number)
    }
  }
}
