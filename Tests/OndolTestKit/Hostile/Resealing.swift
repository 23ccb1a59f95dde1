// Corrects checksums after damage, so that the code after the checks is tested as well. It learns
// their places from the sound files: frames by their lengths, blocks of segments by searching for
// the place at which a checksum fits.

internal import OndolEngine

/// The places of checksums in some sound files.
struct Resealing: Sendable {
  private static let frameHeader = 56
  private static let dataHeader = 64
  private static let trailer = 16
  private static let footer = 256

  private let sound: [String: [UInt8]]
  /// For every segment its blocks without their trailers, for every value file its records without
  /// their heads, for logs and manifests the payloads of their frames.
  private var pieces: [String: [Range<Int>]] = [:]

  init(_ sound: [String: [UInt8]]) {
    self.sound = sound
    for (name, bytes) in sound {
      switch FileClass(name: name) {
      case .log: pieces[name] = Self.frames(in: bytes, from: pageSize)
      case .manifest: pieces[name] = Self.frames(in: bytes, from: Self.dataHeader)
      case .segment: pieces[name] = Self.blocks(in: bytes)
      case .values: pieces[name] = Self.records(in: bytes)
      case .superblock, .contents, .keys, .directory, .other: break
      }
    }
  }

  /// Corrects the checksums of the file `name`, and those of others that name them.
  func seal(_ name: String, in files: inout [String: [UInt8]]) {
    guard var bytes = files[name], bytes.count == sound[name]?.count else { return }
    let pieces = pieces[name] ?? []
    switch FileClass(name: name) {
    case .superblock: sealSlots(&bytes)
    case .log:
      for start in [0, pageSize / 2] { sealHeader(&bytes, at: start, length: 248) }
      sealFrames(&bytes, pieces, isChained: false)
    case .manifest:
      sealHeader(&bytes, at: 0, length: 56)
      sealFrames(&bytes, pieces, isChained: true)
    case .segment:
      sealSegment(&bytes, pieces)
      files[name] = bytes
      return renameFooter(of: name, in: &files)
    case .values: sealRecords(&bytes, pieces)
    case .contents, .keys, .directory, .other: break
    }
    files[name] = bytes
  }

  // MARK: - Superblock, log, manifest

  private func sealSlots(_ bytes: inout [UInt8]) {
    for (slot, start) in [0, 4_096, 65_536, 69_632].enumerated()
    where start + pageSize <= bytes.count && bytes[start] != 0 {
      let body = start..<(start + pageSize - 8)
      bytes.seal(body, seed: 0x4F4E_444F_4C53_4221 ^ UInt64(slot), at: body.upperBound)
    }
  }

  /// The seed is the magic, as a number.
  private func sealHeader(_ bytes: inout [UInt8], at start: Int, length: Int) {
    guard start + length + 8 <= bytes.count else { return }
    bytes.seal(start..<(start + length), seed: bytes.word(at: start), at: start + length)
  }

  private func sealFrames(_ bytes: inout [UInt8], _ payloads: [Range<Int>], isChained: Bool) {
    let salt = bytes.word(at: 40)
    var chain: UInt64 = 0
    for payload in payloads where payload.upperBound <= bytes.count {
      if isChained, payload.count >= 8 {
        bytes.overwriteLittleEndian(chain, at: payload.lowerBound)
        chain = seededChecksum(chain, bytes.bytes.extracting(payload))
      }
      let header = payload.lowerBound - Self.frameHeader
      bytes.overwriteLittleEndian(crc32c(bytes.bytes.extracting(payload)), at: header + 40)
      bytes.seal(
        header..<(header + 48), seed: contextSeed(salt: salt, offset: UInt64(header)),
        at: header + 48)
    }
  }

  private static func frames(in bytes: [UInt8], from start: Int) -> [Range<Int>] {
    var frames: [Range<Int>] = []
    var offset = start
    while offset + frameHeader <= bytes.count, bytes[offset + 4] != 0 {
      let payload = offset + frameHeader
      let end = payload + Int(bytes.word(at: offset) & 0xFFFF_FFFF)
      guard end <= bytes.count else { break }
      frames.append(payload..<end)
      offset = (end + 7) & ~7
    }
    return frames
  }

  // MARK: - Segments and value files

  private func sealSegment(_ bytes: inout [UInt8], _ blocks: [Range<Int>]) {
    let salt = bytes.word(at: 24)
    bytes.seal(0..<56, seed: salt, at: 56)
    for block in blocks {
      bytes.seal(block.lowerBound..<(block.upperBound + 8), salt: salt)
    }
    let footer = bytes.count - Self.footer
    let (table, count) = (bytes.word(at: footer + 136), bytes.word(at: footer + 144) & 0xFF)
    guard table <= UInt64(footer) else { return }
    let sections = Int(table)..<min(Int(table) + 32 * Int(count), footer)
    for entry in stride(from: sections.lowerBound, to: sections.upperBound - 31, by: 32) {
      let (start, length) = (bytes.word(at: entry + 8), bytes.word(at: entry + 16))
      guard start < UInt64(bytes.count), length <= UInt64(bytes.count) - start else { continue }
      let place = Int(start)..<Int(start + length)
      bytes.seal(place, seed: contextSeed(salt: salt, offset: start), at: entry + 24)
    }
    bytes.seal(
      sections, seed: contextSeed(salt: salt, offset: UInt64(sections.lowerBound)),
      at: footer + 152)
    bytes.seal(footer..<(footer + 248), salt: salt)
  }

  /// The manifest contains the checksum of the segment's footer.
  private func renameFooter(of name: String, in files: inout [String: [UInt8]]) {
    guard let old = sound[name]?.suffix(8), let new = files[name]?.suffix(8) else { return }
    for (manifest, bytes) in files where FileClass(name: manifest) == .manifest {
      guard let place = bytes.firstRange(of: old) else { continue }
      files[manifest]?.replaceSubrange(place, with: new)
      seal(manifest, in: &files)
    }
  }

  /// Blocks follow each other from the header on. Each ends where a checksum fits.
  private static func blocks(in bytes: [UInt8]) -> [Range<Int>] {
    let salt = bytes.word(at: 24)
    var blocks: [Range<Int>] = []
    var start = dataHeader
    while let end = (start..<max(start, bytes.count - footer - trailer)).first(where: { end in
      let seed = contextSeed(salt: salt, offset: UInt64(start))
      return bytes.word(at: end + 8)
        == seededChecksum(seed, bytes.bytes.extracting(start..<(end + 8)))
    }) {
      blocks.append(start..<end)
      start = end + trailer
    }
    return blocks
  }

  private func sealRecords(_ bytes: inout [UInt8], _ records: [Range<Int>]) {
    let salt = bytes.word(at: 24)
    bytes.seal(0..<56, seed: salt, at: 56)
    for record in records {
      let head = record.lowerBound - 24
      let sum = seededChecksum(
        contextSeed(salt: salt, offset: UInt64(head)),
        bytes.bytes.extracting(head..<(head + 16)), bytes.bytes.extracting(record))
      bytes.overwriteLittleEndian(sum, at: head + 16)
    }
  }

  private static func records(in bytes: [UInt8]) -> [Range<Int>] {
    var records: [Range<Int>] = []
    var head = dataHeader
    while head + 24 <= bytes.count {
      let end = head + 24 + Int(bytes.word(at: head) >> 32)
      guard end <= bytes.count else { break }
      records.append((head + 24)..<end)
      head = end
    }
    return records
  }
}

extension [UInt8] {
  /// Eight bytes as a number; zero after the end.
  fileprivate func word(at offset: Int) -> UInt64 {
    guard offset >= 0, offset + 8 <= count else { return 0 }
    return self[offset..<(offset + 8)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  fileprivate mutating func seal(_ place: Range<Int>, seed: UInt64, at offset: Int) {
    overwriteLittleEndian(seededChecksum(seed, bytes.extracting(place)), at: offset)
  }

  /// With the checksum directly after it, which depends on its place in the file.
  fileprivate mutating func seal(_ place: Range<Int>, salt: UInt64) {
    seal(
      place, seed: contextSeed(salt: salt, offset: UInt64(place.lowerBound)),
      at: place.upperBound)
  }
}
