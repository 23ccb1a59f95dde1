// Everything the engine takes from outside itself: files, time, chance and threads. Handed in once,
// at open, so that a test can replace the world by one that is deterministic and can fail.

/// The world as the engine sees it.
package struct Environment: Sendable {
  package var fileSystem: any FileSystem
  /// Wall clock in microseconds since 1970.
  package var now: @Sendable () -> Int64
  /// Microseconds since some moment, by a clock that nobody sets and that goes on while the device
  /// sleeps.
  package var uptime: @Sendable () -> Int64
  /// Waits as many microseconds as given; returns at once when its task is cancelled.
  package var sleep: @Sendable (Int64) async -> Void
  /// Waits as many microseconds so that others get on: for the device's sake, or because the
  /// storage is behind. Calls of an app wait like this, so it must end where time stands still.
  package var rest: @Sendable (Int64) async -> Void
  /// Waits as many microseconds as part of what somebody gives a server to answer. Where time is
  /// not real it passes when a test says so.
  package var timeOut: @Sendable (Int64) async -> Void
  /// Sixty-four random bits.
  package var random: @Sendable () -> UInt64
  /// Threads for calls that block.
  package var threads: any ThreadSource
  /// What opens the keys of databases; nil for those in the clear.
  package var vault: (any Vault)?
  /// Where background tasks run; the default pool when nil.
  package var executor: (any TaskExecutor)?

  /// - Parameters:
  ///   - uptime: as `now` when nil, whose jumps are then what time does.
  ///   - rest: as `sleep` when nil.
  package init(
    fileSystem: any FileSystem, now: @escaping @Sendable () -> Int64,
    uptime: (@Sendable () -> Int64)? = nil,
    sleep: @escaping @Sendable (Int64) async -> Void,
    rest: (@Sendable (Int64) async -> Void)? = nil, random: @escaping @Sendable () -> UInt64,
    threads: any ThreadSource, executor: (any TaskExecutor)? = nil
  ) {
    self.fileSystem = fileSystem
    self.now = now
    self.uptime = uptime ?? now
    self.sleep = sleep
    self.rest = rest ?? sleep
    timeOut = sleep
    self.random = random
    self.threads = threads
    self.executor = executor
  }
}

/// Makes the engine's worker threads.
package protocol ThreadSource: Sendable {
  func makeWorker(named name: String) -> any Worker

  /// As above, for work that yields to all other: where the system can tell threads apart, this one
  /// has the lowest priority.
  func makeBackgroundWorker(named name: String) -> any Worker
}

extension ThreadSource {
  package func makeBackgroundWorker(named name: String) -> any Worker { makeWorker(named: name) }
}

/// One thread that runs jobs in the order given. Blocking calls belong here and not on the
/// cooperative pool.
package protocol Worker: AnyObject, Sendable {
  /// Runs `job` after the jobs before it.
  func enqueue(_ job: @escaping @Sendable () -> Void)

  /// Keeps the worker's thread from going on for about so long, called by a job of its own. One
  /// whose time is not real goes on at once.
  func pause(microseconds: Int64)

  /// Waits until all jobs have run, and ends the thread.
  func stop() async
}

extension Worker {
  package func pause(microseconds: Int64) {}

  /// Runs `body` on the worker's thread and gives back what it makes.
  package func perform<R: Sendable, E: Error>(
    _ body: @escaping @Sendable () throws(E) -> R
  ) async throws(E) -> R {
    let result: Result<R, E> = await withCheckedContinuation { continuation in
      enqueue {
        do throws(E) {
          continuation.resume(returning: .success(try body()))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
    }
    return try result.get()
  }
}
