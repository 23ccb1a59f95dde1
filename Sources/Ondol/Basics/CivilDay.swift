// Days of the Gregorian calendar, by their number since the first of January 1970: for pipelines,
// for rules and for texts of moments. The year is counted from March, so that the leap day is its
// last, and eras of 400 years are all alike.

/// A day.
package struct CivilDay: Sendable, Hashable {
  /// Microseconds of a day.
  static let microseconds: Int64 = 86_400_000_000

  /// Days since 1970-01-01; negative before it.
  let number: Int64
  package let year: Int64
  /// 1 to 12.
  package let month: Int64
  /// 1 to 31.
  package let day: Int64

  /// - Parameter number: days since 1970-01-01, of a moment that 64 bits count in seconds.
  package init(_ number: Int64) {
    self.number = number
    let shifted = number + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  /// 0 for Sunday.
  var weekday: Int64 { ((number % 7) + 11) % 7 }

  /// The number of the day with a date. A day that the month lacks is one of the next month.
  package static func number(year: Int64, month: Int64, day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }

  /// The year that the day's week belongs to, whose weeks begin on Mondays: that of its Thursday.
  var isoYear: Int64 { CivilDay(number - (weekday + 6) % 7 + 3).year }

  /// The Monday of the week with the year's first Thursday.
  static func firstDay(ofISOYear year: Int64) -> Int64 {
    let fourth = CivilDay(number(year: year, month: 1, day: 4))
    return fourth.number - (fourth.weekday + 6) % 7
  }
}
