// Moments as texts, "2026-05-01T09:30:00.25Z", with microseconds and for all years of a timestamp.
// Foundation's formatters stop at milliseconds.

package import Ondol

/// Timestamps in ISO 8601.
package enum Moment {
  /// "2026-05-01T09:30:00.25Z", with no more decimals than necessary.
  package static func text(_ timestamp: Timestamp) -> String {
    let (days, second) = timestamp.seconds.quotientAndRemainder(dividingByFloor: 86_400)
    let date = CivilDay(days)
    let clock = [second / 3_600, second / 60 % 60, second % 60].map { padded($0, 2) }
    let microseconds = Int64(timestamp.nanoseconds / 1_000)
    var fraction = microseconds == 0 ? "" : ".\(padded(microseconds, 6))"
    while fraction.hasSuffix("0") { fraction.removeLast() }
    return "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))"
      + "T\(clock.joined(separator: ":"))\(fraction)Z"
  }

  /// Returns the moment of a text: a date, "T", a time of day with seconds, at most nine decimals
  /// of which six count, and "Z" or an offset such as "+09:00". Returns nil for anything else.
  ///
  /// Throws for years outside the range of a timestamp.
  package static func timestamp(_ text: String) throws(DatabaseError) -> Timestamp? {
    var scanner = Scanner(Array(text.utf8))
    guard let year = scanner.number(4), scanner.skip("-"), let month = scanner.number(2),
      scanner.skip("-"), let day = scanner.number(2), scanner.skip("T"),
      let hour = scanner.number(2), scanner.skip(":"), let minute = scanner.number(2),
      scanner.skip(":"), let second = scanner.number(2),
      let microseconds = scanner.fraction(), let offset = scanner.offset(), scanner.isAtEnd,
      1...12 ~= month, 1...31 ~= day, hour < 24, minute < 60, second < 60
    else { return nil }
    let days = CivilDay.number(year: year, month: month, day: day)
    // There is no 30 February: it would be read as another day.
    let date = CivilDay(days)
    guard (date.year, date.month, date.day) == (year, month, day) else { return nil }
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset
    return try Timestamp(microsecondsSince1970: seconds * 1_000_000 + microseconds)
  }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

extension Int64 {
  /// Division that rounds down, with a remainder that is never negative.
  fileprivate func quotientAndRemainder(dividingByFloor divisor: Int64) -> (Int64, Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

/// Reads the parts of a moment's text.
private struct Scanner {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) {
    rest = bytes[...]
  }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func skip(_ character: Character) -> Bool {
    guard let byte = rest.first, byte == character.asciiValue else { return false }
    rest.removeFirst()
    return true
  }

  private mutating func digit() -> Int64? {
    guard let byte = rest.first, 0x30...0x39 ~= byte else { return nil }
    rest.removeFirst()
    return Int64(byte - 0x30)
  }

  mutating func number(_ digits: Int) -> Int64? {
    var number: Int64 = 0
    for _ in 0..<digits {
      guard let digit = digit() else { return nil }
      number = number * 10 + digit
    }
    return number
  }

  /// Microseconds; 0 without a fraction.
  mutating func fraction() -> Int64? {
    guard skip(".") else { return 0 }
    var (number, count): (Int64, Int) = (0, 0)
    while let digit = digit() {
      if count < 6 { number = number * 10 + digit }
      count += 1
    }
    guard 1...9 ~= count else { return nil }
    for _ in 0..<max(0, 6 - count) { number *= 10 }
    return number
  }

  /// Seconds that the clock is ahead of UTC.
  mutating func offset() -> Int64? {
    if skip("Z") { return 0 }
    let isAhead = skip("+")
    guard isAhead || skip("-"), let hours = number(2), skip(":"), let minutes = number(2),
      hours < 24, minutes < 60
    else { return nil }
    return (isAhead ? 1 : -1) * (hours * 3_600 + minutes * 60)
  }
}
