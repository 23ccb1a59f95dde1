// The manifest on disk: a file of edits, each a frame that carries the checksum of the chain before
// it. An edit counts when it is whole and synced; its writer waits for that before it acts on it.
// When the file has grown well past what the state needs, the state is written anew into the next
// manifest, and the superblock points there.
//
// All methods block, and only one thread at a time calls them: recovery, and after it the
// maintenance thread. Only file numbers are given out to others too.

/// The open manifest.
final class Manifest: @unchecked Sendable {
  // Safe: recovery hands it to the maintenance thread, and nobody else touches it.

  static let headerLength = 64
  private static let magic: UInt64 = 0x0A1A_0A0D_4E4D_4C89  // 89 'LMN' 0D 0A 1A 0A
  private static let version: UInt32 = 1

  private(set) var state: ManifestState
  /// Gives out file numbers, to any thread.
  let numbers: FileNumbers
  private(set) var superblock: Superblock
  private let directory: any Directory
  private let environment: Environment
  private let rotationSize: Int
  /// The file and how far it is written.
  private struct Place {
    var file: any File
    var salt: UInt64
    /// Where the last edit ends.
    var offset: UInt64
    var ordinal: UInt64 = 0
    var chain: UInt64 = 0
    /// Bytes of the first edit.
    var snapshotLength = 0
    /// Bytes from the start for which the disk has given room.
    var reserved: UInt64 = 0
  }

  private var place: Place
  /// Where the last edit ends.
  var offset: UInt64 { place.offset }
  /// The length from which the next file is begun.
  private var rotationLimit: UInt64 = 0
  /// The file ended in something that is no edit: the power went while one was written.
  let hasTornTail: Bool
  /// Whether what opening read, and goes on from, is known to be on the device.
  private var isFoundationSafe = false
  /// Whether the last log is known to be: recovery has just written and synced it.
  private var isLogSafe = false
  /// What is written to make it so, opened ahead.
  private var foundation: (slots: any File, log: (any File)?)?
  /// What every call gets once one has failed.
  private var failure: EngineError?

  private init(
    _ loaded: Loaded, superblock: Superblock, directory: any Directory, file: any File,
    environment: Environment, rotationSize: Int
  ) {
    state = loaded.state
    numbers = FileNumbers(next: loaded.state.nextFile)
    place = Place(
      file: file, salt: loaded.salt, offset: loaded.offset, ordinal: loaded.ordinal,
      chain: loaded.chain, snapshotLength: loaded.snapshotLength)
    hasTornTail = loaded.hasTornTail
    self.superblock = superblock
    self.directory = directory
    self.environment = environment
    self.rotationSize = rotationSize
    setRotationLimit()
  }

  private struct Loaded {
    var state: ManifestState
    var salt: UInt64
    var offset: UInt64
    var ordinal: UInt64 = 0
    var chain: UInt64 = 0
    var snapshotLength = 0
    var hasTornTail = false

    init(state: ManifestState, salt: UInt64, offset: UInt64) {
      self.state = state
      self.salt = salt
      self.offset = offset
    }

    /// Before the first edit.
    init(nothingOf superblock: Superblock, salt: UInt64) {
      let nothing = LogStart(number: .zero, base: .zero, sequence: .zero, time: 0)
      let shards = Array(repeating: ShardState(), count: Int(superblock.shardCount))
      let state = ManifestState(
        nextFile: .zero, floor: nothing, newestLog: .zero, shards: shards)
      self.init(state: state, salt: salt, offset: 0)
    }
  }

  // MARK: - Making and loading

  /// Writes the first manifest of a database; the caller writes the superblock.
  static func create(
    _ state: ManifestState, superblock: Superblock, directory: any Directory,
    environment: Environment, rotationSize: Int
  ) throws(EngineError) -> Manifest {
    let salt = environment.random()
    let file = try directory.create(superblock.manifest.manifestName)
    let manifest = Manifest(
      Loaded(state: state, salt: salt, offset: UInt64(headerLength)), superblock: superblock,
      directory: directory, file: file, environment: environment, rotationSize: rotationSize)
    try manifest.writeSnapshot()
    return manifest
  }

  /// Reads the manifest that the superblock names.
  static func load(
    _ superblock: Superblock, directory: any Directory, environment: Environment,
    rotationSize: Int, access: FileAccess = .readWrite
  ) throws(EngineError) -> Manifest {
    let name = superblock.manifest.manifestName
    let file = try directory.open(name, access: access)
    guard let size = Int(exactly: try file.size()), size <= 1 << 30 else {
      throw .corrupt(file: name, offset: 0, reason: "it is too long for a manifest")
    }
    let bytes = try file.read(at: 0, count: size)
    let salt = try readHeader(bytes.bytes, superblock, name)
    let loaded = try replay(FrameReader(bytes, salt: salt, from: headerLength), superblock, name)
    return Manifest(
      loaded, superblock: superblock, directory: directory, file: file, environment: environment,
      rotationSize: rotationSize)
  }

  /// What a manifest says before the first edit in it that cannot be read; nil when that is the
  /// first of all. It was true once: files may have come and gone since.
  static func readableState(
    _ superblock: Superblock, directory: any Directory
  ) -> ManifestState? {
    let name = superblock.manifest.manifestName
    guard let file = try? directory.open(name, access: .readOnly),
      let size = (try? file.size()).flatMap(Int.init(exactly:)), size <= 1 << 30,
      let bytes = try? file.read(at: 0, count: size),
      let salt = try? readHeader(bytes.bytes, superblock, name)
    else { return nil }
    var frames = FrameReader(bytes, salt: salt, from: headerLength)
    var loaded = Loaded(nothingOf: superblock, salt: salt)
    while let frame = frames.next() {
      var next = loaded
      guard (try? apply(frame, frames.bytes.bytes.extracting(frame.payload), to: &next)) != nil
      else { break }
      loaded = next
    }
    return loaded.ordinal > 0 ? loaded.state : nil
  }

  /// An edit as it stands in the file.
  struct Edit {
    var offset: UInt64
    var ordinal: UInt64
    var time: Int64
    var changes: [ManifestChange]
  }

  /// The edits that can be read, up to the first that cannot.
  static func frames(
    _ superblock: Superblock, directory: any Directory
  ) throws(EngineError) -> [Edit] {
    let name = superblock.manifest.manifestName
    let file = try directory.open(name, access: .readOnly)
    let bytes = try file.read(at: 0, count: Int(clamping: min(try file.size(), 1 << 30)))
    let salt = try readHeader(bytes.bytes, superblock, name)
    var frames = FrameReader(bytes, salt: salt, from: headerLength)
    var edits: [Edit] = []
    while let frame = frames.next() {
      let payload = bytes.bytes.extracting(frame.payload)
      guard payload.byteCount >= 8,
        let changes = try? ManifestChange.decodeAll(payload.extracting(droppingFirst: 8))
      else { break }
      edits.append(
        Edit(
          offset: UInt64(frame.offset), ordinal: frame.header.sequence.rawValue,
          time: frame.header.time, changes: changes))
    }
    return edits
  }

  private static func replay(
    _ frames: consuming FrameReader, _ superblock: Superblock, _ name: String
  ) throws(EngineError) -> Loaded {
    var frames = frames
    var loaded = Loaded(nothingOf: superblock, salt: frames.salt)
    while let frame = frames.next() {
      do throws(MalformedBytes) {
        try apply(frame, frames.bytes.bytes.extracting(frame.payload), to: &loaded)
      } catch {
        throw .corrupt(
          file: name, offset: UInt64(frame.offset + error.offset), reason: error.reason)
      }
      if loaded.ordinal == 1 { loaded.snapshotLength = frame.header.frameLength }
    }
    loaded.offset = UInt64(frames.offset)
    guard loaded.ordinal > 0 else {
      throw .corrupt(file: name, offset: loaded.offset, reason: "its first edit cannot be read")
    }
    if let claim = frames.furthestClaim(), claim.rawValue > loaded.offset {
      throw .corrupt(file: name, offset: loaded.offset, reason: "a synced edit is damaged")
    }
    loaded.hasTornTail = !frames.isBlankFromHere()
    return loaded
  }

  private static func apply(
    _ frame: FrameReader.Frame, _ payload: RawSpan, to loaded: inout Loaded
  ) throws(MalformedBytes) {
    guard frame.header.kind == .edit, frame.header.sequence.rawValue == loaded.ordinal + 1 else {
      throw MalformedBytes(at: 0, "it is not the edit that should follow")
    }
    var reader = ByteReader(payload)
    guard try reader.littleEndian(UInt64.self) == loaded.chain else {
      throw MalformedBytes(at: 0, "the edit does not continue the one before")
    }
    for change in try ManifestChange.decodeAll(payload.extracting(droppingFirst: 8)) {
      try loaded.state.apply(change)
    }
    loaded.ordinal += 1
    loaded.chain = seededChecksum(loaded.chain, payload)
  }

  private static func readHeader(
    _ bytes: RawSpan, _ superblock: Superblock, _ name: String
  ) throws(EngineError) -> UInt64 {
    guard bytes.byteCount >= headerLength else {
      throw .corrupt(file: name, offset: 0, reason: "it ends within its header")
    }
    var reader = ByteReader(bytes)
    let foundVersionIsKnown: Bool
    let salt: UInt64
    do throws(MalformedBytes) {
      guard try reader.littleEndian(UInt64.self) == magic else {
        throw MalformedBytes(at: 0, "it does not begin as a manifest does")
      }
      let foundVersion: UInt32 = try reader.littleEndian()
      _ = try reader.littleEndian(UInt32.self)
      let number: UInt64 = try reader.littleEndian()
      let identity = DatabaseIdentity(
        low: try reader.littleEndian(), high: try reader.littleEndian())
      salt = try reader.littleEndian()
      _ = try reader.littleEndian(UInt64.self)
      let checksum: UInt64 = try reader.littleEndian()
      guard checksum == seededChecksum(magic, bytes.extracting(first: headerLength - 8)) else {
        throw MalformedBytes(at: headerLength - 8, "its header's checksum is wrong")
      }
      foundVersionIsKnown = foundVersion == version
      guard number == superblock.manifest.rawValue, identity == superblock.identity else {
        throw MalformedBytes(at: 16, "it belongs to another database")
      }
    } catch {
      throw .corrupt(file: name, offset: UInt64(error.offset), reason: error.reason)
    }
    guard foundVersionIsKnown else {
      throw .needsNewerVersion(file: name, reason: "the manifest's version is unknown")
    }
    return salt
  }

  // MARK: - Editing

  /// Appends one edit, waits until it is durable, and moves to a new file when this one has grown.
  ///
  /// A lack of space shows before anything is written, and nothing has happened then. After a
  /// failure to write or to sync nobody knows what the file holds, and every later call is refused.
  ///
  /// - Parameter mayUseHeadroom: the edit is small, and the last room will do for it.
  func commit(
    _ changes: [ManifestChange], mayUseHeadroom: Bool = false
  ) throws(EngineError) {
    if let failure { throw failure }
    var changes = [.nextFile(numbers.next)] + changes
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
    try append(changes, mayUseHeadroom: mayUseHeadroom)
    state = next
    try rotateWhenGrown()
  }

  private func append(
    _ changes: [ManifestChange], mayUseHeadroom: Bool = false
  ) throws(EngineError) {
    var payload: [UInt8] = []
    payload.appendLittleEndian(place.chain)
    for change in changes { change.encode(into: &payload) }
    let frame = FrameBuilder.buildEdit(
      payload, ordinal: place.ordinal + 1, time: environment.now(), syncedThrough: offset,
      salt: place.salt, offset: offset)
    if !mayUseHeadroom || offset + UInt64(frame.count) > place.reserved {
      try makeRoom(for: frame.count)
    }
    try final { () throws(EngineError) in
      try place.file.write(frame.bytes, at: offset)
      try place.file.sync()
    }
    place.offset += UInt64(frame.count)
    place.ordinal += 1
    place.chain = seededChecksum(place.chain, payload.bytes)
  }

  /// Does what leaves everybody in doubt when it fails.
  private func final(_ work: () throws(EngineError) -> Void) throws(EngineError) {
    do throws(EngineError) {
      try work()
    } catch {
      let poisoned = EngineError.poisoned(reason: error.description)
      failure = poisoned
      throw poisoned
    }
  }

  /// Room kept behind every edit for a small one that must not fail.
  private static let headroom: UInt64 = 512

  /// Has the disk set room aside for an edit of so many bytes and a small one after it.
  func makeRoom(for count: Int = 0) throws(EngineError) {
    let end = offset + UInt64(count) + Self.headroom
    if end <= place.reserved { return }
    let wanted = end + UInt64(rotationSize)
    do throws(EngineError) {
      place.reserved = try place.file.reserve(0..<wanted) ? wanted : .max
    } catch {
      guard error.isLackOfSpace else { throw error }
      place.reserved = try place.file.reserve(0..<end) ? end : .max
    }
  }

  /// Begins the next file when this one has grown. While the disk has no space for that, edits go
  /// on in this one.
  private func rotateWhenGrown() throws(EngineError) {
    guard offset > rotationLimit else { return }
    do throws(EngineError) {
      try rotate()
    } catch {
      guard error.isPassing else { throw error }
      rotationLimit = offset + UInt64(rotationSize)
    }
  }

  private func setRotationLimit() {
    rotationLimit = UInt64(max(rotationSize, 4 * place.snapshotLength))
  }

  /// Writes the state into a new manifest and points the superblock there. Also what recovery does
  /// after a crash, because bytes that were read may be in the system's cache and not on the
  /// device. A failure that may pass leaves everything as it was.
  private func rotate() throws(EngineError) {
    try secureFoundation()
    let slots = try directory.open(Superblock.name, access: .readWrite)
    try Superblock.makeRoom(in: slots)
    let (oldPlace, old) = (place, superblock)
    let number = numbers.allocate()
    do throws(EngineError) {
      place = Place(
        file: try directory.create(number.manifestName), salt: environment.random(), offset: 0)
      superblock.manifest = number
      superblock.epoch += 1
      superblock.written = environment.now()
      try writeSnapshot()
      try directory.sync()
    } catch {
      guard error.isPassing else { throw error }
      (place, superblock) = (oldPlace, old)
      try? directory.remove(number.manifestName)
      throw error
    }
    try final { () throws(EngineError) in try superblock.write(to: slots) }
    // One that stays is removed by the next opening.
    try? directory.remove(old.manifest.manifestName)
  }

  /// Before the first change after opening, and before anything is removed: writes the superblock,
  /// the manifest and the last log once more, as they were read, and syncs them and their names. A
  /// process that was killed may have written them without having them synced, and one whose sync
  /// failed has left bytes that the system shows and no later sync saves. Otherwise new commits
  /// could outlive what they stand on, and files go that are needed yet.
  func secureFoundation() throws(EngineError) {
    if isFoundationSafe { return }
    try openFoundation()
    guard let (slots, log) = foundation else { return }
    try directory.sync()
    try superblock.write(to: slots)
    try rewrite(place.file)
    if !isLogSafe, let log { try rewrite(log) }
    isFoundationSafe = true
    foundation = nil
  }

  /// Opens the files that `secureFoundation()` writes: before a log is handed out for which it is
  /// done later, when a lack of descriptors could not be told to anybody any more.
  func openFoundation() throws(EngineError) {
    if isFoundationSafe || foundation != nil { return }
    foundation = (
      slots: try directory.open(Superblock.name, access: .readWrite),
      log: isLogSafe ? nil : try directory.open(state.newestLog.logName, access: .readWrite)
    )
  }

  /// Writes a file's bytes over themselves.
  private func rewrite(_ file: any File) throws(EngineError) {
    let bytes = try file.read(at: 0, count: Int(clamping: try file.size()))
    try file.write(bytes.bytes, at: 0)
    try file.sync()
  }

  /// Makes `floor`, a log that holds everything recovered and is on the device, the first and only
  /// one, in a new file. A failure that may pass leaves everything as it was.
  func startAfresh(floor: LogStart, _ log: NamedLog) throws(EngineError) {
    let (oldState, wasLogSafe) = (state, isLogSafe)
    state.floor = floor
    state.newestLog = floor.number
    state.namedLogs = [log.number: log]
    isLogSafe = true
    do throws(EngineError) {
      try rotate()
    } catch {
      (state, isLogSafe) = (oldState, wasLogSafe)
      throw error
    }
  }

  private func writeSnapshot() throws(EngineError) {
    var header: [UInt8] = []
    header.appendLittleEndian(Self.magic)
    header.appendLittleEndian(Self.version)
    header.appendLittleEndian(UInt32(0))
    header.appendLittleEndian(superblock.manifest.rawValue)
    header.appendLittleEndian(superblock.identity.low)
    header.appendLittleEndian(superblock.identity.high)
    header.appendLittleEndian(place.salt)
    header.appendLittleEndian(UInt64(0))
    header.appendLittleEndian(seededChecksum(Self.magic, header.bytes))
    try makeRoom(for: header.count)
    try place.file.write(header.bytes, at: 0)
    place.offset = UInt64(Self.headerLength)
    place.ordinal = 0
    place.chain = 0
    state.nextFile = numbers.next
    try append(state.asChanges)
    place.snapshotLength = Int(offset)
    setRotationLimit()
  }

  /// Gives out a file number.
  func allocate() -> FileNumber { numbers.allocate() }

  /// Steps over numbers that files in the directory already have.
  func reserve(through number: FileNumber) { numbers.reserve(through: number) }
}
