// Files of a newer version are refused by name, so that nobody takes them for damage, and salvages
// or removes them.

import OndolTestKit
import Testing

@testable import OndolEngine

extension EngineError {
  fileprivate var isNewer: Bool {
    if case .needsNewerVersion = self { true } else { false }
  }
}

private func newer<R>(_ body: () throws(EngineError) -> R) -> EngineError? {
  do throws(EngineError) {
    _ = try body()
    return nil
  } catch {
    return error
  }
}

@Suite struct `What a newer version wrote` {
  @Test func `shows in the superblock, which names the required feature`() throws {
    for (offset, bit, name) in [(16, 1, "feature 1"), (16, 5, "feature 5"), (24, 0, "feature 0")] {
      let directory = MemoryDirectory()
      let file = try directory.create(Superblock.name)
      var superblock = ManifestSamples.superblock()
      try superblock.write(to: file)
      superblock.epoch = 2
      try superblock.write(to: file)
      var bytes = try #require(directory.file(Superblock.name)).bytes
      for (slot, start) in Superblock.slotOffsets.map(Int.init).enumerated() {
        bytes[start + offset] |= 1 << UInt8(bit)
        bytes.overwriteLittleEndian(
          seededChecksum(
            0x4F4E_444F_4C53_4221 ^ UInt64(slot),
            bytes.bytes.extracting(start..<(start + 4_088))), at: start + 4_088)
      }
      directory.put(bytes, as: Superblock.name)
      let damaged = try directory.open(Superblock.name, access: .readOnly)
      let error = newer { () throws(EngineError) in try Superblock.read(from: damaged) }
      #expect(error?.isNewer == true)
      #expect(error?.description.contains(name) == true)
    }
  }

  private func salt(of directory: MemoryDirectory) throws -> UInt64 {
    let bytes = try #require(directory.file("MANIFEST-1")).bytes
    return try ManifestHeader.read(bytes.bytes, of: ManifestSamples.superblock()).salt
  }

  @Test func `shows in a change of the manifest, unless it may be ignored`() throws {
    for tag in [30, 98, 1_000, 23, 99] {
      let directory = MemoryDirectory()
      let manifest = try ManifestSamples.make(ManifestSamples.state(), in: directory, .memory())
      let file = try #require(directory.file("MANIFEST-1"))
      let read = try ReadManifest.read(ManifestSamples.superblock(), file, limit: 1 << 20)
      var payload: [UInt8] = []
      payload.appendLittleEndian(read.chain)
      payload.appendVarint(UInt64(tag))
      payload.appendVarint(UInt64(2))
      payload += [1, 2]
      let frames = FrameBuilder.buildEdit(
        payload, ordinal: 2, time: 5, salt: read.header.salt, offset: manifest.offset)
      try file.write(frames.bytes, at: manifest.offset)
      let error = newer { () throws(EngineError) in
        try Manifest.load(
          ManifestSamples.superblock(), directory: directory, environment: .memory(),
          rotationSize: 1 << 20)
      }
      #expect(error?.isNewer == (tag.isMultiple(of: 2) ? true : nil), "change \(tag)")
    }
  }

  @Test func `shows in a frame of the manifest, and in its header`() throws {
    let directory = MemoryDirectory()
    let manifest = try ManifestSamples.make(ManifestSamples.state(), in: directory, .memory())
    let sound = try #require(directory.file("MANIFEST-1")).bytes
    let salt = try salt(of: directory)
    for (place, value) in [(4, 9 as UInt8), (5, 1), (6, 2)] {
      var frame = FrameBuilder.buildEdit(
        [UInt8](repeating: 0, count: 16), ordinal: 2, time: 5, salt: salt, offset: manifest.offset)
      frame[place] = value
      let seed = contextSeed(salt: salt, offset: manifest.offset)
      frame.overwriteLittleEndian(
        seededChecksum(seed, frame.bytes.extracting(first: 48)), at: 48)
      directory.put(Array(sound.prefix(Int(manifest.offset))) + frame, as: "MANIFEST-1")
      let error = newer { () throws(EngineError) in
        try Manifest.load(
          ManifestSamples.superblock(), directory: directory, environment: .memory(),
          rotationSize: 1 << 20)
      }
      #expect(error?.isNewer == true, "byte \(place)")
    }
    var header = sound
    header[8] = 3
    let magic: UInt64 = 0x0A1A_0A0D_4E4D_4C89
    header.overwriteLittleEndian(seededChecksum(magic, header.bytes.extracting(first: 56)), at: 56)
    directory.put(header, as: "MANIFEST-1")
    let error = newer { () throws(EngineError) in
      try Manifest.load(
        ManifestSamples.superblock(), directory: directory, environment: .memory(),
        rotationSize: 1 << 20)
    }
    #expect(error?.isNewer == true)
  }

  /// Byte 4 of the trailer is the codec, 5 the kind, 6 the cipher, and 7 the amount of spare bytes.
  @Test(arguments: [4, 5, 6, 7])
  func `shows in a block`(_ place: Int) throws {
    let raw = [UInt8](repeating: 3, count: 40)
    var bytes: [UInt8] = []
    let length = StoredBlock.seal(
      raw.bytes, kind: .data, compress: false, salt: 7, offset: 64, appendingTo: &bytes)
    bytes[length + place] = 9
    let checksum = seededChecksum(
      contextSeed(salt: 7, offset: 64), bytes.bytes.extracting(first: length + 8))
    bytes.overwriteLittleEndian(checksum, at: length + 8)
    var found: MalformedBytes?
    do throws(MalformedBytes) {
      _ = try StoredBlock.Opened(bytes.bytes, kind: .data, salt: 7, offset: 64)
    } catch {
      found = error
    }
    let error = try #require(found)
    #expect(SegmentErrors(file: "7.seg").corrupt(error, from: 64).isNewer)
  }

  @Test(arguments: [8, 9, 10, 15])
  func `shows in a value`(_ place: Int) throws {
    let directory = MemoryDirectory()
    let written = try writeValues([[UInt8](repeating: 5, count: 30)], to: directory)
    let name = written.metadata.number.valueFileName
    var bytes = try #require(directory.file(name)).bytes
    let pointer = written.pointers[0]
    let start = Int(pointer.offset)
    bytes[start + place] = 9
    let seed = contextSeed(salt: written.metadata.salt, offset: pointer.offset)
    let checksum = seededChecksum(
      seed, bytes.bytes.extracting(start..<(start + 16)),
      bytes.bytes.extracting((start + 24)..<bytes.count))
    bytes.overwriteLittleEndian(checksum, at: start + 16)
    directory.put(bytes, as: name)
    var changed = pointer
    changed.checksum = UInt32(truncatingIfNeeded: checksum)
    let file = openValues(
      written.metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))
    let error = newer { () throws(EngineError) in try file.value(changed) }
    #expect(error?.isNewer == true)
  }
}
