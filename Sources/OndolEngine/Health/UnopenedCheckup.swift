// A check of an encrypted database without its key, for those who keep copies or maintain the
// disks. All checksums cover the stored bytes, and the links from one unit to the next are not
// encrypted or can be found. So damage is found in every kind of file except those of single
// contents, whose checksums are in rows. Which files should exist, and what they contain, cannot be
// checked.
//
// Other processes may have the database open. A write in progress looks like damage once, so every
// finding is checked a second time.

/// A check of the files of an encrypted database, without its key.
package struct UnopenedCheckup: Sendable {
  /// The result of such a check.
  package struct Outcome: Sendable {
    package fileprivate(set) var findings: [StorageFinding] = []
    /// Bytes whose checksums were compared, or that are known to be unused space.
    package fileprivate(set) var checkedBytes: UInt64 = 0
    /// Bytes that cannot be checked.
    package fileprivate(set) var uncheckedBytes: UInt64 = 0
  }

  private let base: any Directory
  private let environment: Environment

  /// Checks the database in the directory at `path`, which must exist.
  package init(ofDatabaseAt path: String, environment: Environment) throws(EngineError) {
    base = try environment.fileSystem.openDirectory(at: path, create: false)
    self.environment = environment
  }

  /// Examines all files.
  ///
  /// - Parameter progress: receives the bytes examined so far and the total.
  /// - Throws: `.notEncrypted` if the database is not encrypted; `.notADatabase`,
  ///   `.needsNewerVersion`; `.corrupt` if no superblock can be read; `.cancelled`; `.io` if the
  ///   directory cannot be read.
  package func outcome(
    progress: (_ done: UInt64, _ total: UInt64) -> Void
  ) async throws(EngineError) -> Outcome {
    let worker = environment.threads.makeWorker(named: "ondol-check", for: .checks)
    do throws(EngineError) {
      var outcome = try await look(on: worker, at: nil, progress)
      if !outcome.findings.isEmpty {
        let names = Set(outcome.findings.map(\.file))
        let again = Set(try await look(on: worker, at: names) { _, _ in }.findings)
        outcome.findings.removeAll { !again.contains($0) }
      }
      await worker.stop()
      return outcome
    } catch {
      await worker.stop()
      throw error
    }
  }

  /// Examines all files, or those with these names.
  private func look(
    on worker: any Worker, at wanted: Set<String>?,
    _ progress: (_ done: UInt64, _ total: UInt64) -> Void
  ) async throws(EngineError) -> Outcome {
    let (base, environment) = (base, environment)
    let glance = try await worker.perform { () throws(EngineError) in
      try UnopenedFiles(in: base, environment)
    }
    let files = glance.all.filter { wanted?.contains($0.name) ?? true }
    var outcome = Outcome()
    let total = files.reduce(0) { $0 + $1.sizeBytes }
    var done: UInt64 = 0
    for file in files {
      if Task.isCancelled { throw .cancelled }
      let found = await worker.perform { glance.examine(file) }
      outcome.findings += found.findings
      outcome.checkedBytes += found.checkedBytes
      outcome.uncheckedBytes += found.uncheckedBytes
      done += file.sizeBytes
      progress(done, total)
    }
    return outcome
  }
}

/// One examination of the files.
private struct UnopenedFiles: Sendable {
  private let directory: KeyedDirectory
  private let keyring: Keyring
  private let superblock: Superblock
  /// The files that can be examined.
  let all: [Place]

  struct Place: Sendable {
    var name: String
    var part: Part
    var sizeBytes: UInt64
  }

  init(in base: any Directory, _ environment: Environment) throws(EngineError) {
    superblock = try Groundwork.superblock(in: base)
    guard let keyring = superblock.unopened(random: environment.random) else {
      throw .notEncrypted(path: base.path)
    }
    self.keyring = keyring
    directory = KeyedDirectory(base, keyring)
    var all: [Place] = []
    for name in try base.list().sorted() {
      // A file that is gone by now no longer matters.
      guard let part = Part(name, superblock),
        let file = try? base.open(name, access: .readOnly), let size = try? file.size()
      else { continue }
      all.append(Place(name: name, part: part, sizeBytes: size))
    }
    self.all = all
  }

  /// The files that have checksums, by their names.
  enum Part: Sendable {
    case superblock
    case keys
    case manifest
    case log(FileNumber)
    case segment(FileNumber)
    case valueFile(FileNumber)
    case pack(FileNumber)
    case content(FileNumber)

    init?(_ name: String, _ superblock: Superblock) {
      if name == Superblock.name {
        self = .superblock
      } else if name == GroupKeysFile.name {
        self = .keys
      } else if name == superblock.manifest.manifestName {
        self = .manifest
      } else if let number = FileNumber.parse(name, prefix: "LOG-") {
        self = .log(number)
      } else if let number = FileNumber.parse(name, suffix: ".seg") {
        self = .segment(number)
      } else if let number = FileNumber.parse(name, suffix: ".val") {
        self = .valueFile(number)
      } else if let number = FileNumber.parse(name, suffix: ".pack") {
        self = .pack(number)
      } else if let number = FileNumber.parse(name, suffix: ".content") {
        self = .content(number)
      } else {
        return nil
      }
    }

    var kind: StorageFinding.Kind {
      switch self {
      case .superblock, .keys: .superblock
      case .manifest: .manifest
      case .log: .log
      case .segment: .segment
      case .valueFile: .valueFile
      case .pack, .content: .content
      }
    }
  }

  /// The result for one file.
  func examine(_ place: Place) -> UnopenedFile {
    var look = UnopenedFile(place.name, place.part.kind, place.sizeBytes)
    do throws(EngineError) {
      let file = try directory.open(place.name, access: .readOnly)
      switch place.part {
      case .superblock: try look.readSuperblock(file)
      case .keys: try look.readKeys(file, superblock.identity)
      case .manifest: try look.readManifest(file, superblock, keyring)
      case .log(let number): try look.readLog(number, file, keyring, next: try next(after: number))
      case .segment(let number): try look.readSegment(number, file, superblock.identity, keyring)
      case .valueFile(let number): try look.readValues(number, file, superblock.identity, keyring)
      case .pack(let number): try look.readPack(number, file, superblock.identity, keyring)
      case .content(let number): try look.readContent(number, file, superblock.identity, keyring)
      }
    } catch {
      look.note(error)
    }
    return look
  }

  /// The log after another one.
  private func next(after number: FileNumber) throws(EngineError) -> (any File)? {
    let numbers = try directory.list().compactMap { FileNumber.parse($0, prefix: "LOG-") }
    guard let next = numbers.filter({ $0 > number }).min() else { return nil }
    return try directory.open(next.logName, access: .readOnly)
  }
}

extension Superblock {
  /// The keyring of a caller without a key; nil if the database is not encrypted.
  fileprivate func unopened(random: @escaping @Sendable () -> UInt64) -> Keyring? {
    guard let kept else { return nil }
    guard let change else {
      return Keyring(UnopenedKey(), kept: kept, identity: identity.bytes, random: random)
    }
    return Keyring(UnopenedKey(), kept: kept, change, identity: identity.bytes, random: random)
  }
}
