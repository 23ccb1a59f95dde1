// The keys of an encrypted database, made and wrapped with swift-crypto. The app's key is never
// used on the database's bytes: it wraps a random key, which the superblock stores up to four
// times, each time under another of the app's keys. Everything else is derived from that random
// key.
//
// The superblock's part, 960 bytes: version 1 (4), reserved (4), four copies of 128 bytes, zeros.
// Integers are little-endian.
//
// A copy
//    0   1  kind: 0 none, 1 a key,             24  12  nonce
//           2 a passphrase                     36  48  the database's key, sealed, and the tag
//    1   3  scrypt's log2 N, r and p           84      zeros
//    4   4  reserved
//    8  16  salt
//
// With a key, scrypt's fields are zero; with a passphrase, the app's key is scrypt(passphrase,
// salt). The copy is sealed by AES-256-GCM with HKDF-SHA256(the app's key, info "ondol wrap"), in
// the context of the database's identity and the copy's first 24 bytes. A file's key is
// HKDF-SHA256(the database's key, info "ondol file" and the engine's name for the file).
// HMAC-SHA256 with HKDF-SHA256(the database's key, info "ondol superblock") authenticates the
// superblock. While files are still sealed with the database's previous key, that key is sealed
// with HKDF-SHA256(the database's key, info "ondol older"), in the context of the identity: nonce,
// key, tag.

internal import Crypto
package import OndolEngine
internal import OndolFoundation

/// Opens and makes the keys of databases, with the app's key.
package struct DatabaseVault: Vault {
  private let secret: Database.Encryption.Secret
  /// The other keys that open the databases whose keys this makes.
  private let others: [DatabaseVault]
  /// Keys of copies, by their heads: a check opens one database several times, and scrypt is slow.
  private let wrappingKeys = Guarded<[[UInt8]: SymmetricKey]>([:])

  package init(_ encryption: Database.Encryption, and others: [Database.Encryption] = []) {
    secret = encryption.secret
    self.others = others.map { DatabaseVault($0) }
  }

  /// The fields of the superblock's part.
  private enum Kept {
    static let version: UInt32 = 1
    static let firstCopy = 8
    static let copyLength = 128
    static let copyCount = Database.Encryption.mostKeys
    static let headLength = 24
    static let nonceLength = SealNonce.length
    static let wrappedLength = Database.Encryption.keyLength + SealFormat.tagLength
    static let kindOfKey: UInt8 = 1
    static let kindOfPassphrase: UInt8 = 2
    static let firstOfSalt = 8
  }

  fileprivate static func derive(
    _ key: SymmetricKey, _ purpose: String, _ context: [UInt8] = []
  ) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: key, info: Array(purpose.utf8) + context,
      outputByteCount: Database.Encryption.keyLength)
  }

  // MARK: - Making

  package func makeKey(
    for identity: [UInt8]
  ) throws(EngineError) -> (key: any MasterKey, kept: [UInt8]) {
    let key = Self.randomBytes()
    return (DerivingKey(key), try Self.keep(key, for: identity, by: [self] + others))
  }

  /// The superblock's part for a database's key, which each of these can open.
  static func keep(
    _ key: [UInt8], for identity: [UInt8], by vaults: [DatabaseVault]
  ) throws(EngineError) -> [UInt8] {
    precondition(vaults.count <= Kept.copyCount, "more keys than there are copies")
    var kept: [UInt8] = []
    kept.appendLittleEndian(Kept.version)
    kept.appendLittleEndian(UInt32(0))
    for vault in vaults { kept += try vault.wrap(key, for: identity) }
    kept.append(contentsOf: repeatElement(0, count: SealFormat.keptLength - kept.count))
    return kept
  }

  /// Thirty-two random bytes. A key of swift-crypto shows its bytes only to unsafe code, while
  /// bytes made here do not need that.
  static func randomBytes() -> [UInt8] {
    Array(
      HMAC<SHA256>.authenticationCode(
        for: Array("ondol key".utf8), using: SymmetricKey(size: .bits256)))
  }

  /// The first bytes of a new copy.
  private func makeHead() -> [UInt8] {
    switch secret {
    case .key: return [Kept.kindOfKey] + [UInt8](repeating: 0, count: Kept.headLength - 1)
    case .passphrase(_, let scrypt):
      let numbers = [scrypt.logarithm, scrypt.blockSize, scrypt.parallelism, 0, 0, 0, 0]
      let salt = Self.randomBytes().prefix(Kept.headLength - Kept.firstOfSalt)
      return [Kept.kindOfPassphrase] + numbers + salt
    }
  }

  /// The key that seals the copy with this head; nil when the copy is of another kind, has
  /// parameters that are refused, or there is too little memory for them.
  private func wrappingKey(_ head: [UInt8]) -> SymmetricKey? {
    if let known = wrappingKeys.withLock({ $0[head] }) { return known }
    let bytes: [UInt8]?
    switch secret {
    case .key(let key): bytes = head.first == Kept.kindOfKey ? key : nil
    case .passphrase(let passphrase, _):
      guard head.count == Kept.headLength, head[0] == Kept.kindOfPassphrase else { return nil }
      bytes = Scrypt(logarithm: head[1], blockSize: head[2], parallelism: head[3])
        .bytes(
          Database.Encryption.keyLength, from: passphrase, salt: Array(head[Kept.firstOfSalt...]))
    }
    guard let bytes else { return nil }
    let key = Self.derive(SymmetricKey(data: bytes), "ondol wrap")
    wrappingKeys.withLock { $0[head] = key }
    return key
  }

  /// A copy of a database's key.
  private func wrap(
    _ key: [UInt8], for identity: [UInt8]
  ) throws(EngineError) -> [UInt8] {
    var copy = makeHead()
    guard let wrapping = wrappingKey(copy) else {
      throw .invalid(reason: "there is too little memory to derive a key from a passphrase")
    }
    do {
      let box = try AES.GCM.seal(key, using: wrapping, authenticating: identity + copy)
      copy += Array(box.nonce) + box.ciphertext + box.tag
    } catch {
      throw .invalid(reason: "the key cannot be kept: \(error)")
    }
    copy.append(contentsOf: repeatElement(0, count: Kept.copyLength - copy.count))
    return copy
  }

  // MARK: - Opening

  package func openKey(
    _ kept: [UInt8], for identity: [UInt8]
  ) throws(EngineError) -> (any MasterKey)? {
    var reader = ByteReader(kept.bytes)
    guard let version = try? reader.littleEndian(UInt32.self), version == Kept.version else {
      throw .needsNewerVersion(file: "SUPER", reason: "keys of another kind")
    }
    for number in 0..<Kept.copyCount {
      let start = Kept.firstCopy + number * Kept.copyLength
      guard start + Kept.copyLength <= kept.count else { break }
      let copy = kept[start..<(start + Kept.copyLength)]
      if let key = unwrap(Array(copy), for: identity) { return DerivingKey(key) }
    }
    return nil
  }

  private func unwrap(_ copy: [UInt8], for identity: [UInt8]) -> [UInt8]? {
    let head = Array(copy[..<Kept.headLength])
    guard let wrapping = wrappingKey(head) else { return nil }
    let nonce = copy[Kept.headLength..<(Kept.headLength + Kept.nonceLength)]
    let wrapped = copy.dropFirst(Kept.headLength + Kept.nonceLength).prefix(Kept.wrappedLength)
    guard
      let box = try? AES.GCM.SealedBox(
        nonce: AES.GCM.Nonce(data: nonce), ciphertext: wrapped.dropLast(SealFormat.tagLength),
        tag: wrapped.suffix(SealFormat.tagLength)),
      let key = try? AES.GCM.open(box, using: wrapping, authenticating: identity + head)
    else { return nil }
    return Array(key)
  }
}

/// A database's key, from which other keys are derived.
private final class DerivingKey: MasterKey {
  let secret: [UInt8]
  private let key: SymmetricKey
  private let proving: SymmetricKey

  init(_ secret: [UInt8]) {
    self.secret = secret
    key = SymmetricKey(data: secret)
    proving = DatabaseVault.derive(key, "ondol superblock")
  }

  func cipher(for context: [UInt8]) -> any FileCipher {
    GaloisCipher(DatabaseVault.derive(key, "ondol file", context))
  }

  func proof(of bytes: [UInt8]) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: bytes, using: proving))
  }

  private var wrapping: SymmetricKey { DatabaseVault.derive(key, "ondol older") }

  func wrap(_ other: any MasterKey, for identity: [UInt8]) -> [UInt8] {
    do {
      let box = try AES.GCM.seal(other.secret, using: wrapping, authenticating: identity)
      return Array(box.nonce) + box.ciphertext + box.tag
    } catch {
      preconditionFailure("any bytes can be sealed: \(error)")
    }
  }

  func unwrap(_ wrapped: [UInt8], for identity: [UInt8]) -> (any MasterKey)? {
    guard wrapped.count == SealFormat.wrappedLength,
      let box = try? AES.GCM.SealedBox(combined: wrapped),
      let secret = try? AES.GCM.open(box, using: wrapping, authenticating: identity)
    else { return nil }
    return DerivingKey(Array(secret))
  }

  func makeOther() -> any MasterKey { DerivingKey(DatabaseVault.randomBytes()) }
}

/// AES-256-GCM with the key of one file.
final class GaloisCipher: FileCipher {
  private let key: SymmetricKey

  convenience init(keyBytes: [UInt8]) { self.init(SymmetricKey(data: keyBytes)) }

  init(_ key: SymmetricKey) {
    self.key = key
    Self.makesLongBuffersCheap
  }

  /// The library makes two buffers as long as the data it seals. glibc gets such buffers from the
  /// system and returns them at once, page by page, which takes five times as long as sealing: a
  /// frame of 400 KB took 390 us, and now takes 65. glibc keeps buffers no longer than a block that
  /// was freed once.
  private static let makesLongBuffersCheap: Void = {
    var block: [UInt8] = []
    block.reserveCapacity(2 << 20)
    withExtendedLifetime(block) {}
  }()

  func seal(_ bytes: inout [UInt8], from start: Int, nonce: SealNonce, context: [UInt8]) {
    do {
      let box = try AES.GCM.seal(
        bytes[start...], using: key, nonce: AES.GCM.Nonce(data: nonce.bytes),
        authenticating: context)
      guard let combined = box.combined else { preconditionFailure("a nonce of another length") }
      bytes.removeSubrange(start...)
      bytes.append(combined.bytes.extracting(droppingFirst: SealNonce.length))
    } catch {
      preconditionFailure("any bytes can be sealed: \(error)")
    }
  }

  func open(
    _ sealed: RawSpan, nonce: SealNonce, context: [UInt8], appendingTo output: inout [UInt8]
  ) -> Bool {
    // In the form of a sealed box, so that making one is a copy.
    var combined: [UInt8] = []
    combined.reserveCapacity(SealNonce.length + sealed.byteCount)
    combined += nonce.bytes
    combined.append(sealed)
    guard let box = try? AES.GCM.SealedBox(combined: combined),
      let opened = try? AES.GCM.open(box, using: key, authenticating: context)
    else { return false }
    output.append(opened.bytes)
    return true
  }
}
