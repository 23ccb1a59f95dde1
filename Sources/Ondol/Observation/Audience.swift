// Whether a database that another process writes has listeners. While it has, it is kept up to
// date: a task waits for the writer and reads the files. The task ends with the last listener. A
// database that is open for writing needs none of this.

internal import OndolEngine

/// Counts the listeners and followers.
final class Audience: Sendable {
  private struct State: Sendable {
    var count = 0
    /// Begins to keep the database up to date.
    var begin: (@Sendable () -> BackgroundTask?)?
    var work: BackgroundTask?
  }

  private let state = Guarded(State())

  /// Calls `begin` whenever a first listener arrives. The work is cancelled when the last listener
  /// leaves.
  func serve(by begin: @escaping @Sendable () -> BackgroundTask?) {
    state.withLock { $0.begin = begin }
  }

  /// Adds a listener.
  func enter() {
    state.withLock { state in
      state.count += 1
      if state.count == 1, let begin = state.begin { state.work = begin() }
    }
  }

  /// Removes a listener that was added before.
  func leave() {
    let work = state.withLock { state -> BackgroundTask? in
      state.count -= 1
      guard state.count == 0 else { return nil }
      defer { state.work = nil }
      return state.work
    }
    work?.cancel()
  }

  var count: Int { state.withLock { $0.count } }

  /// Whether the database is kept up to date.
  var isServed: Bool { state.withLock { $0.work != nil } }
}

extension Database {
  /// The least number of microseconds between two checks, so that each step pays off even with a
  /// writer at full speed.
  private static let pause: Int64 = 10_000
  /// Microseconds until the next attempt after a failure, and the number of consecutive failures
  /// after which listeners get the error: the writer may be in the middle of a change.
  private static let pauseAfterFailure: Int64 = 50_000
  private static let patience = 20

  /// Keeps the database up to date until the task is cancelled. Does not keep the database alive.
  func startFollowing() -> BackgroundTask? {
    let watch = engine.watchFiles()
    return engine.startInBackground { [weak self, environment] in
      var failures = 0
      while !Task.isCancelled, let count = await self?.look(after: failures) {
        failures = count
        await environment.sleep(failures == 0 ? Self.pause : Self.pauseAfterFailure)
        if failures == 0, !Task.isCancelled { await watch.wait() }
      }
    }
  }

  /// Refreshes; returns the number of consecutive failures.
  private func look(after failures: Int) async -> Int {
    do throws(DatabaseError) {
      try await refresh()
      return 0
    } catch {
      if failures >= Self.patience, error.code != .failedPrecondition, !Task.isCancelled {
        observers.fail(with: error)
        arrivals.fail(with: error)
      }
      return failures + 1
    }
  }
}
