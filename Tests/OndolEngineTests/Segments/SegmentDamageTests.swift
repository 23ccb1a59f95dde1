// The permitted results of a damaged file: a refusal with its place, or a correct answer. Never a
// wrong answer, and never a trap.

import Testing

@testable import OndolEngine

@Suite struct SegmentDamageTests {
  private let rows: [TestRow] = {
    var random = SeededRandom(seed: 11)
    return (0..<24).map { index in
      let key: [UInt8] = [0, 0, 0, 1] + random.bytes(3, alphabet: 0...0) + [UInt8(index), 7]
      return index % 7 == 3
        ? TestRow(kind: .delete, key: key, value: [])
        : TestRow(kind: .put, key: key, value: [UInt8](repeating: UInt8(index), count: index))
    }
  }()

  private func write(_ compress: Bool) throws -> (SegmentMetadata, [UInt8]) {
    let directory = MemoryDirectory()
    var options = SegmentOptions()
    options.blockSize = 160
    options.compress = compress
    let metadata = try writeSegment(rows, to: directory, options: options)
    return (metadata, try #require(directory.file("7.seg")).bytes)
  }

  /// Reads everything in `bytes`, including the filter, as of a young run, and returns the first
  /// error.
  private func read(_ bytes: [UInt8], _ metadata: SegmentMetadata) -> EngineError? {
    let directory = MemoryDirectory()
    directory.put(bytes, as: "7.seg")
    let run = Run([
      openSegment(metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))
    ])
    var failure: EngineError?
    for row in rows where row.key[7] % 8 == 3 {
      do throws(EngineError) {
        let found = try find(row.key, in: run, ReadOptions(asksFilterFirst: true))
        #expect(found == row)
      } catch {
        failure = failure ?? error
      }
    }
    do throws(EngineError) {
      let cursor = run.cursor()
      var seen: [TestRow] = []
      try cursor.seekToFirst()
      while let row = cursor.copy {
        seen.append(row)
        try cursor.next()
      }
      #expect(seen == rows)
    } catch {
      failure = failure ?? error
    }
    return failure
  }

  private func isTyped(_ error: EngineError) -> Bool {
    switch error {
    case .corrupt(file: "7.seg", _, _), .needsNewerVersion(file: "7.seg", _): true
    default: false
    }
  }

  @Test(arguments: [true, false])
  func `a flipped bit is an error or changes nothing`(_ compress: Bool) throws {
    let (metadata, bytes) = try write(compress)
    #expect(read(bytes, metadata) == nil)
    var harmless = 0
    for bit in 0..<(bytes.count * 8) {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      if let error = read(damaged, metadata) {
        #expect(isTyped(error), "bit \(bit): \(error)")
      } else {
        harmless += 1
      }
    }
    // Only the header is not needed for reading.
    #expect(harmless == DataFileHeader.length * 8)
  }

  @Test func `a flipped bit anywhere is found by verifying`() throws {
    let (metadata, bytes) = try write(true)
    func verify(_ bytes: [UInt8]) throws {
      let directory = MemoryDirectory()
      directory.put(bytes, as: "7.seg")
      try openSegment(metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20)).verify()
    }
    try verify(bytes)
    for bit in 0..<(bytes.count * 8) {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: EngineError.self, "bit \(bit)") { try verify(damaged) }
    }
  }

  @Test(arguments: [true, false])
  func `a file cut anywhere is an error`(_ compress: Bool) throws {
    let (metadata, bytes) = try write(compress)
    for length in 0..<bytes.count {
      let error = read(Array(bytes.prefix(length)), metadata)
      #expect(error.map(isTyped) == true, "cut at \(length)")
    }
  }

  @Test func `a file that is longer than it should be is an error`() throws {
    let (metadata, bytes) = try write(true)
    #expect(read(bytes + [0], metadata).map(isTyped) == true)
    #expect(read(bytes + bytes, metadata).map(isTyped) == true)
  }

  @Test func `blocks exchanged with one another are recognised`() throws {
    let (metadata, bytes) = try write(false)
    // The stored block at 64 is copied over a later place of the same length.
    let first = Array(bytes[64..<200])
    var failures = 0
    for place in stride(from: 200, to: bytes.count - 400, by: 7) {
      var damaged = bytes
      damaged.replaceSubrange(place..<(place + first.count), with: first)
      if damaged != bytes, read(damaged, metadata) != nil { failures += 1 }
    }
    #expect(failures == Array(stride(from: 200, to: bytes.count - 400, by: 7)).count)
  }

  @Test func `a file that belongs to another database or shard is refused`() throws {
    let (metadata, bytes) = try write(true)
    let directory = MemoryDirectory()
    directory.put(bytes, as: "7.seg")
    let cache = BlockCache(budgetBytes: 1 << 20)
    let stranger = DatabaseIdentity(low: 1, high: 1)
    for (identity, shard) in [(stranger, UInt32(1)), (testIdentity, 2)] {
      let segment = Segment(
        metadata, identity: identity, shard: shard, directory: directory, cache: cache)
      #expect(throws: EngineError.self) { try segment.open() }
    }
    var other = metadata
    other.salt += 1
    #expect(throws: EngineError.self) {
      try openSegment(other, in: directory, cache: cache).open()
    }
    #expect(cache.usedBytes == 0)
  }

  /// Damage under a correct checksum, as in a hostile file.
  @Test func `changes with their checksums made right never trap`() throws {
    let (metadata, bytes) = try write(false)
    var random = SeededRandom(seed: 12)
    for _ in 0..<4_000 {
      let part = Int.random(in: 0..<3, using: &random)
      let (damaged, changed) = try reseal(part, of: bytes, metadata) { raw in
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          let place = Int.random(in: 0..<min(raw.count, 60), using: &random)
          raw[place] =
            Bool.random(using: &random)
            ? .random(in: 0...255, using: &random)
            : [0, 1, 2, 255].randomElement(using: &random) ?? 0
        }
      }
      try readWithoutModel(damaged, changed)
    }
  }

  @Test func `a footer with fields of all kinds never traps`() throws {
    let (metadata, bytes) = try write(false)
    var random = SeededRandom(seed: 13)
    for _ in 0..<4_000 {
      var damaged = bytes
      let footer = bytes.count - SegmentFormat.footerLength
      let place = footer + 8 * Int.random(in: 1..<31, using: &random)
      let extremes: [UInt64] = [0, 1, 255, 1 << 31, 1 << 32, 1 << 63, .max, .max - 15]
      let value = extremes.randomElement(using: &random) ?? 0
      damaged.overwriteLittleEndian(value, at: place)
      if place == footer + 40 { continue }
      let checksum = seededChecksum(
        contextSeed(salt: metadata.salt, offset: UInt64(footer)),
        damaged.bytes.extracting(footer..<(footer + 248)))
      damaged.overwriteLittleEndian(checksum, at: bytes.count - 8)
      var changed = metadata
      changed.footerChecksum = checksum
      if place == footer + 72 { changed.entries = value }
      try readWithoutModel(damaged, changed)
    }
  }

  @Test func `a file of a newer version says so`() throws {
    let (metadata, bytes) = try write(true)
    let footer = bytes.count - SegmentFormat.footerLength
    for (offset, value) in [(8, UInt64(2) | 256 << 32), (16, 4)] {
      var newer = bytes
      newer.overwriteLittleEndian(value, at: footer + offset)
      let checksum = seededChecksum(
        contextSeed(salt: metadata.salt, offset: UInt64(footer)),
        newer.bytes.extracting(footer..<(footer + 248)))
      newer.overwriteLittleEndian(checksum, at: bytes.count - 8)
      guard case .needsNewerVersion = read(newer, metadata) else {
        Issue.record("\(String(describing: read(newer, metadata)))")
        continue
      }
    }
  }

  /// Reads in every way and ignores the answers.
  private func readWithoutModel(_ bytes: [UInt8], _ metadata: SegmentMetadata) throws {
    let directory = MemoryDirectory()
    directory.put(bytes, as: "7.seg")
    let run = Run([
      openSegment(metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))
    ])
    for row in rows { _ = try? find(row.key, in: run) }
    let cursor = run.cursor()
    var steps = 0
    try? cursor.seekToFirst()
    while cursor.isValid, steps < 200 {
      _ = cursor.copy
      guard (try? cursor.next()) != nil else { break }
      steps += 1
    }
    for row in rows where (try? cursor.seek(atOrBefore: row.key.bytes)) != nil {
      if cursor.isValid { _ = cursor.copy }
    }
  }

  /// Changes the first data block (0), the first index block (1) or the top of the index (2), and
  /// corrects all checksums above them.
  private func reseal(
    _ part: Int, of bytes: [UInt8], _ metadata: SegmentMetadata,
    _ change: (inout [UInt8]) -> Void
  ) throws -> ([UInt8], SegmentMetadata) {
    let reader = try SegmentFileReader.open(
      MemoryFile(name: "7.seg", bytes), SegmentErrors(file: "7.seg"))
    let footer = try reader.footer()
    let sections = try reader.sections(footer)
    let top = try reader.indexTop(sections, footer)
    defer { top.free() }
    let handle = try BlockHandle(top.value(0))
    var result = bytes
    switch part {
    case 0: resealBlock(&result, at: 64, length: firstBlockLength(bytes, handle), change)
    case 1:
      resealBlock(&result, at: Int(handle.offset), length: Int(handle.storedLength), change)
    default:
      let section = try #require(sections.first)
      let range = Int(section.offset)..<Int(section.offset + section.length)
      var raw = Array(bytes[range])
      change(&raw)
      result.replaceSubrange(range, with: raw)
    }
    return resealTable(result, footer, sections, metadata)
  }

  /// The first index block's first handle points to the first data block.
  private func firstBlockLength(_ bytes: [UInt8], _ index: BlockHandle) -> Int {
    let raw = Array(bytes[Int(index.offset)..<Int(index.offset + UInt64(index.storedLength))])
    let handleLength = 16
    let values = raw.count - Int(index.rowCount) * handleLength
    return Int(raw[values + 8]) | Int(raw[values + 9]) << 8
  }

  private func resealBlock(
    _ bytes: inout [UInt8], at offset: Int, length: Int, _ change: (inout [UInt8]) -> Void
  ) {
    var raw = Array(bytes[offset..<(offset + length)])
    change(&raw)
    bytes.replaceSubrange(offset..<(offset + length), with: raw)
    let checksum = seededChecksum(
      contextSeed(salt: 0x0102_0304_0506_0708, offset: UInt64(offset)),
      bytes.bytes.extracting(offset..<(offset + length + 8)))
    bytes.overwriteLittleEndian(checksum, at: offset + length + 8)
  }

  private func resealTable(
    _ bytes: [UInt8], _ footer: SegmentFooter, _ sections: [SegmentSection],
    _ metadata: SegmentMetadata
  ) -> ([UInt8], SegmentMetadata) {
    var result = bytes
    var table: [UInt8] = []
    for var section in sections {
      let range = Int(section.offset)..<Int(section.offset + section.length)
      section.checksum = seededChecksum(
        contextSeed(salt: footer.salt, offset: section.offset), result.bytes.extracting(range))
      section.append(to: &table)
    }
    result.replaceSubrange(
      Int(footer.sectionTableOffset)..<(Int(footer.sectionTableOffset) + table.count), with: table)
    var changedFooter = footer
    changedFooter.sectionTableChecksum = seededChecksum(
      contextSeed(salt: footer.salt, offset: footer.sectionTableOffset), table.bytes)
    let place = bytes.count - SegmentFormat.footerLength
    let (footerBytes, checksum) = changedFooter.encode(at: UInt64(place))
    result.replaceSubrange(place..., with: footerBytes)
    var changed = metadata
    changed.footerChecksum = checksum
    return (result, changed)
  }
}
