// Everything that the engine takes from outside: files, time, randomness and threads. It is
// supplied once, at open, so that a test can replace it with a deterministic environment that can
// fail.

/// The environment of the engine.
package struct Environment: Sendable {
  package var fileSystem: any FileSystem
  /// Wall clock in microseconds since 1970.
  package var now: @Sendable () -> Int64
  /// Microseconds since an arbitrary moment, by a clock that is never set and that continues while
  /// the device sleeps.
  package var uptime: @Sendable () -> Int64
  /// Waits for this many microseconds. Returns at once if its task is cancelled.
  package var sleep: @Sendable (Int64) async -> Void
  /// Waits for this many microseconds to let other work proceed, for the device's sake or because
  /// the storage has fallen behind. Calls of an app wait this way, so it must end even where time
  /// stands still.
  package var rest: @Sendable (Int64) async -> Void
  /// Waits for this many microseconds as part of a server's time limit. With simulated time, the
  /// time passes when a test says so.
  package var timeOut: @Sendable (Int64) async -> Void
  /// Returns sixty-four random bits.
  package var random: @Sendable () -> UInt64
  /// Threads for blocking calls.
  package var threads: any ThreadSource
  /// The files that all databases have open for reads; nil if each has its own table.
  package var openFiles: OpenFileTable?
  /// Decrypts the keys of databases; nil for databases without encryption.
  package var vault: (any Vault)?
  /// Where background tasks run; nil for the default pool.
  package var executor: (any TaskExecutor)?

  /// - Parameters:
  ///   - uptime: the same as `now` if nil, in which case jumps of that clock count as time.
  ///   - rest: the same as `sleep` if nil.
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
  /// The same environment for one more database.
  func forDatabase() -> Environment {
    var environment = self
    environment.threads = threads.forDatabase()
    return environment
  }

  /// The table in which a database opens files for reads: its own if it has a limit.
  func openFiles(under limit: Int?) -> OpenFileTable {
    if limit == nil, let openFiles { return openFiles }
    return OpenFileTable(limit: FileLimit.forReads(of: limit), beside: openFiles)
  }
}

/// The type of a worker's jobs, which determines the work that it shares threads with.
package enum WorkKind: Sendable, CaseIterable {
  /// Syncs of logs and packs, which commits wait for.
  case syncs
  /// Pieces of large contents.
  case contents
  /// Flushes and manifest edits.
  case upkeep
  /// Steps of merges. They yield to all other work if the system supports thread priorities.
  case merges
  /// Long work that no caller urgently waits for: checks, backups, salvage. It yields as well.
  case checks
  /// Work that waits for an external party that may never answer, such as a server, or that does
  /// not belong to a database. It has its own thread.
  case own
}

/// Creates the engine's workers.
package protocol ThreadSource: Sendable {
  func makeWorker(named name: String, for work: WorkKind) -> any Worker

  /// The same threads for one more database. Databases that share threads take turns.
  func forDatabase() -> any ThreadSource

  /// The queue of cold reads of all databases; nil if each database has its own threads for them.
  var readingLine: ReadingLine? { get }
}

extension ThreadSource {
  package func makeWorker(named name: String) -> any Worker { makeWorker(named: name, for: .own) }

  package func forDatabase() -> any ThreadSource { self }

  package var readingLine: ReadingLine? { nil }
}

/// Runs jobs one after the other, in the given order. Blocking calls belong here and not on the
/// cooperative pool. Workers may share threads, so a job never waits for another worker's job. It
/// waits only for the device, and for locks that no thread holds while it waits for a job.
package protocol Worker: AnyObject, Sendable {
  /// Runs `job` after the jobs before it.
  func enqueue(_ job: @escaping @Sendable () -> Void)

  /// Pauses the current job's thread for about this long. Only a job of this worker may call it.
  /// With simulated time it returns at once.
  func pause(microseconds: Int64)

  /// Waits until all jobs have run, and ends the thread if it belongs to the worker.
  func stop() async
}

extension Worker {
  package func pause(microseconds: Int64) {}

  /// Runs `body` as one of the worker's jobs and returns its result.
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
