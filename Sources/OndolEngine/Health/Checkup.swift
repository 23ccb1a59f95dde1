// Looks for damage in a database's files while other processes may have it open. First it examines
// the files that a writer changes and opens all others. Then it reads those completely, one after
// the other, on a thread that yields to others. The layer above checks the meaning of rows.

/// A check of the files in one directory.
package struct Checkup: Sendable {
  private let directory: any Directory
  private let environment: Environment
  /// The source of the keys. Another process may have the database open and change them.
  private let keyed: KeyedDirectory?

  package init(of directory: any Directory, environment: Environment) {
    self.init(of: directory, keyed: nil, environment: environment)
  }

  private init(of directory: any Directory, keyed: KeyedDirectory?, environment: Environment) {
    self.directory = FrugalDirectory(directory, limit: Self.fileLimit, isShared: true)
    self.keyed = keyed
    self.environment = environment
  }

  /// The files that a check has open at once, in addition to the database's own.
  private static let fileLimit = 32

  /// Checks the database in the directory at `path`, which must exist.
  package init(ofDatabaseAt path: String, environment: Environment) throws(EngineError) {
    let keyed = try environment.unlocked(
      try environment.fileSystem.openDirectory(at: path, create: false))
    self.init(of: keyed, keyed: keyed, environment: environment)
  }

  /// Takes the superblock's current keys, if they can be decrypted.
  private func lookForKeys() {
    guard let keyed, let superblock = try? Groundwork.superblock(in: keyed),
      let keyring = try? superblock.unlock(
        after: keyed.keyring, with: environment.vault, at: keyed.path, random: environment.random)
    else { return }
    keyed.use(keyring)
  }

  /// All problems with the files.
  ///
  /// - Parameters:
  ///   - readsBlocks: whether to read segments and value files completely, and not only their
  ///     structure.
  ///   - progress: receives the bytes read so far and the total.
  /// - Throws: `.notADatabase`, `.needsNewerVersion`; `.cancelled` if the task was cancelled; `.io`
  ///   if the directory cannot be read.
  package func findings(
    readsBlocks: Bool, progress: (_ done: UInt64, _ total: UInt64) -> Void
  ) async throws(EngineError) -> [StorageFinding] {
    let worker = environment.threads.makeWorker(named: "ondol-check", for: .checks)
    do throws(EngineError) {
      let findings = try await findings(on: worker, readsBlocks: readsBlocks, progress)
      await worker.stop()
      return findings
    } catch {
      await worker.stop()
      throw error
    }
  }

  private func findings(
    on worker: any Worker, readsBlocks: Bool,
    _ progress: (_ done: UInt64, _ total: UInt64) -> Void
  ) async throws(EngineError) -> [StorageFinding] {
    let examination = try await worker.perform { () throws(EngineError) in
      try FileExamination.settled(of: directory, environment: environment, lookForKeys)
    }
    var findings = examination.findings
    guard readsBlocks else { return findings }
    let (segments, valueFiles) = (examination.segments, examination.valueFiles)
    let total =
      segments.reduce(0) { $0 + $1.metadata.sizeBytes }
      + valueFiles.reduce(0) { $0 + $1.metadata.sizeBytes }
    var done: UInt64 = 0
    for file in valueFiles {
      if Task.isCancelled { throw .cancelled }
      findings += await worker.perform { stillCounting(file.findings(), file.errors.file) }
      done += file.metadata.sizeBytes
      progress(done, total)
    }
    for locked in examination.locked {
      if Task.isCancelled { throw .cancelled }
      findings += await worker.perform {
        stillCounting(locked.findings(in: directory), locked.name)
      }
    }
    for segment in segments {
      if Task.isCancelled { throw .cancelled }
      findings += await worker.perform {
        stillCounting(segment.findings(), segment.metadata.number.segmentName)
      }
      done += segment.metadata.sizeBytes
      progress(done, total)
    }
    return findings
  }

  /// The findings in a file, unless the file is gone by now. It existed when it was examined, so a
  /// writer has replaced it since, and it no longer matters.
  private func stillCounting(_ findings: [StorageFinding], _ name: String) -> [StorageFinding] {
    guard !findings.isEmpty, let names = try? directory.list(), !names.contains(name) else {
      return findings
    }
    return []
  }
}
