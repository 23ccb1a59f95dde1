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
  /// The files that all databases have open for reads; nil where each has a table of its own.
  package var openFiles: OpenFileTable?
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

extension Environment {
  /// The same for one database more.
  func forDatabase() -> Environment {
    var environment = self
    environment.threads = threads.forDatabase()
    return environment
  }

  /// Where a database opens files for reads: in a table of its own when it was given a limit.
  func openFiles(under limit: Int?) -> OpenFileTable {
    if limit == nil, let openFiles { return openFiles }
    return OpenFileTable(limit: FileLimit.forReads(of: limit), beside: openFiles)
  }
}

/// What a worker's jobs are, which says with whom they share threads.
package enum WorkKind: Sendable, CaseIterable {
  /// Syncs of logs and packs, for which commits wait.
  case syncs
  /// Pieces of large contents.
  case contents
  /// Flushes, and edits of the manifest.
  case upkeep
  /// Steps of merges. They yield to all other work, where the system can tell threads apart.
  case merges
  /// What may take long and nobody waits for in a hurry: checks, backups, salvage. It yields, too.
  case checks
  /// What waits for somebody who need never answer, such as a server, or is no work of a
  /// database's: a thread of its own.
  case own
}

/// Makes the engine's workers.
package protocol ThreadSource: Sendable {
  func makeWorker(named name: String, for work: WorkKind) -> any Worker

  /// The same threads for one more database: where databases share them, they take turns.
  func forDatabase() -> any ThreadSource

  /// Where the cold reads of all databases wait; nil where each has threads of its own for them.
  var readingLine: ReadingLine? { get }
}

extension ThreadSource {
  package func makeWorker(named name: String) -> any Worker { makeWorker(named: name, for: .own) }

  package func forDatabase() -> any ThreadSource { self }

  package var readingLine: ReadingLine? { nil }
}

/// Runs jobs one after the other, in the order given. Blocking calls belong here and not on the
/// cooperative pool. Workers may share threads, so a job never waits for another worker's job: it
/// waits for the device, and for locks that nobody holds while waiting for a job.
package protocol Worker: AnyObject, Sendable {
  /// Runs `job` after the jobs before it.
  func enqueue(_ job: @escaping @Sendable () -> Void)

  /// Keeps the job's thread from going on for about so long, called by a job of its own. One
  /// whose time is not real goes on at once.
  func pause(microseconds: Int64)

  /// Waits until all jobs have run, and ends the thread where it is the worker's own.
  func stop() async
}

extension Worker {
  package func pause(microseconds: Int64) {}

  /// Runs `body` as one of the worker's jobs and gives back what it makes.
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
