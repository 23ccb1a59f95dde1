// Each kind of sealed unit against an attacker who knows the format and not the key: flipped bits,
// units moved within a file and between files, and plain units in their place, all with corrected
// checksums. None of it opens.

import OndolTestKit
import Testing

@testable import OndolEngine

/// A unit of a file, and a reader's result.
private struct SealedUnitCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// The unit with these contents at an offset; plain without a seal.
  let write: @Sendable ([UInt8], _ offset: UInt64, FileSeal?) throws -> [UInt8]
  /// Corrects all checksums.
  let mend: @Sendable (inout [UInt8], _ offset: UInt64) -> Void
  let read: @Sendable ([UInt8], _ offset: UInt64, FileSeal) throws -> [UInt8]
}

private let salt: UInt64 = 0x0102_0304_0506_0708

private func mend(_ bytes: inout [UInt8], from start: Int, at place: Int, _ offset: UInt64) {
  guard place >= start, place + 8 <= bytes.count else { return }
  let checksum = seededChecksum(
    contextSeed(salt: salt, offset: offset), bytes.bytes.extracting(start..<place))
  bytes.overwriteLittleEndian(checksum, at: place)
}

private let block = SealedUnitCase(
  testDescription: "a block",
  write: { contents, offset, seal in
    var bytes: [UInt8] = []
    _ = StoredBlock.seal(
      contents.bytes, kind: .data, compress: true, salt: salt, offset: offset, seal: seal,
      appendingTo: &bytes)
    return bytes
  }, mend: { mend(&$0, from: 0, at: $0.count - 8, $1) },
  read: { bytes, offset, seal in
    let clear = try StoredBlock.unsealed(bytes.bytes, salt: salt, offset: offset, by: seal)
    let opened = try StoredBlock.Opened(
      clear.bytes, kind: .data, salt: salt, offset: offset, isUnsealed: true)
    return try opened.rawBytes()
  })

private let value = SealedUnitCase(
  testDescription: "a value",
  write: { contents, offset, seal in
    var record = ValueRecord(
      rawLength: UInt32(contents.count), storedLength: UInt32(contents.count),
      codec: ValueFileFormat.codecNone, checksum: 0)
    var stored = contents
    if let seal { record.seal(&stored, by: seal, offset: offset) }
    let checked = record.encodeChecked()
    let checksum = seededChecksum(
      contextSeed(salt: salt, offset: offset), checked.bytes, stored.bytes)
    var bytes = checked
    bytes.appendLittleEndian(checksum)
    return bytes + stored
  },
  mend: { bytes, offset in
    let checksum = seededChecksum(
      contextSeed(salt: salt, offset: offset), bytes.bytes.extracting(first: 16),
      bytes.bytes.extracting(droppingFirst: 24))
    bytes.overwriteLittleEndian(checksum, at: 16)
  },
  read: { bytes, offset, seal in
    let clear = try ValueRecord.unsealed(bytes.bytes, salt: salt, offset: offset, by: seal)
    let record = try ValueRecord.Opened(
      clear.bytes, salt: salt, offset: offset, isUnsealed: true)
    return record.stored.array
  })

private let frame = SealedUnitCase(
  testDescription: "a frame",
  write: { contents, offset, seal in
    let bytes = [UInt8](repeating: 0, count: FrameHeader.length) + contents
    let context = FrameContext(
      sequence: SequenceNumber(rawValue: 5), time: 77, syncedThrough: .zero)
    return FrameBuilder.build(
      bytes, operations: 1, context, salt: salt, offset: offset, seal: seal)
  },
  mend: { bytes, offset in
    let payload = bytes[..<4].reversed().reduce(0) { $0 << 8 | Int($1) }
    if payload <= bytes.count - FrameHeader.length {
      let checksum = crc32c(
        bytes.bytes.extracting(FrameHeader.length..<(FrameHeader.length + payload)))
      bytes.overwriteLittleEndian(checksum, at: 40)
    }
    mend(&bytes, from: 0, at: 48, offset)
  },
  read: { bytes, offset, seal in
    var reader = FrameReader(bytes, salt: salt, from: 0, start: offset, seal: seal)
    guard let frame = reader.next() else {
      try reader.refuseForgery()
      throw MalformedBytes(at: 0, "no frame")
    }
    return Array(reader.payload(of: frame))
  })

private let entry = SealedUnitCase(
  testDescription: "an entry of a pack",
  write: { contents, offset, seal in
    let draft = PackEntryDraft(
      contents, digest: Array(repeating: 9, count: 32), compress: true)
    var bytes: [UInt8] = []
    draft.append(to: &bytes, salt: salt, offset: offset, seal: seal)
    return Array(bytes.prefix(draft.entryLength(isSealed: true)))
  },
  mend: { bytes, offset in
    let seed = contextSeed(salt: salt, offset: offset)
    guard bytes.count > 80, let head = try? PackEntry.headLength(bytes.bytes, isSealed: true),
      head <= bytes.count
    else { return }
    // One frame, which is the whole content here.
    if let row = 56 as Int?, head > row {
      let checksum = ContentFrame.checksum(
        bytes.bytes.extracting(droppingFirst: head), salt: salt, offset: offset + UInt64(head))
      bytes.overwriteLittleEndian(checksum, at: row + 4)
    }
    let checksum = seededChecksum(
      seed, bytes.bytes.extracting(first: 48), bytes.bytes.extracting(56..<head))
    bytes.overwriteLittleEndian(checksum, at: 48)
  },
  read: { bytes, offset, seal in
    let entry = try PackEntry(bytes.bytes, salt: salt, offset: offset, seal: seal)
    guard entry.digest == Array(repeating: 9, count: 32) else {
      throw MalformedBytes(at: 0, "another digest")
    }
    var contents: [UInt8] = []
    for (index, frame) in entry.frames.enumerated() {
      try entry.appendRaw(
        index,
        from: bytes.bytes.extracting(frame.start..<(frame.start + frame.storedLength)),
        salt: salt, offset: offset + UInt64(frame.start), seal: seal, to: &contents)
    }
    return contents
  })

@Suite struct SealedUnitTests {
  private static let cases = [block, value, frame, entry]

  private static func keyring(_ low: UInt64 = 1) throws -> Keyring {
    let identity = DatabaseIdentity(low: low, high: 2).bytes
    let (key, kept) = try SealOracle().makeKey(for: identity)
    let random = Guarded(SeededRandom(seed: 8))
    return Keyring(key, kept: kept, identity: identity) { random.withLock { $0.next() } }
  }

  private static func seal(_ number: UInt64, _ keyring: Keyring) throws -> FileSeal {
    try #require(keyring.seal(.segment, number: FileNumber(rawValue: number), salt: salt))
  }

  @Test(arguments: cases) private func `Every bit counts`(unit: SealedUnitCase) throws {
    let seal = try Self.seal(7, Self.keyring())
    var random = SeededRandom(seed: 2)
    for length in [40, 300] {
      let contents = random.bytes(length)
      let bytes = try unit.write(contents, 4_096, seal)
      #expect(try unit.read(bytes, 4_096, seal) == contents)
      for bit in 0..<(8 * bytes.count) {
        var changed = bytes
        changed[bit / 8] ^= 1 << UInt8(bit % 8)
        unit.mend(&changed, 4_096)
        // A bit of a checksum, which was corrected, or of the zeros after a frame.
        if changed == bytes { continue }
        let opened = try? unit.read(changed, 4_096, seal)
        #expect(opened == nil || opened == contents, "bit \(bit) of \(bytes.count) bytes")
        if opened != nil { #expect(unit.testDescription == "a frame", "bit \(bit)") }
      }
    }
  }

  @Test(arguments: cases) private func `It opens in no other place`(
    unit: SealedUnitCase
  ) throws {
    let keyring = try Self.keyring()
    let seal = try Self.seal(7, keyring)
    let contents = [UInt8](repeating: 3, count: 100) + Array(0..<100)
    let bytes = try unit.write(contents, 4_096, seal)
    var moved = bytes
    unit.mend(&moved, 8_192)
    #expect(throws: MalformedBytes.self) { try unit.read(moved, 8_192, seal) }
    // Another file, and the same numbers in another kind of file, salt or database.
    let number = FileNumber(rawValue: 7)
    let others = [
      try Self.seal(8, keyring), try #require(keyring.seal(.values, number: number, salt: salt)),
      try #require(keyring.seal(.segment, number: number, salt: salt + 1)),
      try Self.seal(7, Self.keyring()),
    ]
    for other in others {
      #expect(throws: MalformedBytes.self) { try unit.read(bytes, 4_096, other) }
    }
    let clear = try unit.write(contents, 4_096, nil)
    #expect(throws: MalformedBytes.self) { try unit.read(clear, 4_096, seal) }
    #expect(try unit.read(bytes, 4_096, seal) == contents)
  }

  @Test func `A filter is stored by the page, and every page opens by itself`() throws {
    let seal = try Self.seal(7, Self.keyring())
    var random = SeededRandom(seed: 5)
    for lines in [1, 63, 64, 65, 200] {
      let filter = random.bytes(lines * Filter.lineBytes)
      let stored = FilterParts.sealed(filter, as: .filter, at: 640, by: seal)
      #expect(FilterParts.canBe(UInt64(stored.count), isSealed: true))
      #expect(try FilterParts.opened(stored.bytes, as: .filter, at: 640, by: seal) == filter)
      let parts = FilterParts(stored.bytes, at: 640, salt: salt, seal: seal)
      #expect(FilterParts.lineCount(stored: stored.count, isSealed: true) == lines)
      var opened: [UInt8] = []
      var part = 0
      while opened.count < filter.count {
        let range = parts.range(part)
        let bytes = Array(stored[Int(range.lowerBound - 640)..<Int(range.upperBound - 640)])
        let isPart = parts.isPart(part, bytes.bytes, salt: salt)
        #expect(isPart)
        opened += try parts.opened(part, bytes)
        part += 1
      }
      #expect(opened == filter)
      var changed = stored
      changed[Int.random(in: 0..<stored.count, using: &random)] ^= 1
      #expect(throws: MalformedBytes.self) {
        try FilterParts.opened(changed.bytes, as: .filter, at: 640, by: seal)
      }
    }
  }

  /// A section of a few lines could once be offered as a filter of one page, and the reverse.
  @Test func `No other section opens as a filter`() throws {
    let seal = try Self.seal(7, Self.keyring())
    var section = [UInt8](repeating: 5, count: 3 * Filter.lineBytes)
    seal.seal(&section, from: 0, .section, at: 640)
    #expect(FilterParts.canBe(UInt64(section.count), isSealed: true))
    #expect(throws: MalformedBytes.self) {
      try FilterParts.opened(section.bytes, as: .filter, at: 640, by: seal)
    }
    // Files of older versions declare their old seals.
    #expect(
      try FilterParts.opened(section.bytes, as: .section, at: 640, by: seal).count
        == 3 * Filter.lineBytes)
    var footer = SegmentFooter(
      number: FileNumber(rawValue: 7), salt: 3, identity: DatabaseIdentity(low: 1, high: 2),
      shard: 0, entries: 1, tombstones: 0, minSequence: .zero, maxSequence: .zero, rawBytes: 9,
      blocksEnd: 100, dataBlocks: 1, indexBlocks: 1, sectionTableOffset: 100, sectionCount: 2,
      sectionTableChecksum: 4)
    footer.isSealed = true
    for unit in [SealedUnit.filter, .section] {
      footer.filterUnit = unit
      let bytes = footer.encode(at: 4096).bytes
      let read = try SegmentFooter.parse(bytes.bytes, at: 4096, SegmentErrors(file: "7.seg"))
      #expect(read == footer)
    }
  }

  // MARK: - The superblock

  @Test func `The superblock is vouched for, field by field`() throws {
    let environment = Environment.memory()
    let oracle = SealOracle()
    let identity = DatabaseIdentity(low: 3, high: 4)
    let (key, kept) = try oracle.makeKey(for: identity.bytes)
    let keyring = Keyring(
      key, kept: kept, identity: identity.bytes, random: environment.random)
    var superblock = Superblock(
      identity: identity, epoch: 6, manifest: FileNumber(rawValue: 5), shardCount: 4, created: 1,
      written: 2)
    superblock.prove(with: keyring)
    let directory = try environment.fileSystem.openDirectory(at: "d", create: true)
    let file = try directory.create("SUPER")
    try superblock.write(to: file)
    #expect(try Superblock.read(from: file) == superblock)
    func error(_ change: (inout Superblock) -> Void) -> EngineError? {
      var changed = superblock
      change(&changed)
      do throws(EngineError) {
        _ = try changed.unlock(with: oracle, at: "d", random: environment.random)
        return nil
      } catch {
        return error
      }
    }
    #expect(error { _ in } == nil)
    let changes: [(inout Superblock) -> Void] = [
      { $0.epoch += 1 }, { $0.manifest = FileNumber(rawValue: 4) }, { $0.shardCount = 5 },
      { $0.created += 1 }, { $0.written += 1 }, { $0.kept?[SealFormat.keptLength - 1] = 1 },
    ]
    for change in changes {
      guard case .corrupt = error(change) else {
        Issue.record("a change went unnoticed: \(String(describing: error(change)))")
        continue
      }
    }
    for offset in 8..<92 {
      guard case .locked = error({ $0.kept?[offset] ^= 1 }) else {
        Issue.record("byte \(offset) of what is kept")
        continue
      }
    }
    guard case .locked = error({ $0.identity.low += 1 }) else {
      Issue.record("another identity")
      return
    }
  }
}
