// The bytes of a pack: consecutive contents of ordinary size, so that a thousand images need only a
// few files and share their syncs. Entries are appended to a pack until it is full; its bytes never
// change. An entry describes itself, so that locations can be rebuilt from packs alone.
//
//   header 64 | entries
//
// Integers are little-endian. `X(offset, bytes)` is the seeded checksum with the file's salt.
//
// Header: that of all data files, with magic 89 'O' 'D' 'P' 0D 0A 1A 0A and shard 0.
//
// Entry, at a multiple of 8
//    0   4  'O' 'D' 'E' 01
//    4   4  bytes of the content
//    8   4  bytes of the entry
//   12   4  frames
//   16  32  digest of the content
//   48   8  X(offset of the entry, bytes 0..<48 ++ frame table)
//   56      frame table, 8 a frame: stored bytes (4), low half of X(offset of the frame, those) (4)
//           frames
//
// In an encrypted pack an entry begins with 'O' 'D' 'E' 02. The table is followed by 6 random
// bytes, 2 zeros and a tag of 16, which the head's checksum covers as well. The digest is encrypted
// with bytes 0..<16 as its context. Each frame is encrypted separately after compression, and its
// tag counts among its stored bytes. The nonces are made of the entry's offset, the frame's index
// and the random bytes, because after a power cut that erases an entry without a trace, another is
// written at the same place.
//
// A frame is 64 KiB of the content; the last one is the rest. It is compressed (LZ4) if it has
// fewer stored bytes than that. The space after an entry, up to the next multiple of 8, is filled
// with zeros. Whatever a crash or a full disk has truncated is not an entry; it may be anywhere,
// and is dead.

/// How a content is divided, in packs and in files of its own.
package enum ContentFrame {
  /// Bytes of a content that one checksum covers.
  package static let length = 64 << 10
  /// The largest content, whose checksums must fit into a row.
  package static let largestContent: UInt64 = 1 << 39

  package static func count(ofContent length: UInt64) -> Int {
    Int((length + UInt64(Self.length) - 1) / UInt64(Self.length))
  }

  /// The bytes of a content that are in a frame.
  package static func range(_ frame: Int, ofContent length: Int) -> Range<Int> {
    let start = frame * Self.length
    return start..<min(start + Self.length, length)
  }

  /// The location of a frame among the encrypted frames of a content, each followed by its tag.
  package static func sealedRange(_ frame: Int, ofContent length: Int) -> Range<Int> {
    let start = frame * (Self.length + SealFormat.tagLength)
    return start..<(start + range(frame, ofContent: length).count + SealFormat.tagLength)
  }

  /// The checksum of a frame that is stored at `offset`.
  static func checksum(_ stored: RawSpan, salt: UInt64, offset: UInt64) -> UInt32 {
    UInt32(truncatingIfNeeded: seededChecksum(contextSeed(salt: salt, offset: offset), stored))
  }
}

extension DataFileHeader.Kind {
  static let pack = Self(magic: [0x89, 0x4f, 0x44, 0x50, 0x0d, 0x0a, 0x1a, 0x0a])
  /// One encrypted content. Without encryption the file has no header.
  static let content = Self(magic: [0x89, 0x4f, 0x44, 0x43, 0x0d, 0x0a, 0x1a, 0x0a])
}

/// Numbers of the format.
enum PackFormat {
  static let entryMagic: [UInt8] = [0x4f, 0x44, 0x45, 0x01]
  static let sealedEntryMagic: [UInt8] = [0x4f, 0x44, 0x45, 0x02]
  /// The part of an entry's head that is authenticated together with its digest.
  static let sealedContextLength = 16
  /// The random bytes and the tag after the table of an encrypted entry.
  static let sealedHeadLength = 8 + SealFormat.tagLength
  static let alignment: UInt64 = 8
  static let entryHeaderLength = 56
  /// The part of an entry's header that its checksum covers in addition to the table.
  static let checkedLength = 48
  static let tableRowLength = 8
  static let digestLength = 32

  /// The largest content in a pack.
  static let largestContent = 4 << 20
  static let largestEntry =
    leastEntry(ofContent: largestContent) + largestContent + sealedHeadLength
    + ContentFrame.count(ofContent: UInt64(largestContent)) * SealFormat.tagLength
  static let largestOffset: UInt64 = 1 << 40

  /// Bytes before an entry's frames.
  static func headLength(frames: Int, isSealed: Bool = false) -> Int {
    entryHeaderLength + frames * tableRowLength + (isSealed ? sealedHeadLength : 0)
  }

  /// The random bits of an entry: as many as fit into its nonces.
  static let chanceMask: UInt64 = (1 << 48) - 1

  /// The nonce of the digest if `part` is 0, otherwise of a frame, counted from 1.
  static func nonce(entryAt offset: UInt64, _ part: Int, _ chance: UInt64) -> SealNonce {
    SealNonce(
      place: offset | UInt64(part) << 40 | (chance & 0xFFFF) << 48,
      extra: UInt32(truncatingIfNeeded: chance >> 16))
  }

  /// The bytes before the frames of a content of this length, plus one for each frame.
  static func leastEntry(ofContent length: Int) -> Int {
    let frames = ContentFrame.count(ofContent: UInt64(length))
    return headLength(frames: frames) + frames
  }

  static func aligned(_ length: UInt64) -> UInt64 { (length + alignment - 1) & ~(alignment - 1) }
}

// MARK: - Writing

/// A content prepared for a pack, except for the checksums, which depend on its location.
struct PackEntryDraft: Sendable {
  let digest: [UInt8]
  let length: Int
  /// Bytes of each stored frame, without its tag.
  private(set) var frameLengths: [Int] = []
  /// The stored frames, or the content's own bytes if none is compressed.
  private(set) var stored: [UInt8]

  /// Bytes in the middle of a content that are compressed as a sample, to see whether it is worth
  /// it.
  private static let sampleLength = 4 << 10

  /// - Parameter compress: whether it may be compressed.
  init(_ content: [UInt8], digest: [UInt8], compress: Bool) {
    precondition(digest.count == PackFormat.digestLength, "a digest has 32 bytes")
    precondition(content.count <= PackFormat.largestContent, "a content too large for a pack")
    self.digest = digest
    length = content.count
    let frames = (0..<ContentFrame.count(ofContent: UInt64(content.count))).map {
      ContentFrame.range($0, ofContent: content.count)
    }
    frameLengths.reserveCapacity(frames.count)
    guard compress, Self.isWorthCompressing(content) else {
      stored = content
      frameLengths = frames.map(\.count)
      return
    }
    stored = []
    stored.reserveCapacity(content.count)
    for frame in frames {
      let start = stored.count
      let raw = content.bytes.extracting(frame)
      if !Compression.compress(raw, appendingTo: &stored) { stored.append(raw) }
      frameLengths.append(stored.count - start)
    }
  }

  private static func isWorthCompressing(_ content: [UInt8]) -> Bool {
    let start = max(0, content.count - sampleLength) / 2
    let sample = content.bytes.extracting(start..<min(content.count, start + sampleLength))
    var output: [UInt8] = []
    return Compression.compress(sample, appendingTo: &output)
  }

  /// Bytes of the entry in an encrypted pack, or in one that is not encrypted.
  func entryLength(isSealed: Bool) -> Int {
    let tags = isSealed ? frameLengths.count * SealFormat.tagLength : 0
    return PackFormat.headLength(frames: frameLengths.count, isSealed: isSealed)
      + stored.count + tags
  }

  /// Appends the entry in the form for `offset`, and the padding after it.
  ///
  /// - Parameter seal: encrypts the pack, if it is encrypted.
  func append(to bytes: inout [UInt8], salt: UInt64, offset: UInt64, seal: FileSeal? = nil) {
    let isSealed = seal != nil
    let chance = (seal?.random() ?? 0) & PackFormat.chanceMask
    let head = bytes.count
    let headLength = PackFormat.headLength(frames: frameLengths.count, isSealed: isSealed)
    // Space for the head, which is known once the frames are written.
    bytes.append(contentsOf: repeatElement(0, count: headLength))
    var table: [UInt8] = []
    table.reserveCapacity(headLength - PackFormat.entryHeaderLength)
    var start = 0
    for (index, length) in frameLengths.enumerated() {
      let place = bytes.count
      bytes += stored[start..<(start + length)]
      seal?.seal(
        &bytes, from: place, PackFormat.nonce(entryAt: offset, index + 1, chance), context: [])
      table.appendLittleEndian(UInt32(bytes.count - place))
      table.appendLittleEndian(
        ContentFrame.checksum(
          bytes.bytes.extracting(droppingFirst: place), salt: salt,
          offset: offset + UInt64(place - head)))
      start += length
    }
    var header = seal == nil ? PackFormat.entryMagic : PackFormat.sealedEntryMagic
    header.appendLittleEndian(UInt32(length))
    header.appendLittleEndian(UInt32(entryLength(isSealed: isSealed)))
    header.appendLittleEndian(UInt32(frameLengths.count))
    var name = digest
    if let seal {
      seal.seal(&name, from: 0, PackFormat.nonce(entryAt: offset, 0, chance), context: header)
      table.appendLittleEndian(chance)
      table += name[PackFormat.digestLength...]
    }
    header += name[..<PackFormat.digestLength]
    header.appendLittleEndian(
      seededChecksum(contextSeed(salt: salt, offset: offset), header.bytes, table.bytes))
    bytes.replaceSubrange(head..<(head + headLength), with: header + table)
    let length = UInt64(entryLength(isSealed: isSealed))
    bytes.append(contentsOf: repeatElement(0, count: Int(PackFormat.aligned(length) - length)))
  }
}

// MARK: - Reading

/// The head of an entry: its description and the layout of its frames.
package struct PackEntry: Sendable, Equatable {
  /// A stored frame.
  struct Frame: Sendable, Equatable {
    /// Its start relative to the entry.
    var start: Int
    var storedLength: Int
    var checksum: UInt32
  }

  package var digest: [UInt8]
  package var length: Int
  package var entryLength: Int
  var frames: [Frame]
  /// The random bits of an encrypted entry's nonces.
  private var chance: UInt64 = 0

  /// Bytes of the head of the entry that starts with these bytes.
  static func headLength(_ bytes: RawSpan, isSealed: Bool = false) throws(MalformedBytes) -> Int {
    var reader = ByteReader(bytes)
    let magic = isSealed ? PackFormat.sealedEntryMagic : PackFormat.entryMagic
    guard try reader.take(4).array == magic else {
      throw MalformedBytes(at: 0, "no entry of a pack begins here")
    }
    let length = try reader.littleEndian(UInt32.self)
    _ = try reader.littleEndian(UInt32.self)
    let frames = try reader.littleEndian(UInt32.self)
    guard length <= UInt32(PackFormat.largestContent),
      Int(frames) == ContentFrame.count(ofContent: UInt64(length))
    else { throw MalformedBytes(at: 4, "\(length) bytes in \(frames) frames") }
    return PackFormat.headLength(frames: Int(frames), isSealed: isSealed)
  }

  /// Verifies the head at the start of `bytes`, which are at `offset` of a pack.
  ///
  /// - Parameter seal: decrypts the pack, if it is encrypted.
  init(
    _ bytes: RawSpan, salt: UInt64, offset: UInt64, seal: FileSeal? = nil
  ) throws(MalformedBytes) {
    let headLength = try Self.headLength(bytes, isSealed: seal != nil)
    var reader = ByteReader(bytes)
    _ = try reader.take(4)
    length = Int(try reader.littleEndian(UInt32.self))
    entryLength = Int(try reader.littleEndian(UInt32.self))
    let count = Int(try reader.littleEndian(UInt32.self))
    digest = try reader.take(PackFormat.digestLength).array
    let checksum: UInt64 = try reader.littleEndian()
    let table = try reader.take(headLength - PackFormat.entryHeaderLength)
    let computed = seededChecksum(
      contextSeed(salt: salt, offset: offset), bytes.extracting(first: PackFormat.checkedLength),
      table)
    guard checksum == computed else {
      throw MalformedBytes(at: 0, "the checksum of an entry's head does not match")
    }
    var rows = ByteReader(table)
    frames = []
    frames.reserveCapacity(count)
    var start = headLength
    for index in 0..<count {
      let storedLength = Int(try rows.littleEndian(UInt32.self))
      let rawLength = ContentFrame.range(index, ofContent: length).count
      let overhead = seal == nil ? 0 : SealFormat.tagLength
      guard storedLength > overhead, storedLength <= rawLength + overhead else {
        throw MalformedBytes(at: headLength, "a frame of \(storedLength) bytes for \(rawLength)")
      }
      frames.append(
        Frame(
          start: start, storedLength: storedLength, checksum: try rows.littleEndian()))
      start += storedLength
    }
    guard start == entryLength else {
      throw MalformedBytes(at: 8, "an entry of \(entryLength) bytes whose frames end at \(start)")
    }
    guard let seal else { return }
    chance = try rows.littleEndian()
    guard chance <= PackFormat.chanceMask else { throw FileSeal.forged }
    let name = digest + (try rows.take(SealFormat.tagLength).array)
    let context = bytes.extracting(first: PackFormat.sealedContextLength).array
    digest = []
    guard
      seal.open(
        name.bytes, PackFormat.nonce(entryAt: offset, 0, chance), context: context,
        appendingTo: &digest)
    else { throw FileSeal.forged }
  }

  /// Appends the part of the content that is in `frame`. `stored` are the bytes of the frame, at
  /// `offset` of the pack.
  func appendRaw(
    _ frame: Int, from stored: RawSpan, salt: UInt64, offset: UInt64, seal: FileSeal? = nil,
    to output: inout [UInt8]
  ) throws(MalformedBytes) {
    guard
      ContentFrame.checksum(stored, salt: salt, offset: offset) == frames[frame].checksum
    else { throw MalformedBytes(at: 0, "the checksum of a frame does not match") }
    guard let seal else { return try appendRaw(frame, from: stored, to: &output) }
    let entry = offset - UInt64(frames[frame].start)
    var opened: [UInt8] = []
    guard
      seal.open(
        stored, PackFormat.nonce(entryAt: entry, frame + 1, chance), context: [],
        appendingTo: &opened)
    else { throw FileSeal.forged }
    try appendRaw(frame, from: opened.bytes, to: &output)
  }

  private func appendRaw(
    _ frame: Int, from stored: RawSpan, to output: inout [UInt8]
  ) throws(MalformedBytes) {
    let rawLength = ContentFrame.range(frame, ofContent: length).count
    if stored.byteCount == rawLength { return output.append(stored) }
    guard Compression.decompress(stored, appending: rawLength, to: &output) else {
      throw MalformedBytes(at: 0, "a frame is not what was compressed")
    }
  }
}
