// Looking for damage in a database's files, beside whoever has it open. First the files that a
// writer changes are examined and all others opened, then these are read through, one after the
// other, on a thread that yields to others. What rows mean is for the floor above to check.

/// A check of the files in one directory.
package struct Checkup: Sendable {
  private let directory: any Directory
  private let environment: Environment
  /// Where the keys are, of a database that somebody else may have open and change them.
  private let keyed: KeyedDirectory?

  package init(of directory: any Directory, environment: Environment) {
    self.init(of: directory, keyed: nil, environment: environment)
  }

  private init(of directory: any Directory, keyed: KeyedDirectory?, environment: Environment) {
    self.directory = FrugalDirectory(directory, limit: Self.fileLimit, isShared: true)
    self.keyed = keyed
    self.environment = environment
  }

  /// Files that a check has open at once, beside those of the database.
  private static let fileLimit = 32

  /// For the database in the directory at `path`, which must be there.
  package init(ofDatabaseAt path: String, environment: Environment) throws(EngineError) {
    let keyed = try environment.unlocked(
      try environment.fileSystem.openDirectory(at: path, create: false))
    self.init(of: keyed, keyed: keyed, environment: environment)
  }

  /// Takes the keys that the superblock has now, where they can be opened.
  private func lookForKeys() {
    guard let keyed, let superblock = try? Groundwork.superblock(in: keyed),
      let keyring = try? superblock.unlock(
        after: keyed.keyring, with: environment.vault, at: keyed.path, random: environment.random)
    else { return }
    keyed.use(keyring)
  }

  /// Everything that is wrong with the files.
  ///
  /// - Parameters:
  ///   - readsBlocks: whether segments and value files are read through, too, and not their
  ///     structure alone.
  ///   - progress: gets the bytes read through so far and all there are.
  /// - Throws: `.notADatabase`, `.needsNewerVersion`; `.cancelled` when the task was; `.io` when
  ///   the directory cannot be read.
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

  /// What was found in a file, unless the file is gone by now: it was there when it was examined,
  /// so a writer has put others in its place, and it does not count any more.
  private func stillCounting(_ findings: [StorageFinding], _ name: String) -> [StorageFinding] {
    guard !findings.isEmpty, let names = try? directory.list(), !names.contains(name) else {
      return findings
    }
    return []
  }
}
