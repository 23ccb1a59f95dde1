// A time in microseconds: what a commit's clock gives, and what is stored and indexed. One value
// outside the public range means "the time of this commit" until the commit is made. No public
// initialiser makes it and no decoder accepts it, so it cannot be confused with data.

/// A time, in whole microseconds, of the years 1 to 9999 in UTC, as Firestore stores it. A `Date`
/// may be used instead in all writes and reads.
public struct Timestamp: Sendable, Hashable {
  /// Microseconds since the beginning of 1970 in UTC; negative before it.
  public let microsecondsSince1970: Int64

  /// The first microsecond of the year 1.
  public static let minimum = Timestamp(unchecked: -62_135_596_800_000_000)
  /// The last microsecond of the year 9999.
  public static let maximum = Timestamp(unchecked: 253_402_300_799_999_999)

  /// The commit's own time, not known yet. It sorts after every real one.
  static let pending = Timestamp(unchecked: Int64.max)

  /// Whether this means the time of a commit that is not made yet.
  var isPending: Bool { self == .pending }

  /// A time that is known to be in range, or the pending one.
  init(unchecked microseconds: Int64) {
    microsecondsSince1970 = microseconds
  }

  /// A time in microseconds since 1970.
  ///
  /// - Throws: `.invalidArgument` outside the years 1 to 9999.
  public init(microsecondsSince1970 microseconds: Int64) throws(DatabaseError) {
    guard Self.isInRange(microseconds) else { throw Self.outOfRange }
    microsecondsSince1970 = microseconds
  }

  /// A time in seconds since 1970 and nanoseconds after them, rounded down to a microsecond as
  /// Firestore stores it.
  ///
  /// - Throws: `.invalidArgument` outside the years 1 to 9999, or when the nanoseconds are not
  ///   within 0..<1,000,000,000.
  public init(seconds: Int64, nanoseconds: Int32) throws(DatabaseError) {
    guard nanoseconds >= 0, nanoseconds < 1_000_000_000 else {
      throw DatabaseError(
        .invalidArgument,
        "a timestamp's nanoseconds must be within 0..<1000000000, and are \(nanoseconds)")
    }
    let (whole, isTooLarge) = seconds.multipliedReportingOverflow(by: 1_000_000)
    guard !isTooLarge else { throw Self.outOfRange }
    let (microseconds, isOverTop) = whole.addingReportingOverflow(Int64(nanoseconds / 1_000))
    guard !isOverTop else { throw Self.outOfRange }
    try self.init(microsecondsSince1970: microseconds)
  }

  /// Whole seconds since 1970, rounded down.
  public var seconds: Int64 {
    (microsecondsSince1970 - Int64(nanoseconds) / 1_000) / 1_000_000
  }

  /// Nanoseconds after `seconds`, a multiple of 1,000.
  public var nanoseconds: Int32 {
    let rest = microsecondsSince1970 % 1_000_000
    return Int32(rest < 0 ? rest + 1_000_000 : rest) * 1_000
  }

  static func isInRange(_ microseconds: Int64) -> Bool {
    microseconds >= minimum.microsecondsSince1970 && microseconds <= maximum.microsecondsSince1970
  }

  static var outOfRange: DatabaseError {
    DatabaseError(
      .invalidArgument,
      "a timestamp must be within the years 1 to 9999; where a date means \"never\", as distantPast"
        + " often does, store nil")
  }
}

extension Timestamp: Comparable {
  /// The earlier first.
  public static func < (left: Timestamp, right: Timestamp) -> Bool {
    left.microsecondsSince1970 < right.microsecondsSince1970
  }
}

extension Timestamp: CustomStringConvertible {
  /// Seconds since 1970 with six decimals.
  public var description: String {
    guard !isPending else { return "timestamp(of the commit)" }
    let isNegative = microsecondsSince1970 < 0
    let magnitude = microsecondsSince1970.magnitude
    let fraction = String(magnitude % 1_000_000)
    let padding = String(repeating: "0", count: 6 - fraction.count)
    return "timestamp(\(isNegative ? "-" : "")\(magnitude / 1_000_000).\(padding)\(fraction))"
  }
}

extension Timestamp: Codable {
  private enum CodingKeys: String, CodingKey {
    case seconds, nanoseconds
  }

  /// Reads `seconds` and `nanoseconds`, and throws outside the years 1 to 9999.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    try self.init(
      seconds: container.decode(Int64.self, forKey: .seconds),
      nanoseconds: container.decode(Int32.self, forKey: .nanoseconds))
  }

  /// Writes `seconds` and `nanoseconds`, as Firestore's timestamps do.
  ///
  /// - Throws: what the encoder throws.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(seconds, forKey: .seconds)
    try container.encode(nanoseconds, forKey: .nanoseconds)
  }
}
