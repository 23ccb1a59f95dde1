// Time that passes when a test says so. A database on a simulated device reads this clock and
// sleeps by it, and its background tasks run on the clock's own thread. So moving the clock can
// wait until all due work is done, and no test needs to wait in real time.

internal import Ondol
internal import OndolEngine

/// A clock that a test moves.
///
/// Everything that a database does by time uses this clock: times of commits and server timestamps,
/// expiring documents (`setTimeToLive(field:)`), syncs for `.periodic` durability, reclaiming
/// contents after their lease or grace period, and merges after a quiet period.
///
/// ```swift
/// let clock = ManualClock()
/// let device = SimulatedDevice(clock: clock)
/// let database = try await Database.open(at: "app.ondol", on: device)
/// …
/// await clock.advance(by: .seconds(3600))  // what is due within the hour has happened
/// ```
///
/// A database elsewhere can read the clock through `Database.Options.clock`. It sleeps by the
/// system's clock, so its background work follows real time.
public final class ManualClock: Sendable {
  let time: StandingClock
  /// Runs the background tasks of databases that sleep by this clock.
  let background = BackgroundExecutor()

  /// Makes a clock that stands still.
  ///
  /// - Parameter microseconds: the moment that it shows, in microseconds since 1970. The default is
  ///   the first moment of 2026 in UTC.
  public init(microsecondsSince1970 microseconds: Int64 = 1_767_225_600_000_000) {
    time = StandingClock(microsecondsSince1970: microseconds)
  }

  /// The moment that the clock shows, in microseconds since 1970.
  public var microsecondsSince1970: Int64 { time.now }

  /// Lets time pass, and waits until databases on simulated devices have done all background work
  /// that is due by then. Work that is due at several moments happens in their order, each with the
  /// clock at its moment.
  ///
  /// It does not wait for work that waits for something of the test's own, such as a listener's
  /// loop on the main actor.
  ///
  /// - Parameter duration: how far the clock moves, to the microsecond. For zero or a negative
  ///   duration the clock stays, and the call waits only for the work that is under way.
  public func advance(by duration: Duration) async {
    let (sum, isOver) = time.now.addingReportingOverflow(max(0, duration.microseconds))
    let end = isOver ? .max : sum
    await background.waitUntilIdle()
    while let alarm = time.firstAlarm, alarm <= end {
      time.turn(to: alarm)
      await background.waitUntilIdle()
    }
    time.turn(to: end)
  }

  // MARK: - Watching

  /// A body waits, and nothing that could end the wait is left to run.
  public struct Stuck: Error, Sendable, CustomStringConvertible {
    /// The likely causes.
    public var description: String {
      "the body waits while nothing runs: for something that never comes, for time that nobody lets"
        + " pass, or for work that is not part of it"
    }
  }

  /// Runs a test's body, and ends it at once with an error if it waits forever, whatever it waits
  /// for.
  ///
  /// The body, its child tasks and the databases on devices with this clock run on the clock's own
  /// thread, which knows when nothing is left to run. It does not see work that runs elsewhere: the
  /// main actor, other actors with threads of their own, `Task {}`, `Task.sleep`, and databases
  /// that are not on a device. A body that waits for such work counts as stuck.
  ///
  /// ```swift
  /// let database = try await clock.watch {
  ///   let database = try await Database.open(at: "app.ondol", on: device)
  ///   try await signUp("minji@example.com", in: database)
  ///   return database
  /// }
  /// ```
  ///
  /// - Parameter body: the code that must come to its end.
  /// - Returns: the result of `body`, after nothing runs any more.
  /// - Throws: the error of `body`; `Stuck` if it waits while nothing runs. It is cancelled then,
  ///   and may continue to wait.
  public func watch<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let outcome = Guarded<Swift.Result<Result, any Error>?>(nil)
    let task = Task(executorPreference: background) {
      do {
        let result = try await body()
        outcome.withLock { $0 = .success(result) }
      } catch {
        outcome.withLock { $0 = .failure(error) }
      }
    }
    await background.waitUntilStill()
    guard let outcome = outcome.withLock({ $0 }) else {
      task.cancel()
      throw Stuck()
    }
    return try outcome.get()
  }
}

extension Duration {
  /// Whole microseconds, as many as fit.
  fileprivate var microseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, isOver) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000)
    return isOver ? whole : sum
  }
}
