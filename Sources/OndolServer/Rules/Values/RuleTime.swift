// Moments and durations with nanoseconds, and the civil date in UTC, which is all that the language
// needs of a calendar. Sums that overflow have no value, and therefore deny.

#if Server
  import Ondol

  /// A signed duration: whole seconds, rounded down, and the nanoseconds above them.
  struct RuleInstant: Sendable, Hashable, Comparable {
    static let nanosecondsInSecond: Int64 = 1_000_000_000

    let seconds: Int64
    /// Less than a second, and never negative.
    let nanoseconds: Int64

    init(seconds: Int64) {
      self.seconds = seconds
      nanoseconds = 0
    }

    /// Nil if the seconds overflow.
    init?(seconds: Int64, nanoseconds: Int64) {
      let (whole, rest) = nanoseconds.dividedDown(by: Self.nanosecondsInSecond)
      let (sum, overflow) = seconds.addingReportingOverflow(whole)
      if overflow { return nil }
      self.seconds = sum
      self.nanoseconds = rest
    }

    static func < (one: RuleInstant, other: RuleInstant) -> Bool {
      (one.seconds, one.nanoseconds) < (other.seconds, other.nanoseconds)
    }

    func adding(_ other: RuleInstant) -> RuleInstant? {
      let (sum, overflow) = seconds.addingReportingOverflow(other.seconds)
      return overflow
        ? nil : RuleInstant(seconds: sum, nanoseconds: nanoseconds + other.nanoseconds)
    }

    func subtracting(_ other: RuleInstant) -> RuleInstant? {
      let (rest, overflow) = seconds.subtractingReportingOverflow(other.seconds)
      return overflow
        ? nil : RuleInstant(seconds: rest, nanoseconds: nanoseconds - other.nanoseconds)
    }
  }

  /// A moment in UTC, of the years 1 to 9999.
  struct RuleTimestamp: Sendable, Hashable {
    private static let possibleSeconds: ClosedRange<Int64> = -62_135_596_800...253_402_300_799

    /// Since 1970.
    let instant: RuleInstant

    /// Nil outside the years 1 to 9999.
    init?(_ instant: RuleInstant) {
      guard Self.possibleSeconds.contains(instant.seconds) else { return nil }
      self.instant = instant
    }

    /// Nil outside the years 1 to 9999.
    init?(seconds: Int64, nanoseconds: Int64 = 0) {
      guard let instant = RuleInstant(seconds: seconds, nanoseconds: nanoseconds) else {
        return nil
      }
      self.init(instant)
    }

    /// Nil outside the years 1 to 9999.
    init?(milliseconds: Int64) {
      let (seconds, rest) = milliseconds.dividedDown(by: 1_000)
      self.init(seconds: seconds, nanoseconds: rest * 1_000_000)
    }

    /// The first or the last moment for seconds outside the years 1 to 9999.
    ///
    /// - Parameter nanoseconds: from 0 to 999,999,999.
    init(clampingSeconds seconds: Int64, nanoseconds: Int64) {
      let known = min(
        max(seconds, Self.possibleSeconds.lowerBound), Self.possibleSeconds.upperBound)
      instant =
        RuleInstant(seconds: known, nanoseconds: nanoseconds) ?? RuleInstant(seconds: known)
    }

    /// Midnight of a day; nil if there is no such day in the years 1 to 9999.
    init?(year: Int64, month: Int64, day: Int64) {
      guard let date = RuleDate(year: year, month: month, day: day) else { return nil }
      instant = RuleInstant(seconds: date.daysSince1970 * RuleDate.secondsInDay)
    }

    /// Since 1970, rounded down.
    var milliseconds: Int64 { instant.seconds * 1_000 + instant.nanoseconds / 1_000_000 }

    var date: RuleDate {
      RuleDate(daysSince1970: instant.seconds.dividedDown(by: RuleDate.secondsInDay).quotient)
    }

    var secondOfDay: Int64 { instant.seconds.dividedDown(by: RuleDate.secondsInDay).remainder }

    /// The midnight before it.
    var midnight: RuleTimestamp {
      RuleTimestamp(RuleInstant(seconds: instant.seconds - secondOfDay)) ?? self
    }
  }

  /// A duration, which may be negative.
  struct RuleDuration: Sendable, Hashable {
    let length: RuleInstant

    init(_ length: RuleInstant) { self.length = length }

    /// Nil if it overflows.
    init?(seconds: Int64, nanoseconds: Int64) {
      guard let length = RuleInstant(seconds: seconds, nanoseconds: nanoseconds) else { return nil }
      self.length = length
    }

    /// Whole seconds, rounded towards zero.
    var seconds: Int64 {
      length.seconds < 0 && length.nanoseconds > 0 ? length.seconds + 1 : length.seconds
    }

    /// The part below whole seconds, with the same sign.
    var nanoseconds: Int64 {
      length.seconds < 0 && length.nanoseconds > 0
        ? length.nanoseconds - RuleInstant.nanosecondsInSecond : length.nanoseconds
    }

    /// The absolute value; nil if it overflows.
    var magnitude: RuleDuration? {
      if length.seconds >= 0 { return self }
      return RuleInstant(seconds: 0).subtracting(length).map { RuleDuration($0) }
    }
  }

  /// A day of the Gregorian calendar, also before it was introduced.
  struct RuleDate: Sendable, Hashable {
    static let secondsInDay: Int64 = 86_400

    let daysSince1970: Int64
    let year: Int64
    let month: Int64
    let day: Int64

    init(daysSince1970: Int64) {
      let civil = CivilDay(daysSince1970)
      self.daysSince1970 = daysSince1970
      (year, month, day) = (civil.year, civil.month, civil.day)
    }

    init?(year: Int64, month: Int64, day: Int64) {
      guard (1...9_999).contains(year), (1...12).contains(month), (1...31).contains(day) else {
        return nil
      }
      self.init(daysSince1970: CivilDay.number(year: year, month: month, day: day))
      // 30 February becomes a day of March in this conversion.
      guard self.month == month, self.day == day else { return nil }
    }

    /// 1 is Monday, 7 is Sunday.
    var dayOfWeek: Int64 {
      daysSince1970.dividedDown(by: 7).remainder.advanced(by: 3) % 7 + 1
    }

    /// 1 is 1 January.
    var dayOfYear: Int64 {
      let first = RuleDate(year: year, month: 1, day: 1)?.daysSince1970 ?? daysSince1970
      return daysSince1970 - first + 1
    }
  }

  extension Int64 {
    /// The quotient rounded down, and a remainder that is never negative. `divisor` is positive.
    func dividedDown(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
      let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
      return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
  }
#endif
