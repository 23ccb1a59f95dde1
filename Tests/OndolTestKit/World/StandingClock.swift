// A clock that stands until a test moves it. A sleeping task resumes when the clock has moved far
// enough, or when the task is cancelled.

package import Ondol
package import OndolEngine

package final class StandingClock: Sendable {
  private struct Sleeper: Sendable {
    var end: Int64
    var continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var now: Int64
    var sleepers: [Int: Sleeper] = [:]
    var lastSleeper = 0
    /// Sleepers that were cancelled before they fell asleep.
    var cancelled: Set<Int> = []
  }

  private let state: Guarded<State>

  package init(microsecondsSince1970 now: Int64 = 1_767_225_600_000_000) {
    state = Guarded(State(now: now))
  }

  package var now: Int64 { state.withLock { $0.now } }

  /// The first moment at which a sleeper wakes; nil without sleepers.
  var firstAlarm: Int64? { state.withLock { $0.sleepers.values.map(\.end).min() } }

  /// Moves the clock on to `moment`, or leaves it where it is if that has passed. Wakes the tasks
  /// that have slept long enough, in the order in which they fell asleep.
  func turn(to moment: Int64) {
    let woken = state.withLock { state in
      state.now = max(state.now, moment)
      let now = state.now
      let due = state.sleepers.filter { $0.value.end <= now }.sorted { $0.key < $1.key }
      for (number, _) in due { state.sleepers[number] = nil }
      return due.map(\.value.continuation)
    }
    for sleeper in woken { sleeper.resume() }
  }

  /// Returns when the clock has moved on by as much, or when the task is cancelled.
  func doze(microseconds: Int64) async {
    guard microseconds > 0 else { return }
    let number = state.withLock { state in
      state.lastSleeper += 1
      return state.lastSleeper
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

// MARK: - Histories

extension StandingClock {
  /// The moment a number of seconds from now, or before.
  package func moment(in seconds: Int) -> Timestamp {
    guard let moment = try? Timestamp(microsecondsSince1970: now + Int64(seconds) * 1_000_000)
    else { preconditionFailure("a history does not last for thousands of years") }
    return moment
  }

  /// Moves the clock on, and wakes the tasks that have slept long enough.
  package func turn(bySeconds seconds: Int) {
    turn(to: now + Int64(seconds) * 1_000_000)
  }
}

extension Environment {
  /// The same world with the time of a clock.
  package func going(by clock: StandingClock) -> Environment {
    var environment = self
    environment.now = { clock.now }
    environment.sleep = { await clock.doze(microseconds: $0) }
    environment.timeOut = environment.sleep
    return environment
  }
}
