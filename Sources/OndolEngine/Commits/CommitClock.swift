// What a commit takes for the time. Times only go up from commit to commit, so one that is far
// ahead of the truth stays with the database for as long as it takes the world to catch up: every
// later commit must be later still. A clock that jumps ahead for a moment, while a device looks for
// the network or somebody turns the year, must not do that. So a jump is believed only when it has
// lasted; until then time goes on from before as a clock counts it that nobody sets.
//
// A value without a lock, which the sequencer keeps. Asked for every commit, it looks at the second
// clock once a minute.

/// The wall clock, without its short jumps ahead.
struct CommitClock: Sendable {
  /// A clock may be so many microseconds ahead of what was expected: an hour.
  static let tolerance: Int64 = 3_600_000_000
  /// A jump that has lasted so many microseconds is believed: ten minutes.
  static let patience: Int64 = 600_000_000
  /// Microseconds after which the two clocks are compared again.
  private static let interval: Int64 = 60_000_000

  /// Both clocks at one moment, the wall clock as it was believed.
  private var anchor: (wall: Int64, uptime: Int64)
  /// When the wall clock jumped, by the other.
  private var doubtedSince: Int64?

  /// - Parameters:
  ///   - now: microseconds since 1970.
  ///   - uptime: microseconds since some moment, by a clock that nobody sets.
  init(now: Int64, uptime: Int64) {
    anchor = (now, uptime)
  }

  /// The time to go by when the wall clock says `now`.
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
