// What can be determined about one file of an encrypted database without the key. Each kind of file
// is examined unit by unit, as far as the unencrypted parts lead.

/// An examination of one file.
struct UnopenedFile: Sendable {
  let name: String
  let kind: StorageFinding.Kind
  private(set) var findings: [StorageFinding] = []
  private let sizeBytes: UInt64
  /// Bytes that cannot be checked.
  private(set) var uncheckedBytes: UInt64

  /// Bytes whose checksums were compared.
  var checkedBytes: UInt64 { sizeBytes - min(sizeBytes, uncheckedBytes) }

  /// The state before the examination.
  init(_ name: String, _ kind: StorageFinding.Kind, _ sizeBytes: UInt64) {
    self.name = name
    self.kind = kind
    self.sizeBytes = sizeBytes
    uncheckedBytes = sizeBytes
  }

  private mutating func note(
    _ kind: StorageFinding.Kind, at offset: UInt64?, _ message: String, isHarmless: Bool = false
  ) {
    findings.append(
      StorageFinding(kind, in: name, at: offset, message, isHarmless: isHarmless))
  }

  /// Records an error from reading the file, unless the file is gone and therefore no longer
  /// matters.
  mutating func note(_ error: EngineError) {
    if case .io(_, _, _, let errno) = error, SystemFailure(errno: errno) == .missing { return }
    findings.append(StorageFinding(error, kind, in: name))
  }

  private mutating func note(
    _ error: MalformedBytes, _ kind: StorageFinding.Kind, from offset: UInt64
  ) {
    findings.append(StorageFinding(EngineError(error, in: name, from: offset), kind, in: name))
  }

  /// A file of rows or of values.
  enum Part: Sendable {
    case segment(FileNumber)
    case values(FileNumber)
  }

  /// Examines a file of a keyed group whose key is missing, in an open database.
  mutating func read(
    _ part: Part, _ file: any File, _ identity: DatabaseIdentity
  ) throws(EngineError) {
    let keyring = Keyring.unopened(of: identity)
    switch part {
    case .segment(let number): try readSegment(number, file, identity, keyring)
    case .values(let number): try readValues(number, file, identity, keyring)
    }
  }

  // MARK: - Files read first

  /// Examines the copies of groups' keys.
  mutating func readKeys(_ file: any File, _ identity: DatabaseIdentity) throws(EngineError) {
    findings += try GroupKeysFile.findings(
      in: file, of: identity.bytes, vouchedForBy: [UnopenedKey()])
    uncheckedBytes = 0
  }

  mutating func readSuperblock(_ file: any File) throws(EngineError) {
    findings += try Superblock.findings(in: file)
    uncheckedBytes = 0
  }

  mutating func readManifest(
    _ file: any File, _ superblock: Superblock, _ keyring: Keyring
  ) throws(EngineError) {
    let bytes = try all(of: file)
    do throws(MalformedBytes) {
      var edits = try ManifestEdits(bytes, of: superblock, keyring)
      var ordinal: UInt64 = 0
      while let edit = try edits.next() {
        ordinal += 1
        guard edit.ordinal == ordinal else {
          throw MalformedBytes(at: edit.offset, "it is not the edit that should follow")
        }
      }
      guard ordinal > 0 else {
        throw MalformedBytes(at: edits.offset, "its first edit cannot be read")
      }
      let end = UInt64(edits.offset)
      if let claim = edits.furthestClaim, claim > end {
        throw MalformedBytes(at: edits.offset, "a synced edit is damaged")
      }
      if !edits.endsBlank { noteRemains(behind: end) }
      uncheckedBytes = 0
    } catch {
      note(error, .manifest, from: 0)
    }
  }

  private mutating func noteRemains(behind end: UInt64) {
    note(
      kind, at: end, "bytes of a write that was cut short; they do not count", isHarmless: true)
  }

  /// Logs and manifests are read at once, as when opening.
  private func all(of file: any File) throws(EngineError) -> [UInt8] {
    try file.read(at: 0, count: Int(clamping: min(try file.size(), 4 << 30)))
  }

  // MARK: - Logs

  /// - Parameter next: the log with the next number, if there is one.
  mutating func readLog(
    _ number: FileNumber, _ file: any File, _ keyring: Keyring, next: (any File)?
  ) throws(EngineError) {
    let bytes = try all(of: file)
    let page = bytes.bytes.extracting(first: min(LogHeader.length, bytes.count))
    let reading = try LogHeader.read(page, file: name)
    guard case .header(let header) = reading else {
      if reading == .blank, bytes.bytes.isZero { return uncheckedBytes = 0 }
      return note(
        .log, at: 0, "the log's header is lost, and without the key nothing leads to what is in it",
        isHarmless: true)
    }
    // Created from another log's file and not in use yet.
    guard header.number == number else { return }
    findings += try LogHeader.findings(in: page, file: name)
    var frames = FrameReader(
      bytes, salt: header.salt, from: LogHeader.length, seal: keyring.seal(header))
    while frames.next() != nil {}
    let end = UInt64(frames.offset)
    var claim = max(frames.furthestClaim() ?? .zero, frames.mark ?? .zero)
    if let next { claim = max(claim, try Self.claim(of: next, behind: header, endingAt: end)) }
    if claim.rawValue > header.base.rawValue &+ end {
      note(.log, at: end, "an acknowledged commit cannot be read")
    } else if !frames.isBlankFromHere() {
      noteRemains(behind: end)
    }
    uncheckedBytes = 0
  }

  /// How far the bytes were on the device according to the next log, if it continues this one after
  /// the end that was found.
  private static func claim(
    of next: any File, behind header: LogHeader, endingAt end: UInt64
  ) throws(EngineError) -> LogPosition {
    let bytes = try next.read(at: 0, count: Int(clamping: min(try next.size(), 4 << 30)))
    let page = bytes.bytes.extracting(first: min(LogHeader.length, bytes.count))
    guard case .header(let other) = try LogHeader.read(page, file: next.name),
      other.previous == header.number, other.previousLength > end
    else { return .zero }
    let frames = FrameReader(bytes, salt: other.salt, from: LogHeader.length)
    return max(frames.furthestClaim() ?? .zero, frames.mark ?? .zero)
  }

  // MARK: - Files of rows

  private static let unfinished =
    "; unless a crash left the file unfinished: the next opening removes such"

  /// The salt in a file's header, if the header belongs to this file.
  private mutating func salt(
    _ format: DataFileHeader.Kind, _ number: FileNumber, _ file: any File,
    _ identity: DatabaseIdentity, isSealed: Bool
  ) throws(EngineError) -> UInt64? {
    guard let header = try DataFileHeader.find(format, in: file) else {
      note(kind, at: 0, "the header cannot be read" + Self.unfinished)
      return nil
    }
    guard header.number == number, header.identity == identity else {
      note(kind, at: 0, "the header is that of another file")
      return nil
    }
    guard header.isSealed == isSealed else {
      note(kind, at: 0, "it is \(isSealed ? "not " : "")encrypted, unlike what belongs here")
      return nil
    }
    return header.salt
  }

  mutating func readSegment(
    _ number: FileNumber, _ file: any File, _ identity: DatabaseIdentity, _ keyring: Keyring
  ) throws(EngineError) {
    let isSealed = keyring.seals(number)
    let salt = try salt(.segment, number, file, identity, isSealed: isSealed)
    let errors = SegmentErrors(file: name)
    let reader: SegmentFileReader
    let footer: SegmentFooter
    do throws(EngineError) {
      reader = try SegmentFileReader.open(file, errors)
      footer = try reader.footer()
      guard footer.number == number, footer.identity == identity, salt == nil || salt == footer.salt
      else { throw errors.corrupt(at: reader.size, "the footer is that of another file") }
    } catch {
      guard case .corrupt(_, let offset, let reason) = error else { throw error }
      return note(.segment, at: offset, reason + Self.unfinished)
    }
    uncheckedBytes = 0
    for section in try reader.sections(footer) {
      do throws(EngineError) {
        try reader.verify(section, salt: footer.salt)
      } catch {
        note(error)
      }
    }
    let seal = keyring.seal(.segment, number: number, salt: footer.salt)
    let start = UInt64(DataFileHeader.length)
    guard start <= footer.blocksEnd else {
      return note(.segment, at: start, "its blocks end before they begin")
    }
    var walk = BlockWalk(file, start..<footer.blocksEnd, salt: footer.salt, seal: seal)
    var counts: [BlockKind: UInt64] = [:]
    var isWhole = true
    while let found = try walk.next() {
      if let kind = found.kind {
        counts[kind, default: 0] += 1
      } else {
        isWhole = false
        note(.block, at: found.place.offset, "the block's checksum does not match")
      }
    }
    if walk.offset != footer.blocksEnd {
      uncheckedBytes = footer.blocksEnd - walk.offset
      note(.block, at: walk.offset, "no block can be found from here to \(footer.blocksEnd)")
    } else if isWhole,
      counts[.data, default: 0] != footer.dataBlocks
        || counts[.index, default: 0] != footer.indexBlocks
    {
      note(.count, at: nil, "the blocks are not as many as the footer says")
    }
  }

  mutating func readValues(
    _ number: FileNumber, _ file: any File, _ identity: DatabaseIdentity, _ keyring: Keyring
  ) throws(EngineError) {
    let isSealed = keyring.seals(number)
    guard let salt = try salt(.values, number, file, identity, isSealed: isSealed) else { return }
    let records = UnopenedRecords(
      file: file, salt: salt, seal: keyring.seal(.values, number: number, salt: salt),
      end: try file.size())
    var offset = UInt64(DataFileHeader.length)
    while offset < records.end {
      do throws(MalformedBytes) {
        offset = try records.end(ofSoundAt: offset)
      } catch {
        guard let next = records.end(ofBrokenAt: offset) else {
          note(
            .valueFile, at: offset,
            "\(error.reason), and what stands behind cannot be found" + Self.unfinished)
          return uncheckedBytes = records.end - offset
        }
        note(error, .value, from: offset)
        offset = next
      }
    }
    uncheckedBytes = 0
  }

  // MARK: - Files of contents

  mutating func readPack(
    _ number: FileNumber, _ file: any File, _ identity: DatabaseIdentity, _ keyring: Keyring
  ) throws(EngineError) {
    let isSealed = keyring.seals(number)
    guard let salt = try salt(.pack, number, file, identity, isSealed: isSealed) else { return }
    let seal = keyring.seal(pack: number, salt: salt)
    var walk = try PackWalk(file, number: number, salt: salt, seal: seal)
    var end = UInt64(DataFileHeader.length)
    while let place = try walk.next()?.place {
      try noteGap(end..<place.offset, file)
      try verify(place, file, seal)
      end = PackFormat.aligned(place.offset + UInt64(place.entryLength))
    }
    let size = try file.size()
    if end < size { try noteGap(end..<size, file) }
    uncheckedBytes = 0
  }

  /// Compares the checksums of an entry's frames.
  private mutating func verify(
    _ place: PackPlace, _ file: any File, _ seal: FileSeal?
  ) throws(EngineError) {
    let bytes = try file.read(at: place.offset, count: Int(place.entryLength))
    do throws(MalformedBytes) {
      let entry = try PackEntry(bytes.bytes, salt: place.salt, offset: place.offset, seal: seal)
      guard bytes.count == entry.entryLength else {
        throw MalformedBytes(at: bytes.count, "the file ends within an entry")
      }
      for frame in entry.frames {
        let stored = bytes.bytes.extracting(frame.start..<(frame.start + frame.storedLength))
        let offset = place.offset + UInt64(frame.start)
        guard ContentFrame.checksum(stored, salt: place.salt, offset: offset) == frame.checksum
        else { throw MalformedBytes(at: frame.start, "the checksum of a frame does not match") }
      }
    } catch {
      note(error, .content, from: place.offset)
    }
  }

  /// Records bytes between entries that are not unused space.
  private mutating func noteGap(_ gap: Range<UInt64>, _ file: any File) throws(EngineError) {
    var offset = gap.lowerBound
    while offset < gap.upperBound {
      let bytes = try file.read(at: offset, count: Int(min(1 << 20, gap.upperBound - offset)))
      guard !bytes.isEmpty else { return }
      guard bytes.bytes.isZero else {
        return note(
          .content, at: gap.lowerBound,
          "bytes that are no entry: of a write that was cut short, or of an entry whose head is"
            + " damaged", isHarmless: true)
      }
      offset += UInt64(bytes.count)
    }
  }

  /// The checksums of a content in its own file are in its row.
  mutating func readContent(
    _ number: FileNumber, _ file: any File, _ identity: DatabaseIdentity, _ keyring: Keyring
  ) throws(EngineError) {
    // Without encryption it has no header.
    guard keyring.seals(number) else { return }
    guard try salt(.content, number, file, identity, isSealed: true) != nil else { return }
    uncheckedBytes = sizeBytes - min(sizeBytes, UInt64(DataFileHeader.length))
  }
}

/// The records of a value file, according to their heads.
private struct UnopenedRecords {
  let file: any File
  let salt: UInt64
  let seal: FileSeal?
  let end: UInt64

  /// The end of the record that begins at `offset`. Throws if it is not valid.
  func end(ofSoundAt offset: UInt64) throws(MalformedBytes) -> UInt64 {
    let end = try claimedEnd(of: offset)
    let bytes = try read(at: offset, count: Int(end - offset))
    if let seal {
      _ = try ValueRecord.unsealed(bytes.bytes, salt: salt, offset: offset, by: seal)
    } else {
      _ = try ValueRecord.Opened(bytes.bytes, salt: salt, offset: offset)
    }
    return end
  }

  /// The stated end of a damaged record, if a valid record begins there or the file ends there.
  func end(ofBrokenAt offset: UInt64) -> UInt64? {
    guard let next = try? claimedEnd(of: offset) else { return nil }
    return next == end || (try? end(ofSoundAt: next)) != nil ? next : nil
  }

  private func claimedEnd(of offset: UInt64) throws(MalformedBytes) -> UInt64 {
    let head = try read(at: offset, count: ValueFileFormat.recordHeaderLength)
    let length =
      UInt64(ValueFileFormat.recordHeaderLength) + UInt64(try ValueRecord(head.bytes).storedLength)
    guard length <= end - offset else {
      throw MalformedBytes(at: 4, "the file ends within a value")
    }
    return offset + length
  }

  private func read(at offset: UInt64, count: Int) throws(MalformedBytes) -> [UInt8] {
    guard let bytes = try? file.read(at: offset, count: count), bytes.count == count else {
      throw MalformedBytes(at: 0, "it cannot be read")
    }
    return bytes
  }
}
