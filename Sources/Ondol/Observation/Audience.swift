// Whether anybody listens to a database that another writes. As long as somebody does it is kept up
// to date: a task waits for the writer and looks at the files; with the last listener it ends, and
// nobody looks any more. In a database that is open for writing there is nothing to be done.

internal import OndolEngine

/// Counts those who listen or follow.
final class Audience: Sendable {
  private struct State: Sendable {
    var count = 0
    /// Begins to keep the database up to date.
    var begin: (@Sendable () -> BackgroundTask?)?
    var work: BackgroundTask?
  }

  private let state = Guarded(State())

  /// Has `begin` called whenever the first one comes; the work is cancelled when the last one goes.
  func serve(by begin: @escaping @Sendable () -> BackgroundTask?) {
    state.withLock { $0.begin = begin }
  }

  /// Somebody listens from now on.
  func enter() {
    state.withLock { state in
      state.count += 1
      if state.count == 1, let begin = state.begin { state.work = begin() }
    }
  }

  /// Somebody who had entered listens no more.
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
  /// Microseconds between two looks at least, so that a writer at full speed is followed in steps
  /// that are worth their while.
  private static let pause: Int64 = 10_000
  /// Microseconds until the next attempt after a failure, and so many before listeners hear of it:
  /// the writer may be in the middle of something.
  private static let pauseAfterFailure: Int64 = 50_000
  private static let patience = 20

  /// Keeps the database up to date until the task is cancelled. Does not keep it alive.
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

  /// Refreshes; answers how often in a row that has failed.
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
