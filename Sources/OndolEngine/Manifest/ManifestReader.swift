// Reads a manifest: complete consecutive edits from its frames, and the state that results from
// them. The end is where the next edit is incomplete. Whether it was never written completely or is
// damaged is decided as in the log: each frame vouches for the bytes before its edit.

/// Iterates over the edits of a manifest in memory.
struct ManifestEdits {
  /// An edit in the file.
  struct Edit {
    /// The start of its first frame, and the length of its frames.
    var offset: Int
    var length: Int
    var ordinal: UInt64
    var time: Int64
    /// The chain and the changes.
    var payload: [UInt8]
  }

  let header: ManifestHeader
  /// Decrypts what is encrypted with the keys of groups.
  let keyring: Keyring?
  /// The start of the next edit, or of the first incomplete one.
  private(set) var offset = ManifestHeader.length
  private var frames: FrameReader

  /// - Parameters:
  ///   - bytes: the whole manifest that `superblock` points to.
  ///   - keyring: the keys of its edits, if they are encrypted.
  init(
    _ bytes: [UInt8], of superblock: Superblock, _ keyring: Keyring? = nil
  ) throws(MalformedBytes) {
    self.keyring = keyring
    header = try ManifestHeader.read(bytes.bytes, of: superblock)
    frames = FrameReader(
      bytes, salt: header.salt, from: ManifestHeader.length, seal: keyring?.seal(header))
  }

  /// The next edit; nil at the end, which may be an unreadable edit.
  ///
  /// - Throws: if there are frames that no writer produces.
  mutating func next() throws(MalformedBytes) -> Edit? {
    guard let first = frames.next() else {
      try frames.refuseForgery()
      try refuseNewerFrame()
      return nil
    }
    var edit = Edit(
      offset: first.offset, length: first.header.frameLength,
      ordinal: first.header.sequence.rawValue, time: first.header.time,
      payload: Array(frames.payload(of: first)))
    if first.header.kind != .edit {
      try check(first, part: 0, of: edit)
      var isWhole = first.header.kind == .lastPart
      // It needs at most the remaining bytes, and growing would take twice as much.
      if !isWhole { edit.payload.reserveCapacity(max(0, frames.bytes.count - first.offset)) }
      var part = 0
      while !isWhole {
        guard let frame = frames.next() else {
          try frames.refuseForgery()
          return nil
        }
        part += 1
        try check(frame, part: part, of: edit)
        edit.payload += frames.payload(of: frame)
        edit.length += frame.header.frameLength
        isWhole = frame.header.kind == .lastPart
      }
    }
    offset = frames.offset
    return edit
  }

  /// Throws unless `frame` is that part of the edit.
  private func check(
    _ frame: FrameReader.Frame, part: Int, of edit: Edit
  ) throws(MalformedBytes) {
    let header = frame.header
    guard header.kind == .part || header.kind == .lastPart, self.header.version == .editsInParts
    else { throw MalformedBytes(at: frame.offset, "it is not the edit that should follow") }
    guard header.sequence.rawValue == edit.ordinal, header.time == edit.time,
      header.operationCount == part, header.syncedThrough.rawValue == UInt64(edit.offset)
    else { throw MalformedBytes(at: frame.offset, "it is not part \(part) of the edit") }
  }

  private func refuseNewerFrame() throws(MalformedBytes) {
    guard frames.offset <= frames.bytes.count else { return }
    let rest = frames.bytes.bytes.extracting(droppingFirst: frames.offset)
    let isNewer = FrameHeader.isOfNewerVersion(
      rest, salt: header.salt, offset: UInt64(frames.offset), isSealed: frames.seal != nil)
    if isNewer {
      throw .newer(at: frames.offset, "a frame of an unknown kind")
    }
  }

  /// How far the file was on the device, according to the frames that were not reached.
  var furthestClaim: UInt64? { frames.furthestClaim()?.rawValue }

  /// Whether the bytes from the end on are all zeros.
  var endsBlank: Bool {
    frames.bytes.bytes.extracting(droppingFirst: min(offset, frames.bytes.count)).isZero
  }
}

/// The state that results from the edits of a manifest.
struct ReadManifest {
  var header: ManifestHeader
  var state: ManifestState
  /// The end of the last edit.
  var offset = UInt64(ManifestHeader.length)
  var ordinal: UInt64 = 0
  var chain: UInt64 = 0
  /// Bytes up to the end of the first edit.
  var snapshotLength = 0
  /// Whether the last edit is followed by an incomplete one, because of a power cut during a write.
  var hasTornTail = false

  /// The state before the first edit.
  private init(_ header: ManifestHeader, shardCount: UInt32) {
    self.header = header
    let nothing = LogStart(number: .zero, base: .zero, sequence: .zero, time: 0)
    state = ManifestState(
      nextFile: .zero, floor: nothing, newestLog: .zero,
      shards: Array(repeating: ShardState(), count: Int(shardCount)))
  }

  /// The changes of the following edit.
  private func changes(
    of edit: ManifestEdits.Edit
  ) throws(MalformedBytes) -> [ManifestChange] {
    guard edit.ordinal == ordinal + 1 else {
      throw MalformedBytes(at: 0, "it is not the edit that should follow")
    }
    let payload = edit.payload.bytes
    var reader = ByteReader(payload)
    guard try reader.littleEndian(UInt64.self) == chain else {
      throw MalformedBytes(at: 0, "the edit does not continue the one before")
    }
    return try ManifestChange.decodeAll(payload.extracting(droppingFirst: 8))
  }

  /// Applies an edit. Returns false if the keys of groups differ from those that earlier edits were
  /// read with.
  private mutating func apply(
    _ edit: ManifestEdits.Edit, _ changes: [ManifestChange], _ keyring: Keyring?
  ) throws(MalformedBytes) -> Bool {
    for change in changes {
      guard case .addSegment(let shard, let level, let run, var segment) = change,
        let bounds = segment.bounds
      else {
        try state.apply(change)
        continue
      }
      guard try bounds.open(&segment, by: keyring) else { return false }
      try state.apply(.addSegment(shard: shard, level: level, run: run, segment))
    }
    ordinal += 1
    chain = seededChecksum(chain, edit.payload.bytes)
    offset = UInt64(edit.offset + edit.length)
    if ordinal == 1 { snapshotLength = Int(offset) }
    return true
  }

  /// Loads the keys of the groups that changes name, as far as possible. Returns false if keys that
  /// earlier changes were read with are gone.
  private static func readKeys(
    for changes: [ManifestChange], _ keyring: Keyring?
  ) throws(EngineError) -> Bool {
    for case .groups(let list) in changes {
      guard try keyring?.groups.read(for: list) ?? true else { return false }
    }
    return true
  }

  /// Performs work that may find malformed bytes, at or after `offset` of the file called `name`.
  private static func checked<R>(
    _ name: String, from offset: Int = 0, _ work: () throws(MalformedBytes) -> R
  ) throws(EngineError) -> R {
    do throws(MalformedBytes) {
      return try work()
    } catch {
      throw EngineError(error, in: name, from: UInt64(offset))
    }
  }

  /// Reads a whole manifest.
  static func read(
    _ superblock: Superblock, _ file: any File, limit: Int, _ keyring: Keyring? = nil
  ) throws(EngineError) -> ReadManifest {
    let name = superblock.manifest.manifestName
    guard let size = Int(exactly: try file.size()), size <= limit else {
      throw .corrupt(file: name, offset: 0, reason: "it is too long for a manifest")
    }
    let bytes = try file.read(at: 0, count: size)
    let edits = try checked(name) { () throws(MalformedBytes) in
      try ManifestEdits(bytes, of: superblock, keyring)
    }
    // Each iteration has the keys of fewer groups, and there are at most 32.
    while true {
      if let read = try replay(edits, superblock) { return read }
    }
  }

  /// The result of the edits. It is nil if they must be read again because a later edit has shown
  /// that available keys are not the required ones.
  private static func replay(
    _ edits: ManifestEdits, _ superblock: Superblock
  ) throws(EngineError) -> ReadManifest? {
    let name = superblock.manifest.manifestName
    var edits = edits
    var read = ReadManifest(edits.header, shardCount: superblock.shardCount)
    while let edit = try checked(name, { () throws(MalformedBytes) in try edits.next() }) {
      let changes = try checked(name, from: edit.offset) { () throws(MalformedBytes) in
        try read.changes(of: edit)
      }
      guard try readKeys(for: changes, edits.keyring) else { return nil }
      let isTaken = try checked(name, from: edit.offset) { () throws(MalformedBytes) in
        try read.apply(edit, changes, edits.keyring)
      }
      guard isTaken else { return nil }
    }
    guard read.ordinal > 0 else {
      throw .corrupt(
        file: name, offset: UInt64(edits.offset), reason: "its first edit cannot be read")
    }
    if let claim = edits.furthestClaim, claim > read.offset {
      throw .corrupt(
        file: name, offset: UInt64(edits.offset), reason: "a synced edit is damaged")
    }
    read.hasTornTail = !edits.endsBlank
    return read
  }

  /// The state of a manifest before its first unreadable edit; nil if that is the very first. This
  /// state existed once, but files may have been added and removed since.
  static func readableState(
    _ superblock: Superblock, directory: any Directory
  ) -> ManifestState? {
    guard let edits = try? edits(superblock, directory: directory) else { return nil }
    var count = UInt64.max
    while true {
      let (read, end) = readable(edits, count, superblock.shardCount)
      switch end {
      case .last: return read.ordinal > 0 ? read.state : nil
      // The edit may have been applied in part. So everything is read again without it.
      case .refused: count = read.ordinal
      case .otherKeys: continue
      }
    }
  }

  /// Why no further edit was read.
  private enum End {
    case last
    case refused
    /// It must be read again, with fewer keys.
    case otherKeys
  }

  /// The result of the first edits, at most `count`.
  private static func readable(
    _ edits: ManifestEdits, _ count: UInt64, _ shardCount: UInt32
  ) -> (manifest: ReadManifest, end: End) {
    var edits = edits
    var read = ReadManifest(edits.header, shardCount: shardCount)
    while read.ordinal < count, let edit = try? edits.next() {
      guard let changes = try? read.changes(of: edit) else { return (read, .refused) }
      // A reader of whatever is readable treats unreadable keys as missing.
      if (try? readKeys(for: changes, edits.keyring)) == false { return (read, .otherKeys) }
      guard let isTaken = try? read.apply(edit, changes, edits.keyring) else {
        return (read, .refused)
      }
      if !isTaken { return (read, .otherKeys) }
    }
    return (read, .last)
  }

  /// The edits of a manifest, from the beginning of a file of any length.
  static func edits(
    _ superblock: Superblock, directory: any Directory
  ) throws(EngineError) -> ManifestEdits {
    let name = superblock.manifest.manifestName
    let file = try directory.open(name, access: .readOnly)
    let limit = UInt64(ManifestLimits().file)
    let bytes = try file.read(at: 0, count: Int(clamping: min(try file.size(), limit)))
    do throws(MalformedBytes) {
      return try ManifestEdits(bytes, of: superblock, directory.keyring)
    } catch {
      throw EngineError(error, in: name)
    }
  }
}
