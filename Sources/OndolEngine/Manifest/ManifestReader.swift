// Reads a manifest: whole edits from its frames, one behind the other, and what they add up to. The
// end is where the next edit is not whole. That it was never written whole is told from damage as
// in the log: each frame vouches for the bytes before the edit that it belongs to.

/// Steps through the edits of a manifest that is in memory.
struct ManifestEdits {
  /// An edit as it stands in the file.
  struct Edit {
    /// Where its first frame begins, and how many bytes its frames take.
    var offset: Int
    var length: Int
    var ordinal: UInt64
    var time: Int64
    /// The chain, and the changes.
    var payload: [UInt8]
  }

  let header: ManifestHeader
  /// Opens what is sealed under the keys of groups.
  let keyring: Keyring?
  /// Where the next edit begins, or the first that is not whole.
  private(set) var offset = ManifestHeader.length
  private var frames: FrameReader

  /// - Parameters:
  ///   - bytes: all of the manifest that `superblock` names.
  ///   - keyring: what its edits are sealed with, if they are.
  init(
    _ bytes: [UInt8], of superblock: Superblock, _ keyring: Keyring? = nil
  ) throws(MalformedBytes) {
    self.keyring = keyring
    header = try ManifestHeader.read(bytes.bytes, of: superblock)
    frames = FrameReader(
      bytes, salt: header.salt, from: ManifestHeader.length, seal: keyring?.seal(header))
  }

  /// The next edit; nil at the end, which may be one that cannot be read.
  ///
  /// - Throws: when frames stand there that nobody writes so.
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
      // It has no more than what follows, and growing would take twice as much.
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

  /// How far the file was on the device, as the frames say that were never reached.
  var furthestClaim: UInt64? { frames.furthestClaim()?.rawValue }

  /// Whether there is nothing but zeros from the end on.
  var endsBlank: Bool {
    frames.bytes.bytes.extracting(droppingFirst: min(offset, frames.bytes.count)).isZero
  }
}

/// What the edits of a manifest add up to.
struct ReadManifest {
  var header: ManifestHeader
  var state: ManifestState
  /// Where the last edit ends.
  var offset = UInt64(ManifestHeader.length)
  var ordinal: UInt64 = 0
  var chain: UInt64 = 0
  /// Bytes up to the end of the first edit.
  var snapshotLength = 0
  /// Something that is no edit stands behind the last one: the power went while one was written.
  var hasTornTail = false

  /// Before the first edit.
  private init(_ header: ManifestHeader, shardCount: UInt32) {
    self.header = header
    let nothing = LogStart(number: .zero, base: .zero, sequence: .zero, time: 0)
    state = ManifestState(
      nextFile: .zero, floor: nothing, newestLog: .zero,
      shards: Array(repeating: ShardState(), count: Int(shardCount)))
  }

  /// The changes of the edit that follows.
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

  /// Takes an edit in. False when keys of groups are not those that earlier edits were read with.
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

  /// Has the keys be here of groups that changes name, as far as they can be. False when keys went
  /// that earlier changes were read with.
  private static func readKeys(
    for changes: [ManifestChange], _ keyring: Keyring?
  ) throws(EngineError) -> Bool {
    for case .groups(let list) in changes {
      guard try keyring?.groups.read(for: list) ?? true else { return false }
    }
    return true
  }

  /// Does what may find bytes malformed, at `offset` of the file called `name` or after it.
  private static func checked<R>(
    _ name: String, from offset: Int = 0, _ work: () throws(MalformedBytes) -> R
  ) throws(EngineError) -> R {
    do throws(MalformedBytes) {
      return try work()
    } catch {
      throw EngineError(error, in: name, from: UInt64(offset))
    }
  }

  /// Reads all of a manifest.
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
    // Each time round there are keys of fewer groups, and there are 32 at most.
    while true {
      if let read = try replay(edits, superblock) { return read }
    }
  }

  /// What the edits add up to; nil when it is to be done once more, because a later one has shown
  /// that keys which are here are not those that are needed.
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

  /// What a manifest says before the first edit in it that cannot be read; nil when that is the
  /// first of all. It was true once: files may have come and gone since.
  static func readableState(
    _ superblock: Superblock, directory: any Directory
  ) -> ManifestState? {
    guard let edits = try? edits(superblock, directory: directory) else { return nil }
    var count = UInt64.max
    while true {
      let (read, end) = readable(edits, count, superblock.shardCount)
      switch end {
      case .last: return read.ordinal > 0 ? read.state : nil
      // It may have changed the state in part: then the same once more without.
      case .refused: count = read.ordinal
      case .otherKeys: continue
      }
    }
  }

  /// Why no further edit was read.
  private enum End {
    case last
    case refused
    /// It is to be done once more, with fewer keys.
    case otherKeys
  }

  /// What the first edits, at most `count`, add up to.
  private static func readable(
    _ edits: ManifestEdits, _ count: UInt64, _ shardCount: UInt32
  ) -> (manifest: ReadManifest, end: End) {
    var edits = edits
    var read = ReadManifest(edits.header, shardCount: shardCount)
    while read.ordinal < count, let edit = try? edits.next() {
      guard let changes = try? read.changes(of: edit) else { return (read, .refused) }
      // Keys that cannot be read are keys that are not here, to who reads what can be.
      if (try? readKeys(for: changes, edits.keyring)) == false { return (read, .otherKeys) }
      guard let isTaken = try? read.apply(edit, changes, edits.keyring) else {
        return (read, .refused)
      }
      if !isTaken { return (read, .otherKeys) }
    }
    return (read, .last)
  }

  /// The edits of a manifest, of however long a file the beginning.
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
