// A single examination of a database's files, without the lock and without changes. It reads and
// evaluates the files that a writer changes, and opens all other files in the manifest. As many of
// them as possible stay open, so that they can be read completely later even if a writer has
// removed them.
//
// The same code that opening uses evaluates damage. In addition, it reports what opening tolerates
// because a copy exists: an unreadable copy of the superblock or of a log's header, and the remains
// of a write that a power cut or a kill interrupted.

/// A file of a keyed group whose key is missing.
struct LockedFile: Sendable {
  let name: String
  private let part: UnopenedFile.Part
  private let identity: DatabaseIdentity

  init(_ name: String, _ part: UnopenedFile.Part, _ identity: DatabaseIdentity) {
    self.name = name
    self.part = part
    self.identity = identity
  }

  /// The findings from its checksums.
  func findings(in directory: any Directory) -> [StorageFinding] {
    var look = UnopenedFile(name, .segment, 0)
    do throws(EngineError) {
      try look.read(part, try directory.open(name, access: .readOnly), identity)
    } catch {
      look.note(error)
    }
    return look.findings
  }
}

/// The problems with the files at one moment, and the open immutable files.
struct FileExamination: Sendable {
  private(set) var findings: [StorageFinding] = []
  private(set) var segments: [Segment] = []
  private(set) var valueFiles: [ValueFile] = []
  /// The names of files without an available key.
  private(set) var locked: [LockedFile] = []

  private let directory: any Directory
  private let environment: Environment

  /// Examines the files. Throws if there is no database, or one of a newer version.
  init(of directory: any Directory, environment: Environment) throws(EngineError) {
    self.directory = directory
    self.environment = environment
    guard let superblock = try readSuperblock(), let manifest = try readManifest(superblock) else {
      return
    }
    examineKeys(manifest)
    examineLogs(manifest)
    examineHistory(manifest)
    openFiles(manifest)
    for (group, reason) in directory.keyring?.groups.lockedOut.sorted(by: { $0.key < $1.key }) ?? []
    {
      note(
        .manifest, in: manifest.superblock.manifest.manifestName,
        "the key of group \(group) is another one than its files have: \(reason)")
    }
  }

  /// Repeats the examination until two in a row agree, because a write in progress looks like
  /// damage. Findings that only one of the last two has are omitted. `prepare` is called before
  /// each examination except the first.
  static func settled(
    of directory: any Directory, environment: Environment, _ prepare: () -> Void
  ) throws(EngineError) -> FileExamination {
    var last = try FileExamination(of: directory, environment: environment)
    for _ in 0..<attempts where !last.findings.isEmpty {
      prepare()
      var next = try FileExamination(of: directory, environment: environment)
      if next.findings == last.findings { return next }
      let common = Set(last.findings)
      last = next
      next.findings.removeAll { !common.contains($0) }
      if next.findings.isEmpty { return next }
    }
    return last
  }

  private static let attempts = 16

  // MARK: - The superblock and the manifest

  private mutating func readSuperblock() throws(EngineError) -> Superblock? {
    let names = try directory.list()
    guard names.contains(Superblock.name) else {
      guard Self.hasManifest(names) else {
        throw .notADatabase(path: directory.path, reason: "it has no superblock")
      }
      note(.superblock, in: Superblock.name, "the file is missing")
      return nil
    }
    do throws(EngineError) {
      let file = try directory.open(Superblock.name, access: .readOnly)
      findings += try Superblock.findings(in: file)
      return try Superblock.read(from: file)
    } catch {
      // If the rest of a database exists, a file that is not recognisable as a superblock is
      // damage.
      if case .notADatabase = error, Self.hasManifest(names) { return nil }
      try take(error, .superblock, in: Superblock.name)
      return nil
    }
  }

  private static func hasManifest(_ names: [String]) -> Bool {
    names.contains { FileNumber.parse($0, prefix: "MANIFEST-") != nil }
  }

  private mutating func readManifest(_ superblock: Superblock) throws(EngineError) -> Manifest? {
    let name = superblock.manifest.manifestName
    do throws(EngineError) {
      let manifest = try Manifest.load(
        superblock, directory: directory, environment: environment, rotationSize: .max,
        access: .readOnly)
      let file = try directory.open(name, access: .readOnly)
      noteRemains(of: file, .manifest, behind: manifest.offset)
      return manifest
    } catch {
      try take(error, .manifest, in: name)
      return nil
    }
  }

  /// Examines the keys of groups, some of which may be missing.
  private mutating func examineKeys(_ manifest: Manifest) {
    guard let keyring = directory.keyring else { return }
    keyring.groups.note(manifest.state.groups)
    guard manifest.state.groups.isUsed,
      let file = try? directory.open(GroupKeysFile.name, access: .readOnly)
    else { return }
    do throws(EngineError) {
      findings += try GroupKeysFile.findings(
        in: file, of: keyring.identity, vouchedForBy: keyring.masters)
    } catch {
      findings.append(StorageFinding(error, .superblock, in: GroupKeysFile.name))
    }
  }

  // MARK: - Logs

  private mutating func examineLogs(_ manifest: Manifest) {
    var recovery = Recovery(
      directory: directory, identity: manifest.superblock.identity, manifest: manifest.state,
      memtableSize: 1 << 20)
    do throws(EngineError) {
      let names = try directory.list()
      let logs = names.compactMap { FileNumber.parse($0, prefix: "LOG-") }
        .filter { $0 >= manifest.state.floor.number }.sorted()
      for number in logs { try examineHeader(of: number) }
      try recovery.replay(names)
      for number in recovery.headless {
        note(
          .log, in: number.logName, at: 0,
          "the log's header is lost; what is in the log can be read", isHarmless: true)
      }
      for number in logs where number >= recovery.recovered.number {
        let file = try directory.open(number.logName, access: .readOnly)
        let isLast = number == recovery.recovered.number
        noteRemains(of: file, .log, behind: isLast ? recovery.recovered.length : 0)
      }
    } catch {
      findings.append(
        StorageFinding(error, .log, in: manifest.state.newestLog.logName))
    }
  }

  /// Reads the commits that are kept for followers of the database, up to those that recovery
  /// needs.
  private mutating func examineHistory(_ manifest: Manifest) {
    let floor = manifest.state.floor
    guard let history = manifest.state.history, !history.logs.isEmpty else { return }
    let end = HistoryExtent.Log(number: floor.number, length: 0, before: floor.before)
    let extent = HistoryExtent(
      start: history.start, logs: history.logs.map(HistoryExtent.Log.init) + [end],
      published: floor.sequence)
    var cursor = HistoryCursor(after: history.start)
    do throws(EngineError) {
      while try !cursor.read(extent, in: directory, manifest.superblock.identity).isEmpty {}
      guard cursor.position.sequence < floor.sequence else { return }
      note(
        .log, in: floor.number.logName,
        "commits behind \(cursor.position.sequence.rawValue) are missing before it")
    } catch {
      findings.append(StorageFinding(error, .log, in: floor.number.logName))
    }
  }

  /// Examines both copies of a log's header.
  private mutating func examineHeader(of number: FileNumber) throws(EngineError) {
    let file = try directory.open(number.logName, access: .readOnly)
    let page = try file.read(at: 0, count: LogHeader.length)
    findings += try LogHeader.findings(in: page.bytes, file: number.logName)
  }

  /// Records bytes after the end of the valid data.
  private mutating func noteRemains(
    of file: any File, _ kind: StorageFinding.Kind, behind end: UInt64
  ) {
    do throws(EngineError) {
      var last: UInt64?
      var offset = end
      while case let piece = try file.read(at: offset, count: Self.piece), !piece.isEmpty {
        if let index = piece.lastIndex(where: { $0 != 0 }) { last = offset + UInt64(index) }
        offset += UInt64(piece.count)
      }
      guard let last else { return }
      note(
        kind, in: file.name, at: end,
        "\(last + 1 - end) bytes of a write that was cut short; they do not count",
        isHarmless: true)
    } catch {
      findings.append(StorageFinding(error, kind, in: file.name))
    }
  }

  private static let piece = 1 << 20

  // MARK: - Immutable files

  private mutating func openFiles(_ manifest: Manifest) {
    let identity = manifest.superblock.identity
    let cache = BlockCache(budgetBytes: 1 << 20)
    let files = ValueFiles(
      identity: identity, directory: directory, cache: cache, access: .readOnly)
    files.follow(manifest.state)
    let keys = directory.keyring?.groups
    let isOpen = { (group: UInt32?) in group.map { keys?.hasKey(of: $0) ?? true } ?? true }
    valueFiles = files.all.filter { isOpen($0.metadata.group) }.sorted { $0.number < $1.number }
    for file in files.all where !isOpen(file.metadata.group) {
      let number = file.number
      locked.append(LockedFile(number.valueFileName, .values(number), identity))
    }
    for shard in manifest.state.shards {
      locked += shard.locked.map {
        LockedFile($0.segment.number.segmentName, .segment($0.segment.number), identity)
      }
    }
    for file in valueFiles {
      if directory.heldRoom > 0 { try? file.data.hold() }
      findings += file.structureFindings()
    }
    for (index, shard) in manifest.state.shards.enumerated() {
      for metadata in shard.segments {
        let segment = Segment(
          metadata, identity: identity, shard: UInt32(index), directory: directory, cache: cache,
          valueFiles: files.files(metadata.valueReferences))
        segments.append(segment)
        if directory.heldRoom > 0 { try? segment.data.hold() }
        findings += segment.structureFindings()
        checkSequences(of: metadata, in: shard, manifest)
      }
    }
  }

  private mutating func checkSequences(
    of segment: SegmentMetadata, in shard: ShardState, _ manifest: Manifest
  ) {
    guard segment.minSequence > segment.maxSequence || segment.maxSequence > shard.flushedThrough
    else { return }
    note(
      .manifest, in: manifest.superblock.manifest.manifestName,
      "segment \(segment.number.rawValue) is said to hold commits"
        + " \(segment.minSequence.rawValue) to \(segment.maxSequence.rawValue), and its shard is"
        + " flushed through \(shard.flushedThrough.rawValue)")
  }

  // MARK: - Findings

  private mutating func note(
    _ kind: StorageFinding.Kind, in file: String, at offset: UInt64? = nil, _ message: String,
    isHarmless: Bool = false
  ) {
    findings.append(StorageFinding(kind, in: file, at: offset, message, isHarmless: isHarmless))
  }

  /// Records the result of an error from reading a file, unless such a database cannot be examined.
  private mutating func take(
    _ error: EngineError, _ kind: StorageFinding.Kind, in file: String
  ) throws(EngineError) {
    switch error {
    case .needsNewerVersion, .notADatabase: throw error
    default: findings.append(StorageFinding(error, kind, in: file))
    }
  }
}

extension Superblock {
  /// The problems with the slots of the file.
  static func findings(in file: any File) throws(EngineError) -> [StorageFinding] {
    let slots = try slots(in: file)
    let newest = slots.compactMap(\.superblock?.epoch).max()
    var findings: [StorageFinding] = []
    for (index, slot) in slots.enumerated() where slot.superblock == nil {
      // The second half is written with the first change of the superblock.
      if slot.isBlank, newest == 1, index.isMultiple(of: 2) { continue }
      findings.append(
        StorageFinding(
          .superblock, in: name, at: slotOffsets[index],
          "slot \(index) of \(slots.count) cannot be read", isHarmless: newest != nil))
    }
    return findings
  }
}

extension GroupKeysFile {
  /// The problems with the copies.
  static func findings(
    in file: any File, of identity: [UInt8], vouchedForBy masters: [any MasterKey]
  ) throws(EngineError) -> [StorageFinding] {
    let copies = try copies(in: file, of: identity, vouchedForBy: masters)
    let isOneSound = copies.contains { $0.file != nil }
    return zip(offsets, copies).compactMap { offset, copy in
      let reason: String
      switch copy {
      case .sound: return nil
      case .damaged(let text): reason = text
      case .unreadable(let error): reason = error.description
      }
      return StorageFinding(
        .superblock, in: name, at: offset,
        "one of the two copies of keys of collections cannot be used: \(reason)",
        isHarmless: isOneSound)
    }
  }
}

extension LogHeader {
  /// The problems with the copies of the header, of which at least one can be read.
  static func findings(
    in page: RawSpan, file: String
  ) throws(EngineError) -> [StorageFinding] {
    guard case .header = try read(page, file: file) else { return [] }
    var findings: [StorageFinding] = []
    for offset in copyOffsets {
      let length = page.byteCount
      let copy = page.extracting(min(length, offset)..<min(length, offset + copyLength))
      if case .header = try read(copy, file: file) { continue }
      findings.append(
        StorageFinding(
          .log, in: file, at: UInt64(offset),
          "one of the two copies of the log's header cannot be read", isHarmless: true))
    }
    return findings
  }
}
