// The file `KEYS`: the keys of keyed groups, each sealed with the database's. Apart from all other
// files, so that copies can be made without it. It is written over, never replaced, and stands in
// it twice: a write that tears leaves one copy, and once both are written and synced nothing of a
// key that was taken out stands in the file any more.
//
// A copy is 20,480 bytes; the second one begins at 32,768. Integers are little-endian.
//
//    0   8  89 'KEY' 0D 0A 1A 0A            64      32 entries of 512 bytes
//    8   4  version 1                              0   4  group; 0 where there is none
//   12   4  entries                                4   4  eras, 1 to 6
//   16   8  generation: the greater is newer       8  60  the key that names are made with, sealed
//   24  16  the database's identity               68  68  for each era: the number of the first
//   40  24  zeros                                         file (8), and the key (60), sealed
//                                       20472   8  checksum of all before
//
// A key is sealed as one database's key is with another, in the context of the identity, the group
// and the number of the first file; for names that number is 2^64 - 1.

/// What `KEYS` says, keys as they are sealed.
package struct GroupKeysFile: Sendable, Equatable {
  package static let name = "KEYS"
  static let length = 20480
  static let offsets: [UInt64] = [0, 32768]
  static let mostEras = 6
  private static let magic: [UInt8] = [0x89, 0x4B, 0x45, 0x59, 0x0D, 0x0A, 0x1A, 0x0A]
  private static let version: UInt32 = 1
  private static let entriesOffset = 64
  private static let entryLength = 512
  private static let checksumOffset = length - 8
  private static let checksumSeed: UInt64 = 0x4F4E_444F_4C4B_4559

  struct Era: Sendable, Equatable {
    var first: FileNumber
    var key: [UInt8]
  }

  struct Entry: Sendable, Equatable {
    var group: UInt32
    var naming: [UInt8]
    var eras: [Era]
  }

  var generation: UInt64
  var identity: [UInt8]
  var entries: [Entry]

  func encode() -> [UInt8] {
    var bytes = Self.magic
    bytes.appendLittleEndian(Self.version)
    bytes.appendLittleEndian(UInt32(entries.count))
    bytes.appendLittleEndian(generation)
    bytes += identity
    for (index, entry) in entries.enumerated() {
      bytes.pad(to: Self.entriesOffset + index * Self.entryLength)
      bytes.appendLittleEndian(entry.group)
      bytes.appendLittleEndian(UInt32(entry.eras.count))
      bytes += entry.naming
      for era in entry.eras {
        bytes.appendLittleEndian(era.first.rawValue)
        bytes += era.key
      }
    }
    bytes.pad(to: Self.checksumOffset)
    bytes.appendLittleEndian(seededChecksum(Self.checksumSeed, bytes.bytes))
    return bytes
  }

  /// What a copy says; nil where it is not sound.
  init?(_ bytes: RawSpan, of identity: [UInt8]) throws(MalformedBytes) {
    guard bytes.byteCount == Self.length, bytes.starts(with: Self.magic) else { return nil }
    var tail = ByteReader(bytes.extracting(droppingFirst: Self.checksumOffset))
    let sum = seededChecksum(Self.checksumSeed, bytes.extracting(first: Self.checksumOffset))
    guard try tail.littleEndian(UInt64.self) == sum else { return nil }
    var reader = ByteReader(bytes.extracting(droppingFirst: Self.magic.count))
    guard try reader.littleEndian(UInt32.self) == Self.version else {
      throw .newer(at: Self.magic.count, "a version that is not known")
    }
    let count = try reader.littleEndian(UInt32.self)
    generation = try reader.littleEndian()
    self.identity = try reader.take(identity.count).array
    guard self.identity == identity else {
      throw MalformedBytes(at: 24, "it belongs to another database")
    }
    guard count <= UInt32(KeyedGroups.mostAtOnce) else {
      throw MalformedBytes(at: 12, "\(count) keys")
    }
    entries = []
    for index in 0..<Int(count) {
      let start = Self.entriesOffset + index * Self.entryLength
      var reader = ByteReader(bytes.extracting(start..<(start + Self.entryLength)))
      let entry = try Self.entry(&reader)
      guard entries.last?.group ?? 0 < entry.group else {
        throw MalformedBytes(at: start, "keys out of order")
      }
      entries.append(entry)
    }
  }

  private static func entry(_ reader: inout ByteReader) throws(MalformedBytes) -> Entry {
    let group: UInt32 = try reader.littleEndian()
    let count: UInt32 = try reader.littleEndian()
    guard KeyedGroups.numbers.contains(group), (1...UInt32(mostEras)).contains(count) else {
      throw MalformedBytes(at: 0, "a key of group \(group) with \(count) eras")
    }
    var entry = Entry(
      group: group, naming: try reader.take(SealFormat.wrappedLength).array, eras: [])
    for _ in 0..<count {
      let first = FileNumber(rawValue: try reader.littleEndian())
      guard entry.eras.last.map({ $0.first < first }) ?? (first == .zero), first.isPossible else {
        throw MalformedBytes(at: reader.offset, "eras out of order")
      }
      entry.eras.append(Era(first: first, key: try reader.take(SealFormat.wrappedLength).array))
    }
    return entry
  }

  init(generation: UInt64, identity: [UInt8], entries: [Entry]) {
    self.generation = generation
    self.identity = identity
    self.entries = entries
  }

  // MARK: - Reading and writing

  /// What each copy says; nil for one that is not sound.
  static func copies(
    in file: any File, of identity: [UInt8]
  ) throws(EngineError) -> [GroupKeysFile?] {
    var copies: [GroupKeysFile?] = []
    for offset in offsets {
      let bytes = try file.read(at: offset, count: length)
      do throws(MalformedBytes) {
        copies.append(try GroupKeysFile(bytes.bytes, of: identity))
      } catch {
        throw EngineError(error, in: name)
      }
    }
    return copies
  }

  /// What the file says, and whether both copies say it; nil where neither can be read.
  static func read(
    from file: any File, of identity: [UInt8]
  ) throws(EngineError) -> (newest: GroupKeysFile, isWhole: Bool)? {
    let copies = try copies(in: file, of: identity)
    let newest = copies.compactMap(\.self).max { $0.generation < $1.generation }
    return newest.map { newest in (newest, copies.allSatisfy { $0 == newest }) }
  }

  /// The groups that each sound copy has a key of.
  package static func groups(
    in file: any File, of identity: [UInt8]
  ) throws(EngineError) -> [[UInt32]] {
    try copies(in: file, of: identity).compactMap { $0?.entries.map(\.group) }
  }

  /// Writes both copies, one after the other, and has each be on the device.
  func write(to file: any File) throws(EngineError) {
    let bytes = encode()
    for offset in Self.offsets {
      try file.write(bytes.bytes, at: offset)
      try file.sync()
    }
  }
}

extension [UInt8] {
  fileprivate mutating func pad(to count: Int) {
    append(contentsOf: repeatElement(0, count: count - self.count))
  }
}
