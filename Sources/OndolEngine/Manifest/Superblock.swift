// The file `SUPER`, where an open begins. It has four slots of 4,096 bytes, in two pairs far apart.
// Even epochs are written to the first slot of each pair and odd epochs to the second. So a torn
// write leaves the last good pair unchanged, and one bad sector leaves a copy. The superblock
// identifies the database, the features required to open it, and the current manifest. Everything
// else is in the manifest.

/// The contents of the superblock.
struct Superblock: Sendable, Equatable {
  static let name = "SUPER"
  static let slotLength = 4096
  static let slotOffsets: [UInt64] = [0, 4096, 65536, 69632]
  /// Begins with a byte that no text contains, and has both kinds of line end, so that a copy in
  /// text mode is detected.
  static let magic: [UInt8] = [0x89, 0x4F, 0x44, 0x4C, 0x0D, 0x0A, 0x1A, 0x0A]
  static let major: UInt16 = 1
  static let minor: UInt16 = 0
  /// A feature required to open a database, by bit: blocks, values, frames and contents are
  /// encrypted. Versions that do not support it report it by name.
  private static let encryptionBit = 0
  /// Files before some number are encrypted differently from those from it on.
  private static let changeBit = 1
  private static let changeOffset = 104
  private static let keptOffset = 128
  private static let olderOffset = keptOffset + SealFormat.keptLength
  private static let proofOffset = 1152
  private static let checksumOffset = 4088
  private static let checksumSeed: UInt64 = 0x4F4E_444F_4C53_4221

  var identity: DatabaseIdentity
  var epoch: UInt64
  var manifest: FileNumber
  var shardCount: UInt32
  /// Microseconds since 1970; for people only.
  var created: Int64
  var written: Int64
  /// The stored form of the key of an encrypted database.
  var kept: [UInt8]?
  /// The key change in progress, if any.
  private(set) var change: KeyChange?
  /// Proof that the author of these contents had the key.
  private(set) var proof: [UInt8] = []

  init(
    identity: DatabaseIdentity, epoch: UInt64, manifest: FileNumber, shardCount: UInt32,
    created: Int64, written: Int64
  ) {
    self.identity = identity
    self.epoch = epoch
    self.manifest = manifest
    self.shardCount = shardCount
    self.created = created
    self.written = written
  }

  /// Writes the slots of this epoch and makes them durable.
  func write(to file: any File) throws(EngineError) {
    let parity = Int(epoch & 1)
    for slot in [parity, parity + 2] {
      try file.write(encode(slot: slot).bytes, at: Self.slotOffsets[slot])
    }
    try file.sync()
  }

  /// Ensures that no slot fails to be written because of a full disk.
  static func makeRoom(in file: any File) throws(EngineError) {
    let end = (slotOffsets.last ?? 0) + UInt64(slotLength)
    _ = try file.reserve(0..<end)
  }

  private func encode(slot: Int) -> [UInt8] {
    var bytes = encodeProved() + proof
    bytes.append(contentsOf: repeatElement(0, count: Self.checksumOffset - bytes.count))
    bytes.appendLittleEndian(seededChecksum(Self.checksumSeed ^ UInt64(slot), bytes.bytes))
    return bytes
  }

  /// The bytes that the proof covers, if there is one.
  private func encodeProved() -> [UInt8] {
    var bytes = Self.magic
    bytes.appendLittleEndian(Self.major)
    bytes.appendLittleEndian(Self.minor)
    bytes.appendLittleEndian(UInt32(Self.slotLength))
    // Feature flags: required for opening, required for writing, and optional ones.
    let encryption: UInt64 = kept == nil ? 0 : 1 << UInt64(Self.encryptionBit)
    bytes.appendLittleEndian(encryption | (change == nil ? 0 : 1 << UInt64(Self.changeBit)))
    for _ in 0..<2 { bytes.appendLittleEndian(UInt64(0)) }
    bytes.appendLittleEndian(identity.low)
    bytes.appendLittleEndian(identity.high)
    bytes.appendLittleEndian(epoch)
    bytes.appendLittleEndian(UInt64(0))
    bytes.appendLittleEndian(manifest.rawValue)
    bytes.appendLittleEndian(shardCount)
    bytes.appendLittleEndian(UInt32(0))
    bytes.appendLittleEndian(created)
    bytes.appendLittleEndian(written)
    guard let kept else { return bytes }
    if let change {
      precondition(bytes.count == Self.changeOffset, "fields in front of what is read there")
      bytes.appendLittleEndian(change.border.rawValue)
      bytes.appendLittleEndian(UInt32((change.wasSealed ? 1 : 0) | (change.isSealed ? 2 : 0)))
    }
    bytes.append(contentsOf: repeatElement(0, count: Self.keptOffset - bytes.count))
    bytes += kept + (change?.older ?? [])
    bytes.append(contentsOf: repeatElement(0, count: Self.proofOffset - bytes.count))
    return bytes
  }

  /// The newest valid slot. Damaged or unreadable slots are skipped, and rewritten with the first
  /// change after the open or with the next epoch.
  static func read(from file: any File) throws(EngineError) -> Superblock {
    var newest: Superblock?
    var hasMagic = false
    var failure: EngineError?
    for (slot, read) in readSlots(of: file).enumerated() {
      let bytes: [UInt8]
      do throws(EngineError) {
        bytes = try read.get()
      } catch {
        failure = failure ?? error
        continue
      }
      hasMagic = hasMagic || bytes.starts(with: magic)
      guard let found = try decode(bytes.bytes, slot: slot) else { continue }
      if found.epoch > newest?.epoch ?? 0 { newest = found }
    }
    guard let newest else {
      if let failure { throw failure }
      throw hasMagic
        ? .corrupt(file: name, offset: 0, reason: "no superblock slot is sound")
        : .notADatabase(path: file.name, reason: "it does not begin as a superblock does")
    }
    return newest
  }

  /// The bytes of each slot. Adjacent slots are read at once, and individually if that fails: an
  /// unreadable sector must cost only one slot.
  private static func readSlots(of file: any File) -> [Result<[UInt8], EngineError>] {
    var slots: [Result<[UInt8], EngineError>] = []
    for first in stride(from: 0, to: slotOffsets.count, by: 2) {
      let pair = (try? file.read(at: slotOffsets[first], count: 2 * slotLength)) ?? []
      for slot in first...first + 1 {
        if pair.count == 2 * slotLength {
          slots.append(.success(Array(pair[((slot - first) * slotLength)...].prefix(slotLength))))
          continue
        }
        do throws(EngineError) {
          slots.append(.success(try file.read(at: slotOffsets[slot], count: slotLength)))
        } catch {
          slots.append(.failure(error))
        }
      }
    }
    return slots
  }

  /// The contents of each slot, in order: nil if the slot cannot be read, together with whether it
  /// was ever written.
  static func slots(
    in file: any File
  ) throws(EngineError) -> [(superblock: Superblock?, isBlank: Bool)] {
    var slots: [(superblock: Superblock?, isBlank: Bool)] = []
    for slot in slotOffsets.indices {
      let bytes = try file.read(at: slotOffsets[slot], count: slotLength)
      slots.append((try decode(bytes.bytes, slot: slot), bytes.allSatisfy { $0 == 0 }))
    }
    return slots
  }

  /// Whether any slot can be read.
  static func hasSoundSlot(in file: any File) throws(EngineError) -> Bool {
    for slot in slotOffsets.indices {
      guard let bytes = try? file.read(at: slotOffsets[slot], count: slotLength) else {
        return true
      }
      if try decode(bytes.bytes, slot: slot) != nil { return true }
    }
    return false
  }

  private static func decode(
    _ bytes: RawSpan, slot: Int
  ) throws(EngineError) -> Superblock? {
    guard bytes.byteCount == slotLength else { return nil }
    var reader = ByteReader(bytes)
    let found: Superblock
    let foundMajor: UInt16
    let incompatible: UInt64
    let readOnly: UInt64
    do throws(MalformedBytes) {
      guard try reader.take(8).array == magic else { return nil }
      var tail = ByteReader(bytes.extracting(droppingFirst: checksumOffset))
      let seed = checksumSeed ^ UInt64(slot)
      let body = bytes.extracting(first: checksumOffset)
      guard try tail.littleEndian(UInt64.self) == seededChecksum(seed, body) else { return nil }
      foundMajor = try reader.littleEndian()
      _ = try reader.littleEndian(UInt16.self)
      guard try reader.littleEndian(UInt32.self) == UInt32(slotLength) else { return nil }
      incompatible = try reader.littleEndian()
      readOnly = try reader.littleEndian()
      _ = try reader.littleEndian(UInt64.self)
      let identity = DatabaseIdentity(
        low: try reader.littleEndian(), high: try reader.littleEndian())
      let epoch: UInt64 = try reader.littleEndian()
      _ = try reader.littleEndian(UInt64.self)
      let manifest: UInt64 = try reader.littleEndian()
      let shardCount: UInt32 = try reader.littleEndian()
      _ = try reader.littleEndian(UInt32.self)
      var superblock = Superblock(
        identity: identity, epoch: epoch, manifest: FileNumber(rawValue: manifest),
        shardCount: shardCount, created: try reader.littleEndian(),
        written: try reader.littleEndian())
      if incompatible >> UInt64(encryptionBit) & 1 == 1 {
        var rest = ByteReader(bytes.extracting(droppingFirst: keptOffset))
        superblock.kept = try rest.take(SealFormat.keptLength).array
        if incompatible >> UInt64(changeBit) & 1 == 1 {
          superblock.change = try change(in: bytes)
        }
        rest = ByteReader(bytes.extracting(droppingFirst: proofOffset))
        superblock.proof = try rest.take(SealFormat.proofLength).array
      }
      found = superblock
    } catch {
      return nil
    }
    // A key change without a key is not valid.
    let known: UInt64 = found.kept == nil ? 0 : 1 << UInt64(encryptionBit) | 1 << UInt64(changeBit)
    let unknown = incompatible & ~known
    guard foundMajor == major, unknown == 0, readOnly == 0 else {
      throw .needsNewerVersion(
        file: name,
        reason: foundMajor == major
          ? names(of: unknown, or: readOnly) : "format \(foundMajor)")
    }
    guard (1...1024).contains(found.shardCount), found.epoch <= Bounds.greatestCounter,
      found.manifest.isPossible
    else { return nil }
    return found
  }

  private static func change(in bytes: RawSpan) throws(MalformedBytes) -> KeyChange {
    var reader = ByteReader(bytes.extracting(droppingFirst: changeOffset))
    let border = FileNumber(rawValue: try reader.littleEndian())
    let flags: UInt32 = try reader.littleEndian()
    guard border.isPossible, (1...3).contains(flags) else {
      throw MalformedBytes(at: changeOffset, "a change of keys that there cannot be")
    }
    var change = KeyChange(border: border, wasSealed: flags & 1 == 1, isSealed: flags & 2 == 2)
    guard change.firstOfOthers.isPossible else {
      throw MalformedBytes(at: changeOffset, "a change of keys behind all files")
    }
    if change.hasTwoKeys {
      var rest = ByteReader(bytes.extracting(droppingFirst: olderOffset))
      change.older = try rest.take(SealFormat.wrappedLength).array
    }
    return change
  }

  // MARK: - Keys

  /// The keys of the database; nil without encryption.
  ///
  /// - Throws: `.locked` or `.notEncrypted` if the vault does not belong to the database;
  ///   `.corrupt` if the superblock was changed without the key.
  func unlock(
    with vault: (any Vault)?, at path: String, random: @escaping @Sendable () -> UInt64
  ) throws(EngineError) -> Keyring? {
    guard let kept else {
      if vault != nil { throw .notEncrypted(path: path) }
      return nil
    }
    guard let vault else { throw .locked(path: path, reason: "it is opened with its key only") }
    let identity = identity.bytes
    guard let key = try vault.openKey(kept, for: identity) else {
      throw .locked(path: path, reason: "the key is another one")
    }
    // The newest key must vouch for it before another key is used.
    guard key.proof(of: encodeProved()) == proof else {
      throw .corrupt(
        file: Self.name, offset: UInt64(Self.proofOffset),
        reason: "it was not written with the database's key")
    }
    guard let change else {
      return Keyring(key, kept: kept, identity: identity, random: random)
    }
    guard
      let keyring = Keyring(key, kept: kept, change, identity: identity, random: random)
    else {
      throw .corrupt(
        file: Self.name, offset: UInt64(Self.olderOffset),
        reason: "the key that older files are sealed with cannot be opened")
    }
    return keyring
  }

  /// The keys according to this superblock, for a caller with the keys of an earlier one. Usually
  /// they are the same.
  ///
  /// - Throws: as `unlock`, and `.notEncrypted` if keys are gone although no change of keys had
  ///   announced that.
  func unlock(
    after earlier: Keyring?, with vault: (any Vault)?, at path: String,
    random: @escaping @Sendable () -> UInt64
  ) throws(EngineError) -> Keyring? {
    if kept == nil {
      guard let earlier, earlier.kept != nil else { return earlier }
      // Only a caller that saw a change towards no encryption can accept that the keys are gone.
      guard let change = earlier.change, !change.isSealed else {
        throw .notEncrypted(path: path)
      }
      return earlier.finishingChange()
    }
    if let earlier, earlier.change == change, earlier.proof(of: encodeProved()) == proof {
      return earlier
    }
    return try unlock(with: vault, at: path, random: random)?.remembering(earlier)
  }

  /// Records a proof that only a holder of the keys can write. It must be called after every
  /// change.
  mutating func prove(with keyring: Keyring?) {
    kept = keyring?.kept
    change = keyring?.change
    proof = keyring?.kept == nil ? [] : keyring?.proof(of: encodeProved()) ?? []
  }

  /// Features in words.
  private static func names(of needed: UInt64, or neededToWrite: UInt64) -> String {
    func list(_ bits: UInt64) -> [Int] { (0..<64).filter { bits >> $0 & 1 == 1 } }
    let features =
      list(needed).map { "feature \($0)" }
      + list(neededToWrite).map { "feature \($0) for writing" }
    return features.joined(separator: ", ")
  }
}

/// The version that this build reads and writes. It is one version, so that tools that show it need
/// no open file.
package enum FileFormat {
  /// Major and minor number, as in the superblock.
  package static var version: String { "\(Superblock.major).\(Superblock.minor)" }
}
