// A new manifest: the whole state as its first edit. It is encoded and measured before a file is
// created, so that a state too large for a manifest is rejected before anything has changed. It is
// read back before anything depends on it, because the previous manifest is removed.

/// The beginning of a manifest's file, and the written length.
struct ManifestPlace {
  var header: ManifestHeader
  /// What encrypts its edits; nil without encryption.
  let seal: FileSeal?
  /// The end of the last edit.
  var offset = UInt64(ManifestHeader.length)
  var ordinal: UInt64 = 0
  var chain: UInt64 = 0
  /// Bytes up to the end of the first edit.
  var snapshotLength = 0
  /// Bytes from the start for which the disk has reserved space.
  private(set) var reserved: UInt64 = 0

  init(header: ManifestHeader, _ keyring: Keyring?) {
    self.header = header
    seal = keyring?.seal(header)
  }

  init(_ read: ReadManifest, _ keyring: Keyring?) {
    self.init(header: read.header, keyring)
    (offset, ordinal, chain) = (read.offset, read.ordinal, read.chain)
    snapshotLength = read.snapshotLength
  }

  /// Space reserved after every edit for a small one that must not fail.
  private static let headroom: UInt64 = 512

  /// Reserves disk space for this many bytes of edits and a small one after them, and if possible
  /// for `ahead` more bytes.
  mutating func makeRoom(
    for count: Int, ahead: Int, in file: any File
  ) throws(EngineError) {
    let end = offset + UInt64(count) + Self.headroom
    if end <= reserved { return }
    let wanted = end + UInt64(ahead)
    do throws(EngineError) {
      reserved = try file.reserve(0..<wanted) ? wanted : .max
    } catch {
      guard error.isLackOfSpace else { throw error }
      reserved = try file.reserve(0..<end) ? end : .max
    }
  }

  /// Writes the frames of the next edit. The first frame follows `front`, which ends where the edit
  /// begins.
  func write(
    _ payload: [UInt8], to file: any File, time: Int64, limit: Int, after front: [UInt8] = []
  ) throws(EngineError) {
    try FrameBuilder.eachFrame(
      ofEdit: payload, ordinal: ordinal + 1, time: time, salt: header.salt, offset: offset,
      limit: limit, seal: seal
    ) { (frame, place) throws(EngineError) in
      if place == offset {
        try file.write((front + frame).bytes, at: place - UInt64(front.count))
      } else {
        try file.write(frame.bytes, at: place)
      }
    }
  }

  /// Records that the next edit is in the file.
  mutating func note(_ payload: [UInt8], frames: Int) {
    offset += UInt64(frames)
    ordinal += 1
    chain = seededChecksum(chain, payload.bytes)
  }
}

/// A state that is being written into a manifest of its own.
struct ManifestSnapshot {
  let state: ManifestState
  private let superblock: Superblock
  private let header: ManifestHeader
  /// Empty once it is written.
  private var payload: [UInt8]
  private let limits: ManifestLimits
  private let keyring: Keyring?

  /// - Throws: if the state is too large for a manifest.
  init(
    of state: ManifestState, _ superblock: Superblock, salt: UInt64, _ limits: ManifestLimits,
    _ keyring: Keyring?
  ) throws(EngineError) {
    self.keyring = keyring
    let isSealed = keyring?.seals(superblock.manifest) ?? false
    var payload: [UInt8] = []
    payload.appendLittleEndian(UInt64(0))
    for change in state.asChanges { change.encode(into: &payload) }
    guard payload.count <= limits.state else {
      throw .invalid(
        reason: "the list of files would have \(payload.count) bytes and may have \(limits.state)")
    }
    header = ManifestHeader(
      version: payload.count <= FrameBuilder.pieceLength(limits.frame, isSealed: isSealed)
        ? .wholeEdits : .editsInParts,
      number: superblock.manifest, identity: superblock.identity, salt: salt)
    self.state = state
    self.superblock = superblock
    self.payload = payload
    self.limits = limits
  }

  /// Writes it into a new, synced file whose name is not synced yet.
  ///
  /// - Parameter ahead: bytes of edits that will follow.
  mutating func write(
    to directory: any Directory, time: Int64, ahead: Int
  ) throws(EngineError) -> ManifestPlace {
    let file = try directory.create(superblock.manifest.manifestName)
    var place = ManifestPlace(header: header, keyring)
    let length = FrameBuilder.length(
      ofPayload: payload.count, limit: limits.frame, isSealed: place.seal != nil)
    try place.makeRoom(for: length, ahead: ahead, in: file)
    try place.write(payload, to: file, time: time, limit: limits.frame, after: header.encode())
    try file.sync()
    place.note(payload, frames: length)
    payload = []
    place.snapshotLength = Int(place.offset)
    return place
  }

  /// Opens the written file as the next open would.
  ///
  /// - Throws: if it differs from what was to be written.
  func readBack(from directory: any Directory) throws(EngineError) {
    let name = superblock.manifest.manifestName
    let file = try directory.open(name, access: .readOnly)
    let read = try ReadManifest.read(superblock, file, limit: limits.file, keyring)
    guard read.ordinal == 1, !read.hasTornTail, read.state == state else {
      throw .corrupt(file: name, offset: 0, reason: "it does not say what was written")
    }
  }
}
