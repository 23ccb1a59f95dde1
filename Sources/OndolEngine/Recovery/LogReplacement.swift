// The work that an unclean shutdown leaves once its rows are in memory. Data that was read is not
// trusted to be on the device, because after a failed sync the system's cache may hold bytes that
// the disk lacks. So the recovered commits are written into a new log that replaces all earlier
// ones. Then the manifest is rewritten with that log as its floor, and the superblock's switch puts
// both into effect at once. A crash in between leaves the old files unchanged, plus files that the
// manifest does not list.
//
// Readers do not wait for this. It is the maintenance thread's first job, so every other change of
// the files comes after it, including the creation of the log that the first commit needs.

/// Recovered commits that are to move to a log of their own.
struct LogReplacement: Sendable {
  /// All commits from the manifest's floor on.
  let commits: [RecoveredCommit]
  /// The sequence number of the last one.
  let sequence: SequenceNumber
  let time: Int64
  /// Where history ended in the logs that were read.
  let end: LogPosition
  /// The memtables with the commits' rows.
  let memtables: [Memtable]
  /// Logs that are not blank but could not be read at all. They are set aside, because another tool
  /// may be able to read them.
  let unread: [FileNumber]

  /// Writes the commits into a new, sealed log and makes it the only one.
  func write(
    to directory: any Directory, _ manifest: Manifest, _ environment: Environment
  ) throws(EngineError) -> RecoveredLog {
    let floor = manifest.state.floor
    let start = LogStart(
      number: manifest.allocate(), base: end, sequence: floor.sequence, time: floor.time)
    let header = LogHeader(
      number: start.number, identity: manifest.superblock.identity, salt: environment.random(),
      kind: .replacement, base: end, previous: .zero, previousLength: 0,
      firstSequence: start.sequence.next)
    do throws(EngineError) {
      let length = try write(
        header, to: try directory.create(start.number.logName),
        seal: directory.keyring?.seal(header))
      for log in unread { try setAside(log, in: directory) }
      try directory.sync()
      try manifest.startAfresh(
        floor: start,
        NamedLog(
          number: start.number, salt: header.salt,
          length: length - UInt64(FrameHeader.length)))
      return RecoveredLog(
        sequence: sequence, time: time, end: LogPosition(rawValue: end.rawValue + length),
        number: start.number, length: length, starts: [start])
    } catch {
      if error.isPassing { try? directory.remove(start.number.logName) }
      throw error
    }
  }

  /// Copies a log to a name that no open reads. An existing copy is left from an earlier attempt.
  private func setAside(
    _ log: FileNumber, in directory: any Directory
  ) throws(EngineError) {
    let name = log.logName + ".unread"
    let from = try directory.open(log.logName, access: .readOnly)
    if try directory.list().contains(name) { try directory.remove(name) }
    let to = try directory.create(name)
    do throws(EngineError) {
      var offset: UInt64 = 0
      while case let piece = try from.read(at: offset, count: 1 << 20), !piece.isEmpty {
        try to.write(piece.bytes, at: offset)
        offset += UInt64(piece.count)
      }
      try to.sync()
    } catch {
      if error.isPassing { try? directory.remove(name) }
      throw error
    }
  }

  /// Returns the log's length.
  private func write(
    _ header: LogHeader, to file: any File, seal: FileSeal?
  ) throws(EngineError) -> UInt64 {
    var writer = LogRewriter(file: file, salt: header.salt, seal: seal, bytes: header.encode())
    for commit in commits { try writer.append(commit) }
    try writer.seal(sequence, time: time)
    return writer.offset
  }
}

/// Writes recovered commits into one new log.
struct LogRewriter {
  private let file: any File
  private let salt: UInt64
  private let seal: FileSeal?
  private var bytes: [UInt8]
  private var written: UInt64 = 0

  init(file: any File, salt: UInt64, seal: FileSeal?, bytes: [UInt8]) {
    self.file = file
    self.salt = salt
    self.seal = seal
    self.bytes = bytes
    self.bytes.reserveCapacity(2 * Self.piece)
  }

  /// Bytes written at once.
  private static let piece = 1 << 20

  var offset: UInt64 { written + UInt64(bytes.count) }

  /// Adds a commit.
  ///
  /// - Throws: `.locked` if it would lose a part whose key is missing.
  mutating func append(_ commit: RecoveredCommit) throws(EngineError) {
    if let groups = seal?.groups, let group = commit.unopened.first(where: groups.mayOpenLater) {
      throw .locked(
        path: file.name,
        reason: "commit \(commit.sequence.rawValue) has a part of group \(group), whose key is not"
          + " here")
    }
    FrameBuilder.append(
      commit.bytes.bytes.extracting(commit.payload), checksum: commit.checksum,
      operations: commit.operations, isKeyed: commit.isKeyed,
      context(commit.sequence, commit.time), salt: salt, offset: offset, seal: seal, to: &bytes)
    if bytes.count >= Self.piece { try flush() }
  }

  mutating func seal(_ sequence: SequenceNumber, time: Int64) throws(EngineError) {
    bytes += FrameBuilder.buildSeal(
      context(sequence, time), salt: salt, offset: offset, seal: seal)
    try finish()
  }

  /// Syncs everything to the device.
  mutating func finish() throws(EngineError) {
    try flush()
    try file.sync()
  }

  private func context(_ sequence: SequenceNumber, _ time: Int64) -> FrameContext {
    FrameContext(sequence: sequence, time: time, syncedThrough: .zero)
  }

  private mutating func flush() throws(EngineError) {
    try file.write(bytes.bytes, at: written)
    written += UInt64(bytes.count)
    bytes.removeAll(keepingCapacity: true)
  }
}
