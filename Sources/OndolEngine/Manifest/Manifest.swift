// The manifest on disk: a file of edits, each in a frame that carries the checksum of the preceding
// chain. An edit is in effect once it is complete and synced, and its writer waits for that before
// it acts on it. When the file has grown well beyond the size of the state, the state is written
// into the next manifest, and the superblock is changed to point to it. That happens only after the
// new manifest was read back and found identical, because the old one is removed.
//
// All methods block, and only one thread at a time calls them: recovery, and later the maintenance
// thread. Only file numbers are handed out to other threads as well.

/// The open manifest.
final class Manifest: @unchecked Sendable {
  // Safe: recovery passes it to the maintenance thread, and no other thread accesses it.

  private(set) var state: ManifestState
  /// Hands out file numbers to any thread.
  let numbers: FileNumbers
  private(set) var superblock: Superblock
  private let directory: any Directory
  private let environment: Environment
  private let rotationSize: Int
  private let limits: ManifestLimits
  private var place: ManifestPlace
  /// The file while it is being written. An idle database has no file descriptor for it.
  private var file: (any File)?
  /// The end of the last edit.
  var offset: UInt64 { place.offset }
  /// The length at which the next file is begun.
  private var rotationLimit: UInt64 = 0
  /// Whether the file ended in an incomplete edit because of a power cut during a write.
  let hasTornTail: Bool
  /// The last commit that the open found in the logs, even if it was copied to another log.
  private var recoveredThrough: SequenceNumber
  /// Whether the data that the open read and continues from is known to be on the device.
  private var isFoundationSafe = false
  /// Whether the last log is known to be on the device, because recovery has just written and
  /// synced it.
  private var isLogSafe = false
  /// The files that must be rewritten for that, opened in advance.
  private var foundation: (slots: any File, log: (any File)?)?
  /// The error that every call reports after one has failed.
  private var failure: EngineError?

  private init(
    _ state: ManifestState, _ place: ManifestPlace, recoveredThrough: SequenceNumber,
    hasTornTail: Bool, superblock: Superblock, directory: any Directory, environment: Environment,
    rotationSize: Int, limits: ManifestLimits
  ) {
    self.state = state
    self.place = place
    self.recoveredThrough = recoveredThrough
    self.hasTornTail = hasTornTail
    numbers = FileNumbers(next: state.nextFile)
    self.superblock = superblock
    self.directory = directory
    self.environment = environment
    self.rotationSize = rotationSize
    self.limits = limits
    setRotationLimit()
  }

  // MARK: - Making and loading

  /// Writes the first manifest of a database and reads it back. The caller writes the superblock.
  static func create(
    _ state: ManifestState, superblock: Superblock, directory: any Directory,
    environment: Environment, rotationSize: Int, limits: ManifestLimits = ManifestLimits()
  ) throws(EngineError) -> Manifest {
    var snapshot = try ManifestSnapshot(
      of: state, superblock, salt: environment.random(), limits, directory.keyring)
    let place = try snapshot.write(to: directory, time: environment.now(), ahead: rotationSize)
    try snapshot.readBack(from: directory)
    return Manifest(
      state, place, recoveredThrough: state.floor.sequence, hasTornTail: false,
      superblock: superblock, directory: directory, environment: environment,
      rotationSize: rotationSize, limits: limits)
  }

  /// Reads the manifest that the superblock points to.
  static func load(
    _ superblock: Superblock, directory: any Directory, environment: Environment,
    rotationSize: Int, limits: ManifestLimits = ManifestLimits(), access: FileAccess = .readWrite
  ) throws(EngineError) -> Manifest {
    let file = try directory.open(superblock.manifest.manifestName, access: access)
    let read = try ReadManifest.read(superblock, file, limit: limits.file, directory.keyring)
    return Manifest(
      read.state, ManifestPlace(read, directory.keyring),
      recoveredThrough: SequenceNumber(rawValue: .max), hasTornTail: read.hasTornTail,
      superblock: superblock, directory: directory, environment: environment,
      rotationSize: rotationSize, limits: limits)
  }

  /// Records the last commit in the logs. Until then no drop of a keyspace is forgotten.
  func noteRecovered(through sequence: SequenceNumber) { recoveredThrough = sequence }

  // MARK: - Editing

  /// Makes one edit and waits until it is durable. It moves to a new file if this one has grown
  /// large or cannot hold the edit.
  ///
  /// A lack of space, or an edit that is too large for any manifest, is detected before anything is
  /// written, and nothing has changed then. After a failed write or sync the state of the file is
  /// unknown, and every later call fails.
  ///
  /// - Parameter mayUseHeadroom: the edit is small and may use the last reserved space.
  func commit(
    _ changes: [ManifestChange], mayUseHeadroom: Bool = false
  ) throws(EngineError) {
    if let failure { throw failure }
    defer { file = nil }
    let nextFile = numbers.next
    guard nextFile.isPossible else { throw .invalid(reason: "file numbers are used up") }
    var changes = [.nextFile(nextFile)] + changes
    var next = state
    do throws(MalformedBytes) {
      for change in changes { try next.apply(change) }
      let drops = next.dropsOfUnreferencedValueFiles
      for drop in drops { try next.apply(drop) }
      changes += drops
    } catch {
      preconditionFailure("an edit of our own making cannot be refused: \(error.reason)")
    }
    try secureFoundation()
    var payload: [UInt8] = []
    payload.appendLittleEndian(place.chain)
    for change in changes { change.encode(into: &payload) }
    guard canAppend(payload.count) else {
      payload = []
      return try rotate(to: next)
    }
    try append(payload, mayUseHeadroom: mayUseHeadroom)
    // Released before the next manifest is built, because keys in it may be long.
    payload = []
    state = next
    try rotateWhenGrown()
  }

  /// Whether the file has room for an edit with this many bytes of payload.
  private func canAppend(_ payload: Int) -> Bool {
    let isSealed = place.seal != nil
    let length = FrameBuilder.length(
      ofPayload: payload, limit: limits.frame, isSealed: isSealed)
    return
      (payload <= FrameBuilder.pieceLength(limits.frame, isSealed: isSealed)
      || place.header.version == .editsInParts)
      && offset + UInt64(length) <= UInt64(limits.file)
  }

  private func append(
    _ payload: [UInt8], mayUseHeadroom: Bool
  ) throws(EngineError) {
    let length = FrameBuilder.length(
      ofPayload: payload.count, limit: limits.frame, isSealed: place.seal != nil)
    let file = try openFile()
    if !mayUseHeadroom || offset + UInt64(length) > place.reserved {
      try place.makeRoom(for: length, ahead: rotationSize, in: file)
    }
    let time = environment.now()
    try final { () throws(EngineError) in
      try place.write(payload, to: file, time: time, limit: limits.frame)
      try file.sync()
    }
    place.note(payload, frames: length)
  }

  /// Performs work whose failure leaves the state unknown.
  private func final(_ work: () throws(EngineError) -> Void) throws(EngineError) {
    do throws(EngineError) {
      try work()
    } catch {
      throw stop(after: error)
    }
  }

  /// Makes every later call fail.
  private func stop(after error: EngineError) -> EngineError {
    let poisoned = EngineError.poisoned(reason: error.description)
    failure = poisoned
    return poisoned
  }

  /// Reserves disk space for a small edit that must not fail, and keeps the file open for it.
  func makeRoom() throws(EngineError) {
    try place.makeRoom(for: 0, ahead: rotationSize, in: try openFile())
  }

  /// The file, which stays open until an edit is made.
  private func openFile() throws(EngineError) -> any File {
    if let file { return file }
    let opened = try directory.open(superblock.manifest.manifestName, access: .readWrite)
    file = opened
    return opened
  }

  /// Begins the next file if this one has grown large. As long as that is impossible, edits
  /// continue in this one.
  private func rotateWhenGrown() throws(EngineError) {
    guard offset > rotationLimit else { return }
    do throws(EngineError) {
      try rotate(to: state)
    } catch {
      guard failure == nil else { throw error }
      rotationLimit = offset + UInt64(rotationSize)
    }
  }

  private func setRotationLimit() {
    rotationLimit = UInt64(min(max(rotationSize, 4 * place.snapshotLength), limits.file))
  }

  /// Writes the state into a new manifest and points the superblock to it. Recovery also does this
  /// after a crash, because bytes that were read may be in the system's cache and not on the
  /// device. A failure before the superblock is written leaves everything unchanged.
  private func rotate(to next: ManifestState) throws(EngineError) {
    try secureFoundation()
    let slots = try directory.open(Superblock.name, access: .readWrite)
    try Superblock.makeRoom(in: slots)
    let (old, number) = (superblock, numbers.allocate())
    var new = superblock
    new.manifest = number
    new.epoch += 1
    new.written = environment.now()
    new.prove(with: directory.keyring)
    var next = next.forgettingDrops(recoveredThrough: recoveredThrough)
    next.nextFile = numbers.next
    var snapshot = try ManifestSnapshot(
      of: next, new, salt: environment.random(), limits, directory.keyring)
    do throws(EngineError) {
      let written = try snapshot.write(to: directory, time: new.written, ahead: rotationSize)
      try directory.sync()
      try snapshot.readBack(from: directory)
      (place, superblock, state) = (written, new, next)
      file = nil
    } catch {
      // A manifest that cannot be read back stays in place.
      guard error.isPassing else { throw stop(after: error) }
      try? directory.remove(number.manifestName)
      throw error
    }
    setRotationLimit()
    try final { () throws(EngineError) in try superblock.write(to: slots) }
    // The next open removes it if this fails.
    try? directory.remove(old.manifest.manifestName)
  }

  /// Writes the keys of `keyring` into every slot of the superblock. `use` is called when no
  /// further failure is possible for now.
  func write(_ keyring: Keyring, _ use: (Keyring) -> Void) throws(EngineError) {
    if let failure { throw failure }
    try secureFoundation()
    let slots = try directory.open(Superblock.name, access: .readWrite)
    try Superblock.makeRoom(in: slots)
    use(keyring)
    // Each write leaves half of the slots unchanged.
    for _ in 0..<2 {
      superblock.epoch += 1
      superblock.written = environment.now()
      superblock.prove(with: keyring)
      try final { () throws(EngineError) in try superblock.write(to: slots) }
    }
  }

  /// Begins the next file if this one has a number before `border`.
  func leave(before border: FileNumber) throws(EngineError) {
    if let failure { throw failure }
    if superblock.manifest < border { try rotate(to: state) }
  }

  /// Begins the next file.
  func beginAnew() throws(EngineError) {
    if let failure { throw failure }
    try rotate(to: state)
  }

  /// Runs before the first change after an open, and before anything is removed. It writes the
  /// superblock, the manifest and the last log once more as they were read, and syncs them and
  /// their names. A killed process may have written them without a sync. A process whose sync
  /// failed has left bytes that the system shows but no later sync saves. Otherwise new commits
  /// could outlive what they depend on, and files that are still needed could be removed.
  func secureFoundation() throws(EngineError) {
    if isFoundationSafe { return }
    try openFoundation()
    guard let (slots, log) = foundation else { return }
    try directory.sync()
    try superblock.write(to: slots)
    try rewrite(try openFile())
    if !isLogSafe, let log { try rewrite(log) }
    isFoundationSafe = true
    foundation = nil
  }

  /// Opens the files that `secureFoundation()` writes. It runs before a log is handed out that is
  /// secured later, because a lack of file descriptors could no longer be reported then.
  func openFoundation() throws(EngineError) {
    if isFoundationSafe || foundation != nil { return }
    foundation = (
      slots: try directory.open(Superblock.name, access: .readWrite),
      log: isLogSafe ? nil : try directory.open(state.newestLog.logName, access: .readWrite)
    )
  }

  /// Rewrites a file with its own bytes.
  private func rewrite(_ file: any File) throws(EngineError) {
    let bytes = try file.read(at: 0, count: Int(clamping: try file.size()))
    try file.write(bytes.bytes, at: 0)
    try file.sync()
  }

  /// Makes `floor` the first and only log, in a new file. It contains everything recovered and is
  /// on the device. A temporary failure leaves everything unchanged.
  func startAfresh(floor: LogStart, _ log: NamedLog) throws(EngineError) {
    var next = state
    next.floor = floor
    next.newestLog = floor.number
    next.namedLogs = [log.number: log]
    let wasLogSafe = isLogSafe
    isLogSafe = true
    do throws(EngineError) {
      try rotate(to: next)
    } catch {
      isLogSafe = wasLogSafe
      throw error
    }
  }

  /// Removes this database's files that the manifest does not list: remains of flushes, merges,
  /// rotations and reads.
  func removeUnnamed(_ names: [String]) throws(EngineError) {
    let current = superblock.manifest
    for name in names {
      let isDead =
        if let log = FileNumber.parse(name, prefix: "LOG-") {
          !state.references(log: log) || log > state.newestLog
        } else if let manifest = FileNumber.parse(name, prefix: "MANIFEST-") {
          manifest != current
        } else if let segment = FileNumber.parse(name, suffix: ".seg") {
          !state.references(segment: segment)
        } else if let values = FileNumber.parse(name, suffix: ".val") {
          !state.references(valueFile: values)
        } else {
          // What a crash left of the reserve, which the first commit creates again, and of a read.
          name == SpaceReserve.name || FileNumber.parse(name, suffix: ".scratch") != nil
        }
      guard isDead else { continue }
      // The record of that must not be lost once the file is gone.
      try secureFoundation()
      try directory.remove(name)
    }
  }

  /// Hands out a file number.
  func allocate() -> FileNumber { numbers.allocate() }

  /// Skips the numbers that files in the directory already have.
  func reserve(through number: FileNumber) { numbers.reserve(through: number) }
}
