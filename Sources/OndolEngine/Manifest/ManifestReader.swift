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

  private mutating func apply(
    _ edit: ManifestEdits.Edit, _ keyring: Keyring?
  ) throws(MalformedBytes) {
    guard edit.ordinal == ordinal + 1 else {
      throw MalformedBytes(at: 0, "it is not the edit that should follow")
    }
    let payload = edit.payload.bytes
    var reader = ByteReader(payload)
    guard try reader.littleEndian(UInt64.self) == chain else {
      throw MalformedBytes(at: 0, "the edit does not continue the one before")
    }
    for change in try ManifestChange.decodeAll(payload.extracting(droppingFirst: 8)) {
      switch change {
      case .groups: keyring?.groups.noteUse()
      case .addSegment(let shard, let level, let run, var segment):
        guard let bounds = segment.bounds else { break }
        try bounds.open(&segment, by: keyring)
        try state.apply(.addSegment(shard: shard, level: level, run: run, segment))
        continue
      default: break
      }
      try state.apply(change)
    }
    ordinal += 1
    chain = seededChecksum(chain, payload)
    offset = UInt64(edit.offset + edit.length)
    if ordinal == 1 { snapshotLength = Int(offset) }
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
    do throws(MalformedBytes) {
      return try replay(try ManifestEdits(bytes, of: superblock, keyring), superblock)
    } catch {
      throw EngineError(error, in: name)
    }
  }

  private static func replay(
    _ edits: consuming ManifestEdits, _ superblock: Superblock
  ) throws(MalformedBytes) -> ReadManifest {
    var edits = edits
    var read = ReadManifest(edits.header, shardCount: superblock.shardCount)
    while let edit = try edits.next() {
      do throws(MalformedBytes) {
        try read.apply(edit, edits.keyring)
      } catch {
        var error = error
        error.offset += edit.offset
        throw error
      }
    }
    guard read.ordinal > 0 else {
      throw MalformedBytes(at: edits.offset, "its first edit cannot be read")
    }
    if let claim = edits.furthestClaim, claim > read.offset {
      throw MalformedBytes(at: edits.offset, "a synced edit is damaged")
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
    // An edit that is refused may have changed the state in part: then the same once more without.
    var read = readable(edits, UInt64.max, superblock.shardCount)
    if !read.isWhole { read = readable(edits, read.manifest.ordinal, superblock.shardCount) }
    return read.manifest.ordinal > 0 ? read.manifest.state : nil
  }

  /// What the first edits, at most `count`, add up to, and whether none that was read is refused.
  private static func readable(
    _ edits: ManifestEdits, _ count: UInt64, _ shardCount: UInt32
  ) -> (manifest: ReadManifest, isWhole: Bool) {
    var edits = edits
    var read = ReadManifest(edits.header, shardCount: shardCount)
    while read.ordinal < count, let edit = try? edits.next() {
      guard (try? read.apply(edit, edits.keyring)) != nil else { return (read, false) }
    }
    return (read, true)
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
