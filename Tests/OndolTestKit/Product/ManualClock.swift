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
  private struct Sleeper: Sendable {
    var end: Int64
    var continuation: CheckedContinuation<Void, Never>
  }

  private struct State: Sendable {
    var now: Int64
    var sleepers: [Int: Sleeper] = [:]
    var nextSleeper = 0
    /// Sleepers that were cancelled before they fell asleep.
    var cancelled: Set<Int> = []
  }

  private let state: Guarded<State>
  /// Where the background tasks of those run who sleep by this clock.
  let background = BackgroundExecutor()

  /// A clock that stands.
  ///
  /// - Parameter microseconds: the moment it shows, in microseconds since 1970; the first moment of
  ///   2026 in UTC unless said otherwise.
  public init(microsecondsSince1970 microseconds: Int64 = 1_767_225_600_000_000) {
    state = Guarded(State(now: microseconds))
  }

  /// The moment the clock shows, in microseconds since 1970.
  public var microsecondsSince1970: Int64 { state.withLock { $0.now } }

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
    let end = state.withLock { state in
      let (end, overflow) = state.now.addingReportingOverflow(max(0, duration.microseconds))
      return overflow ? .max : end
    }
    await background.waitUntilIdle()
    while let due = wakeNext(until: end) {
      for sleeper in due { sleeper.resume() }
      await background.waitUntilIdle()
    }
    state.withLock { $0.now = max($0.now, end) }
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

  /// Moves to the first moment, up to `end`, at which somebody is to wake; nil when nobody is.
  private func wakeNext(until end: Int64) -> [CheckedContinuation<Void, Never>]? {
    state.withLock { state in
      guard let first = state.sleepers.values.map(\.end).min(), first <= end else { return nil }
      state.now = max(state.now, first)
      let due = state.sleepers.filter { $0.value.end <= first }.sorted { $0.key < $1.key }
      for (number, _) in due { state.sleepers[number] = nil }
      return due.map(\.value.continuation)
    }
  }

  /// Returns when the clock has moved on by as much, or the task is cancelled.
  func doze(microseconds: Int64) async {
    guard microseconds > 0 else { return }
    let number = state.withLock { state in
      state.nextSleeper += 1
      return state.nextSleeper
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let mustSleep = state.withLock { state in
          if state.cancelled.remove(number) != nil { return false }
          let (end, overflow) = state.now.addingReportingOverflow(microseconds)
          state.sleepers[number] = Sleeper(
            end: overflow ? .max : end, continuation: continuation)
          return true
        }
        if !mustSleep { continuation.resume() }
      }
      // A cancellation that came too late for the sleep.
      state.withLock { _ = $0.cancelled.remove(number) }
    } onCancel: {
      let sleeper = state.withLock { state in
        guard let sleeper = state.sleepers.removeValue(forKey: number) else {
          state.cancelled.insert(number)
          return nil as Sleeper?
        }
        return sleeper
      }
      sleeper?.continuation.resume()
    }
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
