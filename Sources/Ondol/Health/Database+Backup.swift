// Copies a database while it is being written: into a directory, which is then a database itself,
// or as a stream that any `tar` unpacks into one. The copy is of one snapshot. The engine reads and
// checks the files; this is the app's interface.

package import OndolEngine

/// How far a backup has come.
public struct BackupProgress: Sendable, Hashable {
  /// Bytes of files written so far.
  public var completedBytes: UInt64
  /// All bytes to write. Grows slightly during the backup, by the data that was in memory.
  public var totalBytes: UInt64

  /// From 0 to 1.
  public var fraction: Double {
    totalBytes == 0 ? 1 : Double(completedBytes) / Double(totalBytes)
  }
}

extension Database {
  /// Copies the database as it is now into the directory at `path`, while writes continue: all
  /// commits that have returned by now, and no part of a later one. The copy is a database of its
  /// own, including indexes, and opens at once. It survives a power cut when this returns. A
  /// database in memory is copied to disk.
  ///
  /// Every byte is checked on the way, so damage is never copied. No write waits for the backup.
  /// Data that it reads is kept until it is done, even if it is deleted meanwhile. After a failure,
  /// a power cut or a cancelled task there is no database at `path`, though perhaps an empty
  /// directory.
  ///
  /// Collections that were created with `CollectionReference.createWithOwnKey()` are copied sealed,
  /// without their keys: dropping one also erases it from such copies. In the copy, calls that
  /// concern its documents throw `.permissionDenied`.
  ///
  /// - Parameters:
  ///   - path: a new or an empty directory. Its parent directory must exist.
  ///   - withKeys: whether the keys of collections are also copied, in the file `KEYS`. Such a copy
  ///     keeps the collections, whatever is dropped later.
  ///   - progress: called from time to time.
  /// - Throws: `.alreadyExists` when the directory is not empty, `.notFound` when its parent is
  ///   missing, `.dataLoss` when a file is damaged (salvage what is left), `.cancelled`,
  ///   `.failedPrecondition` when the database is closed, `.unimplemented` on a server,
  ///   `.resourceExhausted`, `.permissionDenied` or `.internal` when a system call fails.
  /// - Complexity: O(bytes of files).
  public func backup(
    to path: String, withKeys: Bool = false, progress: (BackupProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    try refuseInTransaction("backup")
    let isInMemory = environment.fileSystem is MemoryFileSystem
    try await backup(
      to: path, in: isInMemory ? DiskFileSystem() : environment.fileSystem, withKeys: withKeys,
      progress: progress)
  }

  /// Copies the database into a file system of the caller's choice.
  package func backup(
    to path: String, in fileSystem: any FileSystem, withKeys: Bool = false,
    progress: (BackupProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    try await rethrowing { () async throws(EngineError) in
      try await engine.backUp(to: path, in: fileSystem, withKeys: withKeys) { done, total in
        progress(BackupProgress(completedBytes: done, totalBytes: total))
      }
    }
  }

  /// Copies the database as it is now into a stream of bytes, while writes continue: a tar archive
  /// with one directory, `backup.ondol`, that opens as a database once `tar xf` has unpacked it.
  ///
  /// The archive is valid when this returns. One that was cut short must not be used, and unpacks
  /// to files that do not open.
  ///
  /// - Parameters:
  ///   - receive: receives the archive, in pieces of at most a megabyte. An error that it throws
  ///     ends the backup and is rethrown.
  ///   - withKeys: as of `backup(to:withKeys:progress:)`.
  ///   - progress: called from time to time.
  /// - Throws: a `DatabaseError`, as `backup(to:withKeys:progress:)` does, or what `receive`
  ///   throws.
  /// - Complexity: O(bytes of files).
  public func backup(
    into receive: ([UInt8]) async throws -> Void, withKeys: Bool = false,
    progress: (BackupProgress) -> Void = { _ in }
  ) async throws {
    try refuseInTransaction("backup")
    let backup = try rethrowing { () throws(EngineError) in
      try engine.beginBackup(withKeys: withKeys)
    }
    do {
      var archive = TarArchive(time: now() / 1_000_000)
      try await receive(archive.directory())
      while let piece = try await next(of: backup) {
        switch piece {
        case .file(let name, let size): try await receive(archive.file(name, sizeBytes: size))
        case .bytes(let bytes): try await receive(archive.contents(bytes))
        }
        let (done, total) = backup.progress
        progress(BackupProgress(completedBytes: done, totalBytes: total))
      }
      try await receive(archive.end())
    } catch {
      await backup.finish()
      throw error
    }
    await backup.finish()
  }

  private func next(of backup: Backup) async throws(DatabaseError) -> BackupPiece? {
    return try await rethrowing { () async throws(EngineError) in try await backup.next() }
  }
}
