// The file `KEYS`: the keys of keyed groups, each encrypted with the database's key. It is separate
// from all other files, so that copies can be made without it. It is overwritten, never replaced,
// and contains two copies: a torn write leaves one copy, and once both are written and synced, the
// file contains no trace of a removed key. Each copy is evaluated separately. Before a valid copy
// is overwritten, the other one is made equal.
//
// A copy is 20,480 bytes; the second one begins at 32,768. Integers are little-endian.
//
//    0   8  89 'KEY' 0D 0A 1A 0A            64      32 entries of 512 bytes
//    8   4  version 2                              0   4  group; 0 where there is none
//   12   4  entries                                4   4  eras, 1 to 6
//   16   8  generation: the greater is newer       8  60  the key that names are made with, sealed
//   24  16  the database's identity               68  68  for each era: the number of the first
//   40  24  zeros                                         file (8), and the key (60), sealed
//                                       20440  32  proof of all before
//                                       20472   8  checksum of all before
//
// A key is encrypted like one database key with another, in the context of the identity, the group
// and the number of the first file; for names that number is 2^64 - 1. The proof shows that the
// writer of the whole had the database's key. Version 1 has zeros instead of a proof. It is valid
// only if the manifest records no generation, as manifests did not then.

/// The contents of `KEYS`, with encrypted keys.
package struct GroupKeysFile: Sendable, Equatable {
  package static let name = "KEYS"
  static let length = 20480
  static let offsets: [UInt64] = [0, 32768]
  static let mostEras = 6
  private static let magic: [UInt8] = [0x89, 0x4B, 0x45, 0x59, 0x0D, 0x0A, 0x1A, 0x0A]
  private static let version: UInt32 = 2
  private static let versionWithoutProof: UInt32 = 1
  private static let entriesOffset = 64
  private static let entryLength = 512
  private static let checksumOffset = length - 8
  private static let proofOffset = checksumOffset - SealFormat.proofLength
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

  let generation: UInt64
  let identity: [UInt8]
  var entries: [Entry]
  /// Proof that the writer had the database's key; empty in version 1.
  private(set) var proof: [UInt8] = []

  init(generation: UInt64, identity: [UInt8], entries: [Entry]) {
    self.generation = generation
    self.identity = identity
    self.entries = entries
  }

  // MARK: - Bytes

  func encode() -> [UInt8] {
    var bytes = encodeProved(as: proof.isEmpty ? Self.versionWithoutProof : Self.version)
    bytes += proof
    bytes.pad(to: Self.checksumOffset)
    bytes.appendLittleEndian(seededChecksum(Self.checksumSeed, bytes.bytes))
    return bytes
  }

  /// The bytes that the proof covers.
  private func encodeProved(as version: UInt32 = Self.version) -> [UInt8] {
    var bytes = Self.magic
    bytes.appendLittleEndian(version)
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
    bytes.pad(to: Self.proofOffset)
    return bytes
  }

  /// Records a proof that only a holder of the key can write. It must be called after every change.
  mutating func prove(with master: any MasterKey) { proof = master.proof(of: encodeProved()) }

  /// Whether one of these keys wrote it. A keyring without keys cannot tell.
  func isVouchedFor(by masters: [any MasterKey]) -> Bool {
    let bytes = encodeProved()
    return masters.contains { $0 is UnopenedKey || $0.proof(of: bytes) == proof }
  }

  /// The contents of a copy; nil if it is not valid.
  init?(_ bytes: RawSpan, of identity: [UInt8]) throws(MalformedBytes) {
    guard bytes.byteCount == Self.length, bytes.starts(with: Self.magic) else { return nil }
    var tail = ByteReader(bytes.extracting(droppingFirst: Self.checksumOffset))
    let sum = seededChecksum(Self.checksumSeed, bytes.extracting(first: Self.checksumOffset))
    guard try tail.littleEndian(UInt64.self) == sum else { return nil }
    var reader = ByteReader(bytes.extracting(droppingFirst: Self.magic.count))
    let version = try reader.littleEndian(UInt32.self)
    guard version == Self.version || version == Self.versionWithoutProof else {
      throw .newer(at: Self.magic.count, "a version that is not known")
    }
    let count = try reader.littleEndian(UInt32.self)
    generation = try reader.littleEndian()
    self.identity = try reader.take(identity.count).array
    guard self.identity == identity else {
      throw MalformedBytes(at: 24, "it belongs to another database")
    }
    guard generation <= Bounds.greatestCounter else {
      throw MalformedBytes(at: 16, "a generation that nothing can have come to")
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
    if version == Self.version {
      let place = Self.proofOffset..<Self.checksumOffset
      proof = bytes.extracting(place).array
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

  // MARK: - Reading

  /// One of the two copies.
  enum Copy: Sendable {
    case sound(GroupKeysFile)
    /// Why it is unreadable.
    case damaged(String)
    case unreadable(EngineError)

    /// Its contents, if there are any.
    var file: GroupKeysFile? {
      guard case .sound(let file) = self else { return nil }
      return file
    }
  }

  /// The two copies.
  ///
  /// - Parameter masters: keys, one of which must have written a copy with a proof.
  /// - Throws: `.needsNewerVersion` if a copy has an unknown version.
  static func copies(
    in file: any File, of identity: [UInt8], vouchedForBy masters: [any MasterKey]
  ) throws(EngineError) -> [Copy] {
    var copies: [Copy] = []
    for offset in offsets {
      copies.append(try copy(at: offset, in: file, of: identity, vouchedForBy: masters))
    }
    return copies
  }

  private static func copy(
    at offset: UInt64, in file: any File, of identity: [UInt8],
    vouchedForBy masters: [any MasterKey]
  ) throws(EngineError) -> Copy {
    let bytes: [UInt8]
    do throws(EngineError) {
      bytes = try file.read(at: offset, count: length)
    } catch {
      return .unreadable(error)
    }
    do throws(MalformedBytes) {
      guard let found = try GroupKeysFile(bytes.bytes, of: identity) else {
        return .damaged("it is damaged")
      }
      guard found.proof.isEmpty || found.isVouchedFor(by: masters) else {
        return .damaged("it was not written with the database's key")
      }
      return .sound(found)
    } catch {
      let error = EngineError(error, in: name, from: offset)
      if case .needsNewerVersion = error { throw error }
      return .damaged(error.description)
    }
  }

  /// The state of the file.
  struct Found: Sendable {
    /// Whether the file exists.
    var isThere = true
    /// The newest acceptable copy.
    var newest: GroupKeysFile?
    /// Whether the two copies differ from it.
    var isStale = false
    /// Why there is no acceptable copy.
    var problem: String?
  }

  /// Looks for the file, and for its newest copy with the required generation or a later one.
  ///
  /// - Throws: if no copy is acceptable and a possibly acceptable one cannot be read, because that
  ///   is inconclusive.
  static func read(
    in directory: any Directory, of identity: [UInt8], needed: UInt64,
    vouchedForBy masters: [any MasterKey]
  ) throws(EngineError) -> Found {
    let file: any File
    do throws(EngineError) {
      file = try directory.open(name, access: .readOnly)
    } catch {
      guard error.isMissingFile else { throw error }
      return Found(isThere: false, problem: "the file \(name) is not here")
    }
    let copies = try copies(in: file, of: identity, vouchedForBy: masters)
    let newest = newest(of: copies, needed: needed)
    if let newest, newest.generation >= needed {
      return Found(newest: newest, isStale: copies.contains { $0.file != newest })
    }
    for case .unreadable(let error) in copies { throw error }
    if let newest {
      return Found(problem: isOlder(newest.generation, than: needed))
    }
    let reasons = copies.compactMap { copy in
      if case .damaged(let reason) = copy { reason } else { nil }
    }
    return Found(problem: "the file \(name): \(reasons.first ?? "it has no proof")")
  }

  /// The newest valid copy up to a generation, whether or not it is new enough. A copy without a
  /// proof counts only if any generation is acceptable.
  private static func newest(
    of copies: [Copy], needed: UInt64, upTo latest: UInt64 = .max
  ) -> GroupKeysFile? {
    copies.compactMap(\.file)
      .filter { $0.generation <= latest && (needed == 0 || !$0.proof.isEmpty) }
      .max { $0.generation < $1.generation }
  }

  /// The problem with a file of this generation.
  static func isOlder(_ generation: UInt64, than needed: UInt64) -> String {
    "the file \(name) is older than the database: it is of generation \(generation), and"
      + " \(needed) is the least that will do"
  }

  /// The groups with a key in each valid copy.
  package static func groups(
    in file: any File, of identity: [UInt8]
  ) throws(EngineError) -> [[UInt32]] {
    try copies(in: file, of: identity, vouchedForBy: [UnopenedKey()])
      .compactMap { $0.file?.entries.map(\.group) }
  }

  // MARK: - Writing

  /// The result of making a file's copies equal.
  enum Mending: Sendable {
    /// They are equal, or no copy is valid.
    case done
    /// A copy cannot be read, and the other is not valid. Nothing was written.
    case refused(EngineError)
    /// A copy cannot be read, even after it was written.
    case failed(EngineError)
  }

  /// Makes both copies equal to the valid one, so that the valid one can be overwritten. The valid
  /// copy is not written. So whatever happens to the other one, the contents of the file stay the
  /// same.
  ///
  /// Writing repairs the copy, because a device moves an unreadable block when it is written.
  ///
  /// - Parameter latest: the generation that the open database uses. A later one is left from a
  ///   change that was not completed.
  static func mend(
    in directory: any Directory, of identity: [UInt8], needed: UInt64, upTo latest: UInt64,
    vouchedForBy masters: [any MasterKey]
  ) throws(EngineError) -> Mending {
    let file: any File
    do throws(EngineError) {
      file = try directory.open(name, access: .readWrite)
    } catch {
      guard error.isMissingFile else { throw error }
      return .done
    }
    let copies = try copies(in: file, of: identity, vouchedForBy: masters)
    let sound = newest(of: copies, needed: needed, upTo: latest)
    guard let sound, sound.generation >= needed else {
      for case .unreadable(let error) in copies { return .refused(error) }
      return .done
    }
    for (offset, copy) in zip(offsets, copies) where copy.file != sound {
      do throws(EngineError) {
        try sound.write(to: file, at: [offset])
      } catch {
        guard case .unreadable(let cause) = copy else { throw error }
        return .failed(cause)
      }
    }
    return .done
  }

  /// Writes both copies one after the other, syncs each to the device, and reads both back. It must
  /// be called after `mend`, or if there is nothing to lose.
  ///
  /// - Throws: a temporary error if nothing was written yet; `.poisoned` if the contents of the
  ///   file are unknown.
  func write(in directory: any Directory) throws(EngineError) {
    let file = try Self.openForWriting(in: directory)
    do throws(EngineError) {
      try write(to: file)
    } catch {
      throw .poisoned(reason: error.description)
    }
  }

  /// The file, created if missing, with space for both copies.
  private static func openForWriting(
    in directory: any Directory
  ) throws(EngineError) -> any File {
    let end = (offsets.last ?? 0) + UInt64(length)
    do throws(EngineError) {
      let file = try directory.open(name, access: .readWrite)
      _ = try file.reserve(0..<end)
      return file
    } catch {
      guard error.isMissingFile else { throw error }
    }
    let file = try directory.create(name)
    do throws(EngineError) {
      _ = try file.reserve(0..<end)
    } catch {
      if error.isPassing { try? directory.remove(name) }
      throw error
    }
    try directory.sync()
    return file
  }

  /// Writes copies into a file and reads them back.
  func write(to file: any File, at offsets: [UInt64] = Self.offsets) throws(EngineError) {
    let bytes = encode()
    for offset in offsets {
      try file.write(bytes.bytes, at: offset)
      try file.sync()
    }
    for offset in offsets where try file.read(at: offset, count: Self.length) != bytes {
      throw .corrupt(file: Self.name, offset: offset, reason: "it does not say what was written")
    }
  }
}

extension [UInt8] {
  fileprivate mutating func pad(to count: Int) {
    append(contentsOf: repeatElement(0, count: count - self.count))
  }
}
