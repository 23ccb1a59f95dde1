// Time that passes when a test says so. A database on a simulated device looks at this clock and
// sleeps by it, and its background tasks run on the clock's own thread. So letting time pass can
// wait until everything has happened that was due, and no test needs to wait for real.

internal import Ondol
internal import OndolEngine

/// A clock that a test moves.
///
/// Whatever a database does by the time, it does by this clock: times of commits and server
/// timestamps, documents that end (`setTimeToLive(field:)`), syncs for `.periodic` durability,
/// contents that are reclaimed after their lease or grace period, merges after a while of quiet.
///
/// ```swift
/// let clock = ManualClock()
/// let device = SimulatedDevice(clock: clock)
/// let database = try await Database.open(at: "app.ondol", on: device)
/// …
/// await clock.advance(by: .seconds(3600))  // what is due within the hour has happened
/// ```
///
/// A database elsewhere can look at the clock through `Database.Options.clock`; it sleeps by the
/// system's, so what it does in the background comes by real time.
public final class ManualClock: Sendable {
  let time: StandingClock
  /// Where the background tasks of those run who sleep by this clock.
  let background = BackgroundExecutor()

  /// A clock that stands.
  ///
  /// - Parameter microseconds: the moment it shows, in microseconds since 1970; the first moment of
  ///   2026 in UTC unless said otherwise.
  public init(microsecondsSince1970 microseconds: Int64 = 1_767_225_600_000_000) {
    time = StandingClock(microsecondsSince1970: microseconds)
  }

  /// The moment the clock shows, in microseconds since 1970.
  public var microsecondsSince1970: Int64 { time.now }

  /// Lets time pass, and waits until all work is done that a database on a simulated device does in
  /// the background by then. What is due at several moments happens in their order, each with the
  /// clock at its moment.
  ///
  /// Work that waits for something of the test's own, such as a listener's loop on the main actor,
  /// is not waited for.
  ///
  /// - Parameter duration: how far the clock goes, to the microsecond. With nothing or less the
  ///   clock stays, and only what is under way is waited for.
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

  /// A body waits, and nothing is left to run that could end the wait.
  public struct Stuck: Error, Sendable, CustomStringConvertible {
    /// What to look for.
    public var description: String {
      "the body waits while nothing runs: for something that never comes, for time that nobody lets"
        + " pass, or for work that is not part of it"
    }
  }

  /// Runs a test's body, and ends it with an error when it waits for ever, at once and whatever it
  /// waits for.
  ///
  /// The body, its child tasks and the databases on devices with this clock run on the clock's own
  /// thread, which knows when nothing is left to run. What runs elsewhere is not seen, and a body
  /// that waits for it counts as stuck: the main actor, other actors with threads of their own,
  /// `Task {}`, `Task.sleep`, databases that are on no device.
  ///
  /// ```swift
  /// let database = try await clock.watch {
  ///   let database = try await Database.open(at: "app.ondol", on: device)
  ///   try await signUp("minji@example.com", in: database)
  ///   return database
  /// }
  /// ```
  ///
  /// - Parameter body: what is to come to its end.
  /// - Returns: what `body` returns, once nothing runs any more.
  /// - Throws: what `body` throws; `Stuck` when it waits while nothing runs. It is cancelled then,
  ///   and may go on waiting.
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
