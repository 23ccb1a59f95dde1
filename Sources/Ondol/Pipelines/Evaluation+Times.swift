// Functions of times, vectors and references. Times are in UTC or at a fixed offset from it: rules
// of daylight saving are not the database's, and Firestore's names of time zones are refused.

internal import OndolEngine

extension ScalarFunction {
  func ofTime(_ values: [Value]) throws(ExpressionFailure) -> Value {
    switch self {
    case .microsToTimestamp: return try timestamp(values[0], microseconds: 1)
    case .millisToTimestamp: return try timestamp(values[0], microseconds: 1_000)
    case .secondsToTimestamp: return try timestamp(values[0], microseconds: 1_000_000)
    default: break
    }
    guard let time = values[0].timestamp?.microsecondsSince1970 else { throw needs("a timestamp") }
    switch self {
    case .timestampToMicros: return .integer(time)
    case .timestampToMillis: return .integer(time.floored(1_000))
    case .timestampToSeconds: return .integer(time.floored(1_000_000))
    case .timestampAdd, .timestampSubtract: return try moved(time, values)
    case .timestampDiff:
      guard let start = values[1].timestamp?.microsecondsSince1970 else {
        throw needs("two timestamps")
      }
      return .integer((time - start) / (try unit(values[2])))
    default: break
    }
    let offset = values.count > 2 ? try Self.offset(values[2], needs) : 0
    guard let part = values[1].string?.lowercased() else { throw needs("the name of a unit") }
    if self == .timestampTrunc {
      return try timestamp(truncated(time + offset, part) - offset)
    }
    return .integer(try extracted(time + offset, part))
  }

  private func timestamp(_ value: Value, microseconds: Int64) throws(ExpressionFailure) -> Value {
    guard let number = value.integer else { throw needs("an integer") }
    let (product, overflow) = number.multipliedReportingOverflow(by: microseconds)
    guard !overflow else { throw ExpressionFailure("\(rawValue): the time is out of range") }
    return try timestamp(product)
  }

  private func timestamp(_ microseconds: Int64) throws(ExpressionFailure) -> Value {
    guard Timestamp.isInRange(microseconds) else {
      throw ExpressionFailure("\(rawValue): the time is out of range")
    }
    return .timestamp(Timestamp(unchecked: microseconds))
  }

  /// The length of a unit in microseconds.
  private func unit(_ value: Value) throws(ExpressionFailure) -> Int64 {
    switch value.string?.lowercased() {
    case "microsecond": return 1
    case "millisecond": return 1_000
    case "second": return 1_000_000
    case "minute": return 60_000_000
    case "hour": return 3_600_000_000
    case "day": return CivilDay.microseconds
    default: throw needs("a unit from microsecond to day")
    }
  }

  private func moved(_ time: Int64, _ values: [Value]) throws(ExpressionFailure) -> Value {
    guard let amount = values[2].integer else { throw needs("an integer amount") }
    let (length, isTooLong) = amount.multipliedReportingOverflow(by: try unit(values[1]))
    let (moved, overflow) =
      self == .timestampAdd
      ? time.addingReportingOverflow(length) : time.subtractingReportingOverflow(length)
    guard !isTooLong, !overflow else {
      throw ExpressionFailure("\(rawValue): the time is out of range")
    }
    return try timestamp(moved)
  }

  /// Microseconds east of UTC, from `UTC`, `GMT`, `Z`, `+09:00` or `-3`.
  private static func offset(
    _ value: Value, _ needs: (String) -> ExpressionFailure
  ) throws(ExpressionFailure) -> Int64 {
    guard let name = value.string else { throw needs("a time zone, which is a text") }
    if ["UTC", "GMT", "Z", "Etc/UTC"].contains(name) { return 0 }
    let parts = name.dropFirst().split(separator: ":", omittingEmptySubsequences: false)
    guard let sign = name.first, sign == "+" || sign == "-", (1...2).contains(parts.count),
      let hours = Int64(parts[0]), let minutes = parts.count > 1 ? Int64(parts[1]) : 0,
      (0...18).contains(hours), (0...59).contains(minutes)
    else { throw needs("UTC or an offset from it, as +09:00, not \"\(name)\"") }
    return (sign == "-" ? -1 : 1) * (hours * 60 + minutes) * 60_000_000
  }

  // MARK: - Calendar

  private func truncated(_ time: Int64, _ part: String) throws(ExpressionFailure) -> Int64 {
    switch part {
    case "microsecond", "millisecond", "second", "minute", "hour":
      return time - time.remainder(try unit(.string(part)))
    default: break
    }
    let day = CivilDay(time.floored(CivilDay.microseconds))
    let first: Int64
    switch part {
    case "day": first = day.number
    case "month": first = CivilDay.number(year: day.year, month: day.month, day: 1)
    case "quarter":
      first = CivilDay.number(year: day.year, month: (day.month - 1) / 3 * 3 + 1, day: 1)
    case "year": first = CivilDay.number(year: day.year, month: 1, day: 1)
    case "isoyear": first = CivilDay.firstDay(ofISOYear: day.isoYear)
    default:
      guard let weekday = Self.weekday(beginning: part) else {
        throw needs("a unit of time, not \"\(part)\"")
      }
      first = day.number - (day.weekday - weekday + 7) % 7
    }
    return first * CivilDay.microseconds
  }

  /// The first day of weeks, 0 for Sunday; nil when the text names no week.
  private static func weekday(beginning part: String) -> Int64? {
    if part == "week" { return 0 }
    if part == "isoweek" { return 1 }
    let days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
    return days.firstIndex { part == "week(\($0))" }.map { Int64($0) }
  }

  private func extracted(_ time: Int64, _ part: String) throws(ExpressionFailure) -> Int64 {
    let day = CivilDay(time.floored(CivilDay.microseconds))
    let rest = time.remainder(CivilDay.microseconds)
    switch part {
    case "microsecond": return rest % 1_000_000
    case "millisecond": return rest % 1_000_000 / 1_000
    case "second": return rest / 1_000_000 % 60
    case "minute": return rest / 60_000_000 % 60
    case "hour": return rest / 3_600_000_000
    case "day": return day.day
    case "dayofweek": return day.weekday + 1
    case "dayofyear": return day.number - CivilDay.number(year: day.year, month: 1, day: 1) + 1
    case "month": return day.month
    case "quarter": return (day.month - 1) / 3 + 1
    case "year": return day.year
    case "isoyear": return day.isoYear
    case "isoweek": return (day.number - CivilDay.firstDay(ofISOYear: day.isoYear)) / 7 + 1
    default: break
    }
    guard let weekday = Self.weekday(beginning: part) else {
      throw needs("a part of a time, not \"\(part)\"")
    }
    // Week 1 begins with the first such day of the year; days before it are in week 0.
    let newYear = CivilDay(CivilDay.number(year: day.year, month: 1, day: 1))
    let first = newYear.number + (weekday - newYear.weekday + 7) % 7
    return (day.number - first).floored(7) + 1
  }

  // MARK: - Vectors and references

  func ofVectorOrReference(_ values: [Value]) throws(ExpressionFailure) -> Value {
    switch self {
    case .documentID: return .string(try path(values[0]).documentID)
    case .collectionID: return .string(try path(values[0]).collection.collectionID)
    case .parent: return try path(values[0]).collection.parent.map { .reference($0) } ?? .null
    case .vectorLength: return .integer(Int64(try vector(values[0]).count))
    default: break
    }
    let (left, right) = (try vector(values[0]), try vector(values[1]))
    guard left.count == right.count else { throw needs("vectors of the same length") }
    let measure: DistanceMeasure =
      self == .dotProduct ? .dotProduct : self == .cosineDistance ? .cosine : .euclidean
    return .double(measure.distance(left, right))
  }

  private func path(_ value: Value) throws(ExpressionFailure) -> DocumentPath {
    guard let path = value.reference else { throw needs("a reference") }
    return path
  }

  private func vector(_ value: Value) throws(ExpressionFailure) -> [Double] {
    guard let vector = value.vector else { throw needs("a vector") }
    return vector.components
  }
}

extension DistanceMeasure {
  /// The distance of two vectors of the same length.
  func distance(_ left: [Double], _ right: [Double]) -> Double {
    var (product, leftSquare, rightSquare, difference) = (0.0, 0.0, 0.0, 0.0)
    for (left, right) in zip(left, right) {
      product += left * right
      leftSquare += left * left
      rightSquare += right * right
      difference += (left - right) * (left - right)
    }
    switch self {
    case .dotProduct: return product
    case .euclidean: return difference.squareRoot()
    case .cosine: return 1 - product / (leftSquare.squareRoot() * rightSquare.squareRoot())
    }
  }
}

extension Int64 {
  /// The quotient, rounded down.
  fileprivate func floored(_ divisor: Int64) -> Int64 {
    self / divisor - (self % divisor < 0 ? 1 : 0)
  }

  /// What is above a multiple of the divisor, never negative.
  fileprivate func remainder(_ divisor: Int64) -> Int64 {
    let rest = self % divisor
    return rest < 0 ? rest + divisor : rest
  }
}
