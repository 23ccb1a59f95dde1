// A clock that stands until a history turns it, for databases in a world whose steps a seed
// decides. Whoever sleeps by it is one of these steps again once it was turned far enough, or is
// cancelled.

package import Ondol
package import OndolEngine

package final class TurnedClock: Sendable {
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

  /// The moment so many seconds from now, or before.
  package func moment(in seconds: Int) -> Timestamp {
    guard let moment = try? Timestamp(microsecondsSince1970: now + Int64(seconds) * 1_000_000)
    else { preconditionFailure("a history does not last for thousands of years") }
    return moment
  }

  /// Turns the clock on, and wakes who has slept long enough.
  package func turn(bySeconds seconds: Int) {
    let woken = state.withLock { state in
      state.now += Int64(seconds) * 1_000_000
      let now = state.now
      let due = state.sleepers.filter { $0.value.end <= now }.sorted { $0.key < $1.key }
      for (number, _) in due { state.sleepers[number] = nil }
      return due.map(\.value.continuation)
    }
    for sleeper in woken { sleeper.resume() }
  }

  fileprivate func rest(microseconds: Int64) async {
    let number = state.withLock { state in
      state.lastSleeper += 1
      return state.lastSleeper
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let mustSleep = state.withLock { state in
          guard state.cancelled.remove(number) == nil, microseconds > 0 else { return false }
          let (end, overflow) = state.now.addingReportingOverflow(microseconds)
          state.sleepers[number] = Sleeper(
            end: overflow ? .max : end, continuation: continuation)
          return true
        }
        if !mustSleep { continuation.resume() }
      }
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

extension Environment {
  /// The same world, whose time is that of a clock.
  package func going(by clock: TurnedClock) -> Environment {
    var environment = self
    environment.now = { clock.now }
    environment.sleep = { await clock.rest(microseconds: $0) }
    return environment
  }
}
