// The thread that makes a sync. A flush syncs the log before it begins. If it asked for that while
// a commit was being written, the committer once made the sync, without needing one, and waited for
// the device: the longest wait there was.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct CommitterSyncTests {
  @Test func `A commit that needs no sync makes none for others`() async throws {
    let workers = HeldWorkers()
    let files = WatchedFileSystem()
    var environment = Environment.memory()
    environment.fileSystem = files
    environment.threads = workers
    let engine = try await Engine.open(at: "db", environment: environment)
    // The log exists, and is found after a power cut.
    try await engine.put([rowKey("first"): [1]], durability: .power)
    try await engine.put([rowKey("second"): [2]], durability: .process)
    let synced = files.syncs.withLock { $0 }

    workers.hold()
    let asked = Guarded<Task<Void, any Error>?>(nil)
    files.beforeWrite.withLock { beforeWrite in
      beforeWrite = {
        // The commit has its place and is not written. Now another task wants all of it synced.
        let sequencer = engine.storage.sequencer
        asked.withLock { $0 = Task.detached { try await sequencer.synchronize() } }
        while sequencer.state.withLock({ $0.syncWaiters.earliest == nil }) {}
      }
    }
    try await engine.put([rowKey("third"): [3]], durability: .process)
    #expect(files.syncs.withLock { $0 } == synced)
    #expect(workers.hasWaiting)

    workers.release()
    try await asked.withLock { $0 }?.value
    #expect(files.syncs.withLock { $0 } > synced)
    try await engine.close()
  }
}

/// Files in memory that count their syncs, and run code before the next write.
private final class WatchedFileSystem: FileSystem {
  let syncs = Guarded(0)
  let beforeWrite = Guarded<(@Sendable () -> Void)?>(nil)
  private let base = MemoryFileSystem()

  func openDirectory(at path: String, create: Bool) throws(EngineError) -> any Directory {
    WatchedDirectory(try base.openDirectory(at: path, create: create), self)
  }
}

private final class WatchedDirectory: ForwardingDirectory {
  let base: any Directory
  private let watch: WatchedFileSystem

  init(_ base: any Directory, _ watch: WatchedFileSystem) {
    self.base = base
    self.watch = watch
  }

  func create(_ name: String) throws(EngineError) -> any File {
    WatchedFile(try base.create(name), watch)
  }
}

private final class WatchedFile: ForwardingFile {
  let base: any File
  private let watch: WatchedFileSystem

  init(_ base: any File, _ watch: WatchedFileSystem) {
    self.base = base
    self.watch = watch
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    let before = watch.beforeWrite.withLock { before in
      defer { before = nil }
      return before
    }
    before?()
    try base.write(bytes, at: offset)
  }

  func sync() throws(EngineError) {
    watch.syncs.withLock { $0 += 1 }
    try base.sync()
  }

  func writeSynced(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    watch.syncs.withLock { $0 += 1 }
    try base.writeSynced(bytes, at: offset)
  }
}
