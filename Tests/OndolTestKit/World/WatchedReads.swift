// Finds out which threads wait for the disk. Files are read on workers' threads or elsewhere, which
// in an async call means on a thread of the cooperative pool. The reads elsewhere are counted.

package import OndolEngine

/// Watches an environment's files and threads.
package final class WatchedReads: Sendable {
  @TaskLocal fileprivate static var isOnWorker = false

  private let counts = Guarded((onWorkers: 0, elsewhere: 0))

  package init() {}

  /// The same environment, watched.
  package func watching(_ base: Environment) -> Environment {
    var environment = base
    environment.fileSystem = WatchedFileSystem(base.fileSystem, by: self)
    environment.threads = WatchedThreads(base: base.threads)
    return environment
  }

  package func forget() {
    counts.withLock { $0 = (0, 0) }
  }

  /// Reads on workers' threads since the last `forget()`.
  package var onWorkers: Int { counts.withLock { $0.onWorkers } }
  /// Reads on other threads since the last `forget()`.
  package var elsewhere: Int { counts.withLock { $0.elsewhere } }

  fileprivate func note() {
    let isOnWorker = Self.isOnWorker
    counts.withLock { counts in
      if isOnWorker { counts.onWorkers += 1 } else { counts.elsewhere += 1 }
    }
  }
}

// MARK: - Threads

private struct WatchedThreads: ThreadSource {
  let base: any ThreadSource

  func makeWorker(named name: String, for work: WorkKind) -> any Worker {
    WatchedWorker(base.makeWorker(named: name, for: work))
  }
}

private final class WatchedWorker: Worker {
  private let base: any Worker

  init(_ base: any Worker) {
    self.base = base
  }

  func enqueue(_ job: @escaping @Sendable () -> Void) {
    base.enqueue { WatchedReads.$isOnWorker.withValue(true) { job() } }
  }

  func pause(microseconds: Int64) {
    base.pause(microseconds: microseconds)
  }

  func stop() async {
    await base.stop()
  }
}

// MARK: - Files

private final class WatchedFileSystem: FileSystem {
  private let base: any FileSystem
  private let watch: WatchedReads

  init(_ base: any FileSystem, by watch: WatchedReads) {
    self.base = base
    self.watch = watch
  }

  func openDirectory(at path: String, create: Bool) throws(EngineError) -> any Directory {
    WatchedDirectory(try base.openDirectory(at: path, create: create), by: watch)
  }
}

private final class WatchedDirectory: ForwardingDirectory {
  let base: any Directory
  private let watch: WatchedReads

  init(_ base: any Directory, by watch: WatchedReads) {
    self.base = base
    self.watch = watch
  }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    WatchedFile(try base.open(name, access: access), by: watch)
  }

  func openForReads(_ name: String, held: Bool) throws(EngineError) -> any File {
    WatchedFile(try base.openForReads(name, held: held), by: watch)
  }

  func create(_ name: String) throws(EngineError) -> any File {
    WatchedFile(try base.create(name), by: watch)
  }
}

private final class WatchedFile: ForwardingFile {
  let base: any File
  private let watch: WatchedReads

  init(_ base: any File, by watch: WatchedReads) {
    self.base = base
    self.watch = watch
  }

  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    watch.note()
    return try base.read(at: offset, count: count)
  }
  /// Counted like any other: on a simulated disk every read is answered at once.
  func readAtOnce(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8]? {
    try read(at: offset, count: count)
  }
}
