// The times of commits when someone changes the clock.

import OndolTestKit
import Testing

@testable import OndolEngine

private let second: Int64 = 1_000_000
private let hour = 3_600 * second
private let year = 365 * 24 * hour
private let start = 50 * year

@Suite struct CommitClockTests {
  /// Two clocks, and the resulting times.
  private struct Clocks {
    var clock = CommitClock(now: start, uptime: 7)
    var uptime: Int64 = 7
    /// How far the wall clock is ahead of the true time.
    var lead: Int64 = 0

    mutating func time(after pause: Int64) -> Int64 {
      uptime += pause
      let uptime = uptime
      return clock.time(start + uptime - 7 + lead) { uptime }
    }

    var truth: Int64 { start + uptime - 7 }
  }

  @Test func `A correct clock is believed, however long no commit comes`() {
    var clocks = Clocks()
    for pause in [0, 1, second, 59 * second, 61 * second, hour, 30 * hour, year] {
      #expect(clocks.time(after: pause) == clocks.truth)
    }
  }

  // A device once had a wrong clock, a year ahead, for a moment and committed. It has stamped that
  // year on everything since, because times only go up.
  @Test func `A jump ahead for a moment is not believed`() {
    var clocks = Clocks()
    _ = clocks.time(after: 10 * second)
    clocks.lead = year
    for _ in 0..<50 { #expect(clocks.time(after: 10 * second) == clocks.truth) }
    clocks.lead = 0
    for _ in 0..<50 { #expect(clocks.time(after: 100 * second) == clocks.truth) }
  }

  @Test func `A jump ahead that lasts is believed: the clock was wrong before`() {
    var clocks = Clocks()
    clocks.lead = year
    var believed = 0
    for _ in 0..<80 where clocks.time(after: 10 * second) == clocks.truth + year { believed += 1 }
    #expect(believed == 80 - Int(CommitClock.patience / (10 * second)))
  }

  @Test func `A small step ahead and any step back are believed at once`() {
    var clocks = Clocks()
    for lead in [hour - 61 * second, 0, -year, -year + 5, 0 - 2 * year] {
      clocks.lead = lead
      #expect(clocks.time(after: 61 * second) == clocks.truth + lead)
    }
  }

  @Test func `No clock makes it overflow`() {
    for now in [Int64.min, -1, 0, .max] {
      for later in [Int64.min, 0, .max] {
        for uptime in [Int64.min, 0, .max] {
          var clock = CommitClock(now: now, uptime: 0)
          for _ in 0..<3 { _ = clock.time(later) { uptime } }
        }
      }
    }
  }

  @Test func `A database whose clock jumped for a moment continues from the time before`()
    async throws
  {
    let wall = Guarded(start)
    let uptime = Guarded<Int64>(0)
    var environment = Environment.memory()
    environment.now = { wall.withLock { $0 } }
    environment.uptime = { uptime.withLock { $0 } }
    let engine = try await Engine.open(at: "db", environment: environment)
    #expect(try await engine.put([rowKey("a"): [1]]).time == start)
    wall.withLock { $0 += year }
    uptime.withLock { $0 += second }
    #expect(try await engine.put([rowKey("a"): [2]]).time == start + second)
    try await engine.close()
    wall.withLock { $0 = start + 2 * second }
    let again = try await Engine.open(at: "db", environment: environment)
    #expect(try await again.put([rowKey("a"): [3]]).time == start + 2 * second)
    try await again.close()
  }
}
