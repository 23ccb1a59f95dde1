// The contents of a backup: every file of a snapshot, in the order in which they must be written.
// The snapshot's view keeps its segments and value files, so these are copied unchanged after they
// were read completely and found valid. The rows that the view has in memory are written as one
// more run per shard, into memory, and then copied as well. Contents are copied together with their
// files, which are kept for the duration of the backup. The last files make the copy a database as
// of the snapshot. The superblock comes after all others, because nothing opens without it.
//
// Writers are not involved and do not wait.

/// A file of a backup.
struct BackupFile: Sendable {
  var name: String
  var sizeBytes: UInt64
  fileprivate var file: any File

  /// - Parameter sizeBytes: the length of the part of the file to copy; nil for all of it.
  fileprivate init(
    _ name: String, _ file: any File, sizeBytes: UInt64? = nil
  ) throws(EngineError) {
    self.name = name
    self.file = file
    self.sizeBytes = if let sizeBytes { sizeBytes } else { try file.size() }
  }

  /// Bytes read at once.
  private static let pieceBytes: UInt64 = 1 << 20

  /// Some bytes from `offset` on; empty at the end.
  func piece(at offset: UInt64) throws(EngineError) -> [UInt8] {
    let count = Int(min(Self.pieceBytes, sizeBytes - min(offset, sizeBytes)))
    let bytes = try file.read(at: offset, count: count)
    guard bytes.count == count else {
      throw .corrupt(file: name, offset: offset, reason: "the file has become shorter")
    }
    return bytes
  }
}

/// Returns the files of a snapshot one after the other. Blocks.
struct BackupReader: Sendable {
  private enum Item: Sendable {
    /// Finds the files of contents.
    case contents
    case contentFile(ContentFilePlace)
    case pack(FileNumber, salt: UInt64, sizeBytes: UInt64)
    case valueFile(ValueFile)
    case segment(Segment)
    /// A segment whose rows cannot be read.
    case locked(LockedSegment)
    case memtables(shard: Int)
    case foundation
    case made(BackupFile)
  }

  private let snapshot: Snapshot
  private let contents: Contents
  private let dropped: DroppedKeyspaces
  /// The snapshot's keyed groups.
  private let groups: GroupList
  private let withKeys: Bool
  private let environment: Environment
  private let options: EngineOptions
  private let identity: DatabaseIdentity
  private let keyring: Keyring?
  private let directory: any Directory
  /// The time of the snapshot's last commit, or a later one.
  private let time: Int64
  private let numbers: FileNumbers
  private var shards: [ShardState]
  /// In reverse order.
  private var items: [Item] = []
  /// The bytes of all files, as far as known.
  private(set) var totalBytes: UInt64 = 0

  init(
    _ snapshot: Snapshot, dropped: DroppedKeyspaces, groups: GroupList, withKeys: Bool,
    time: Int64, nextFile: FileNumber, _ storage: Storage, _ contents: Contents
  ) {
    self.snapshot = snapshot
    self.contents = contents
    self.dropped = dropped
    self.withKeys = withKeys
    self.groups = groups
    self.time = time
    environment = storage.environment
    options = storage.options
    identity = storage.identity
    keyring = storage.directory.keyring
    directory = storage.directory
    let view = snapshot.view
    shards = view.shards.map(\.state)
    // A read-only engine has files with greater numbers than it knows to be handed out.
    let named = shards.flatMap {
      $0.segments.map(\.number) + $0.locked.map(\.segment.number) + $0.valueFiles.keys
    }
    numbers = FileNumbers(next: nextFile)
    if let greatest = named.max() { numbers.reserve(through: greatest) }
    // With the initial numbers of a new database, a copy without a superblock would look like a new
    // one.
    numbers.reserve(through: .firstLog)

    var items: [Item] = []
    for (index, shard) in view.shards.enumerated() {
      let segments = shard.runs.flatMap(\.segments)
      var seen: Set<FileNumber> = []
      for file in segments.flatMap(\.valueFiles) where seen.insert(file.number).inserted {
        items.append(.valueFile(file))
        totalBytes += file.metadata.sizeBytes
      }
      for segment in segments {
        items.append(.segment(segment))
        totalBytes += segment.metadata.sizeBytes
      }
      for locked in shard.state.locked {
        items.append(.locked(locked))
        totalBytes += locked.segment.sizeBytes
      }
      items.append(.memtables(shard: index))
    }
    self.items = ([.contents] + items + [.foundation]).reversed()
  }

  /// The next file, after verification; nil if there are no more.
  ///
  /// - Throws: `.corrupt` if it is damaged.
  mutating func nextFile() throws(EngineError) -> BackupFile? {
    while let item = items.popLast() {
      switch item {
      case .contents:
        try findContents()
      case .contentFile(let place):
        return try BackupFile(
          place.file.contentFileName, try contents.files.contentFile(place).file)
      case .pack(let number, let salt, let sizeBytes):
        return try BackupFile(
          number.packName, try contents.files.pack(number, salt: salt).file,
          sizeBytes: sizeBytes)
      case .valueFile(let file):
        if let group = file.metadata.group, keyring?.groups.hasKey(of: group) == false {
          return try lockedFile(file.number.valueFileName, .values(file.number))
        }
        try refuseDamage(file.findings())
        return try BackupFile(file.number.valueFileName, try file.open())
      case .segment(let segment):
        try refuseDamage(segment.findings())
        return try BackupFile(segment.metadata.number.segmentName, try segment.open().file)
      case .locked(let locked):
        let number = locked.segment.number
        return try lockedFile(number.segmentName, .segment(number))
      case .memtables(let shard):
        push(try writeMemtables(of: shard))
      case .foundation:
        push(try writeFoundation())
      case .made(let file):
        return file
      }
    }
    return nil
  }

  private func refuseDamage(_ findings: [StorageFinding]) throws(EngineError) {
    guard let first = findings.first(where: { !$0.isHarmless }) else { return }
    throw .corrupt(file: first.file, offset: first.offset ?? 0, reason: first.message)
  }

  /// A file without an available key. Its checksums tell whether it is valid.
  private func lockedFile(
    _ name: String, _ part: UnopenedFile.Part
  ) throws(EngineError) -> BackupFile {
    try refuseDamage(LockedFile(name, part, identity).findings(in: directory))
    return try BackupFile(name, try directory.open(name, access: .readOnly))
  }

  private mutating func push(_ files: [BackupFile]) {
    totalBytes += files.reduce(0) { $0 + $1.sizeBytes }
    items += files.reversed().map { .made($0) }
  }

  // MARK: - Contents

  /// Adds the files of the contents in the snapshot, after each was read and found valid.
  private mutating func findContents() throws(EngineError) {
    var packs: [FileNumber: (salt: UInt64, end: UInt64)] = [:]
    var found: [Item] = []
    try snapshot.forEachLocation { (location) throws(EngineError) in
      try contents.check(location)
      switch location {
      case .inline, .parts, .away: break
      case .file(let place):
        found.append(.contentFile(place))
        totalBytes += place.storedLength
        numbers.reserve(through: place.file)
      case .pack(let place):
        let end = place.offset + PackFormat.aligned(UInt64(place.entryLength))
        packs[place.pack] = (place.salt, max(end, packs[place.pack]?.end ?? 0))
        numbers.reserve(through: place.pack)
      }
    }
    for (number, pack) in packs.sorted(by: { $0.key < $1.key }) {
      // The padding after the last entry need not exist.
      let size = try contents.files.pack(number, salt: pack.salt).file.size()
      found.append(.pack(number, salt: pack.salt, sizeBytes: min(size, pack.end)))
      totalBytes += min(size, pack.end)
    }
    items += found.reversed()
  }

  // MARK: - Generated files

  /// Files in memory, until they are copied.
  private func makeScratch() throws(EngineError) -> any Directory {
    KeyedDirectory(
      try MemoryFileSystem().openDirectory(at: "backup", create: true), keyring)
  }

  /// Writes the shard's rows that are not in a file yet.
  private mutating func writeMemtables(of index: Int) throws(EngineError) -> [BackupFile] {
    let shard = snapshot.view.shards[index]
    let memtables = ([shard.active] + shard.sealed).filter { !$0.isEmpty }
    shards[index].flushedThrough = snapshot.sequence
    guard !memtables.isEmpty, shard.flushedThrough < snapshot.sequence else { return [] }
    let scratch = try makeScratch()
    let files = SegmentFiles(
      directory: scratch, numbers: numbers, identity: identity, options: options,
      random: environment.random, emptied: [:])
    let writer = RunWriter(
      files, shard: index, sequences: shard.flushedThrough.next...snapshot.sequence,
      keepsTombstones: !shard.runs.isEmpty, dropped: dropped)
    var rows = MergeCursor(
      memtables.map { .memtable(MemtableCursor($0, upTo: snapshot.sequence)) })
    try rows.seekToFirst()
    try writer.takeAll(&rows)
    let output = writer.output
    do throws(MalformedBytes) {
      for file in output.valueFiles { shards[index].add(file) }
      let run = output.segments.first?.number.rawValue ?? 0
      for segment in output.segments { try shards[index].add(segment, level: 0, run: run) }
    } catch {
      throw .invalid(reason: error.reason)
    }
    return try files.directory.backupFiles(writer.made)
  }

  private func writeFoundation() throws(EngineError) -> [BackupFile] {
    let scratch = try makeScratch()
    let foundation = DatabaseFoundation(
      identity: identity, sequence: snapshot.sequence, time: time, numbers: numbers)
    var groups = groups
    // A copy without keys accepts any keys file that is added to it.
    if !withKeys { groups.generation = 0 }
    try foundation.write(shards, dropped, groups, to: scratch, environment: environment)
    if withKeys, let keys = keyring?.groups {
      let live = keys.list.live
      try keys.copy(for: groups.live.filter(live.contains))?
        .write(to: try scratch.create(GroupKeysFile.name))
    }
    let names = try scratch.list().filter { $0 != Superblock.name }
    return try scratch.backupFiles(names.sorted() + [Superblock.name])
  }
}

extension Directory {
  fileprivate func backupFiles(_ names: [String]) throws(EngineError) -> [BackupFile] {
    var files: [BackupFile] = []
    for name in names { files.append(try BackupFile(name, try open(name, access: .readOnly))) }
    return files
  }
}
