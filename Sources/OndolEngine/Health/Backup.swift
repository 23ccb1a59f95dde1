// The engine's part in copying a database while it is being written. A backup is read piece by
// piece on a thread that yields to others. Its caller writes the pieces into a directory
// (BackupTarget), or processes them in the layer above. It can be cancelled between two pieces.

/// A part of a backup. The parts come in this order.
package enum BackupPiece: Sendable {
  /// Begins a file.
  case file(name: String, sizeBytes: UInt64)
  /// Bytes of the current file.
  case bytes([UInt8])
}

/// A backup in progress.
package final class Backup: Sendable {
  fileprivate struct State: Sendable {
    var reader: BackupReader
    var file: BackupFile?
    var offset: UInt64 = 0
    var done: UInt64 = 0
  }

  private let state: Guarded<State>
  private let worker: any Worker
  /// Keeps the files of contents.
  private let copy: ContentCopy

  fileprivate init(_ reader: BackupReader, _ worker: any Worker, _ copy: ContentCopy) {
    state = Guarded(State(reader: reader))
    self.worker = worker
    self.copy = copy
  }

  /// The next piece; nil at the end. It serves one caller at a time.
  ///
  /// - Throws: `.corrupt` if a file is damaged; `.cancelled` if the task was cancelled.
  package func next() async throws(EngineError) -> BackupPiece? {
    if Task.isCancelled { throw .cancelled }
    return try await worker.perform { [state] () throws(EngineError) in
      try state.withLock { (state) throws(EngineError) in try state.next() }
    }
  }

  /// The bytes returned so far, and the total as far as known.
  package var progress: (done: UInt64, total: UInt64) {
    state.withLock { ($0.done, $0.reader.totalBytes) }
  }

  /// Runs `body` on the backup's reading thread.
  func perform<R: Sendable>(
    _ body: @escaping @Sendable () throws(EngineError) -> R
  ) async throws(EngineError) -> R {
    try await worker.perform(body)
  }

  /// Must be called at the end, and when the backup is abandoned.
  package func finish() async {
    copy.end()
    await worker.stop()
  }
}

extension Backup.State {
  fileprivate mutating func next() throws(EngineError) -> BackupPiece? {
    if let file {
      let bytes = try file.piece(at: offset)
      offset += UInt64(bytes.count)
      done += UInt64(bytes.count)
      if !bytes.isEmpty { return .bytes(bytes) }
    }
    file = try reader.nextFile()
    offset = 0
    return file.map { .file(name: $0.name, sizeBytes: $0.sizeBytes) }
  }
}

extension Engine {
  /// Begins a backup of all currently visible commits. Everything it reads is kept until it ends.
  ///
  /// - Parameter withKeys: whether it includes the keys of keyed groups.
  /// - Throws: `.unsupported` on a store, which has no files to copy.
  package func beginBackup(withKeys: Bool = false) throws(EngineError) -> Backup {
    if isOnStore { throw .unsupported(reason: Self.noFiles) }
    // Before the snapshot, because the contents that it refers to must not be removed.
    let copy = contents.keepFiles()
    // A keyspace dropped in between would leave rows without an owner, or an owner without rows.
    while true {
      let start = storage.merging.start
      let before = storage.groupKeys?.list ?? GroupList()
      let snapshot = try snapshot(owner: "backup")
      guard storage.merging.start.generation == start.generation else { continue }
      let times = [storage.sequencer.end.time, follower?.lastTime ?? 0, storage.environment.now()]
      let reader = BackupReader(
        snapshot, dropped: start.dropped, groups: before.union(storage.groupKeys?.list),
        withKeys: withKeys, time: times.max() ?? 0,
        nextFile: storage.manifest.numbers.next, storage, contents)
      return Backup(
        reader, storage.environment.threads.makeWorker(named: "ondol-backup", for: .checks), copy)
    }
  }

  /// Writes all currently visible commits as a database into the directory at `path`, which must be
  /// new or empty, and whose parent must exist. The copy survives a power cut once this returns.
  /// After a failure or an earlier power cut there is no database.
  ///
  /// - Parameters:
  ///   - withKeys: whether it includes the keys of keyed groups.
  ///   - progress: receives the bytes written so far and the total as far as known.
  /// - Throws: `.notEmpty` if the directory is not empty; `.corrupt` if the database is damaged;
  ///   `.cancelled` if the task was cancelled.
  /// - Complexity: O(bytes of files), each read twice and written once.
  package func backUp(
    to path: String, in fileSystem: any FileSystem, withKeys: Bool = false,
    progress: (_ done: UInt64, _ total: UInt64) -> Void
  ) async throws(EngineError) {
    let backup = try beginBackup(withKeys: withKeys)
    do throws(EngineError) {
      try await backup.write(to: path, in: fileSystem, progress)
    } catch {
      await backup.finish()
      throw error
    }
    await backup.finish()
  }
}

extension Backup {
  fileprivate func write(
    to path: String, in fileSystem: any FileSystem,
    _ progress: (_ done: UInt64, _ total: UInt64) -> Void
  ) async throws(EngineError) {
    let target = try await perform { () throws(EngineError) in
      try BackupTarget(at: path, in: fileSystem)
    }
    do throws(EngineError) {
      while let piece = try await next() {
        try await perform { () throws(EngineError) in try target.take(piece) }
        let (done, total) = self.progress
        progress(done, total)
      }
      try await perform { () throws(EngineError) in try target.finish() }
    } catch {
      try? await perform { () throws(EngineError) in target.removeAll() }
      throw error
    }
  }
}
