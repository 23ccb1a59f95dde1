// The time that commits use. Times only increase from commit to commit, so one that is far ahead of
// the truth stays with the database until the world catches up: every later commit must be later
// still. A clock that jumps ahead for a moment, while a device looks for the network or a person
// changes the year, must not cause that. So a jump is accepted only when it has lasted. Until then,
// time continues from before by a clock that cannot be set.
//
// A value without a lock, which the sequencer keeps. It is called for every commit, and reads the
// second clock once a minute.

/// The wall clock, without its short jumps ahead.
struct CommitClock: Sendable {
  /// How many microseconds a clock may be ahead of the expected time: an hour.
  static let tolerance: Int64 = 3_600_000_000
  /// A jump that has lasted this many microseconds is accepted: ten minutes.
  static let patience: Int64 = 600_000_000
  /// Microseconds after which the two clocks are compared again.
  private static let interval: Int64 = 60_000_000

  /// Both clocks at one moment, with the accepted wall clock.
  private var anchor: (wall: Int64, uptime: Int64)
  /// When the wall clock jumped, by the other clock.
  private var doubtedSince: Int64?

  /// - Parameters:
  ///   - now: microseconds since 1970.
  ///   - uptime: microseconds since some moment, by a clock that cannot be set.
  init(now: Int64, uptime: Int64) {
    anchor = (now, uptime)
  }

  /// The time to use when the wall clock shows `now`.
  mutating func time(_ now: Int64, uptime: () -> Int64) -> Int64 {
    let (wall, past) = anchor
    let isNear = now >= wall && now < wall.addingSaturated(Self.interval)
    if isNear, doubtedSince == nil { return now }
    let uptime = uptime()
    let expected = wall.addingSaturated(max(0, uptime.subtractingSaturated(past)))
    if now > expected.addingSaturated(Self.tolerance) {
      let since = doubtedSince ?? uptime
      doubtedSince = since
      if uptime.subtractingSaturated(since) < Self.patience { return expected }
    }
    anchor = (now, uptime)
    doubtedSince = nil
    return now
  }
}

extension Int64 {
  fileprivate func addingSaturated(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }

  fileprivate func subtractingSaturated(_ other: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return overflow ? (other < 0 ? .max : .min) : difference
  }
}
