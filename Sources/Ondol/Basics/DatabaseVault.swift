// The keys of an encrypted database, made and wrapped with swift-crypto. What an app gives is never
// used on the database's bytes: it wraps a random key, which the superblock keeps up to four times,
// each time under another of the app's. From that key everything else is derived.
//
// What the superblock keeps, 1,024 bytes: version 1 (4), reserved (4), four copies of 128 bytes,
// zeros. Integers are little-endian.
//
// A copy
//    0   1  kind: 0 none, 1 a key              24  12  nonce
//    1   7  reserved                           36  48  the database's key, sealed, and the tag
//    8  16  reserved                           84      zeros
//
// It is sealed by AES-256-GCM with HKDF-SHA256(the app's key, info "ondol wrap"), in the context of
// the database's identity and the copy's first 24 bytes. A file's key is HKDF-SHA256(the database's
// key, info "ondol file" and what the engine calls the file); the superblock is vouched for by
// HMAC-SHA256 with HKDF-SHA256(the database's key, info "ondol superblock").

internal import Crypto
package import OndolEngine
internal import OndolFoundation

/// Opens and makes the keys of databases, with what an app gave.
package struct DatabaseVault: Vault {
  private let wrapping: SymmetricKey

  package init(_ encryption: Database.Encryption) {
    wrapping = Self.derive(SymmetricKey(data: encryption.secret), "ondol wrap")
  }

  /// Numbers of what is kept.
  private enum Kept {
    static let version: UInt32 = 1
    static let firstCopy = 8
    static let copyLength = 128
    static let copyCount = Database.Encryption.mostKeys
    static let headLength = 24
    static let nonceLength = SealNonce.length
    static let wrappedLength = Database.Encryption.keyLength + SealFormat.tagLength
    static let kindOfKey: UInt8 = 1
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
    return (DerivingKey(key), try Self.keep(key, for: identity, by: [self]))
  }

  /// What the superblock keeps of a database's key, for each of these to open.
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

  /// Thirty-two bytes that nobody knows. A key of swift-crypto's shows its bytes to unsafe code
  /// only, and what is made with one does not.
  static func randomBytes() -> [UInt8] {
    Array(
      HMAC<SHA256>.authenticationCode(
        for: Array("ondol key".utf8), using: SymmetricKey(size: .bits256)))
  }

  /// A copy of a database's key.
  private func wrap(
    _ key: [UInt8], for identity: [UInt8]
  ) throws(EngineError) -> [UInt8] {
    var copy: [UInt8] = [Kept.kindOfKey]
    copy.append(contentsOf: repeatElement(0, count: Kept.headLength - copy.count))
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
    guard copy.first == Kept.kindOfKey else { return nil }
    let head = copy[..<Kept.headLength]
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

/// A database's key, from which others are derived.
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
}

/// AES-256-GCM with the key of one file.
final class GaloisCipher: FileCipher {
  private let key: SymmetricKey

  convenience init(keyBytes: [UInt8]) { self.init(SymmetricKey(data: keyBytes)) }

  init(_ key: SymmetricKey) {
    self.key = key
  }

  func seal(_ bytes: inout [UInt8], from start: Int, nonce: SealNonce, context: [UInt8]) {
    do {
      let box = try AES.GCM.seal(
        bytes[start...], using: key, nonce: AES.GCM.Nonce(data: nonce.bytes),
        authenticating: context)
      bytes.removeSubrange(start...)
      bytes.append(contentsOf: box.ciphertext)
      bytes.append(contentsOf: box.tag)
    } catch {
      preconditionFailure("any bytes can be sealed: \(error)")
    }
  }

  func open(
    _ sealed: RawSpan, nonce: SealNonce, context: [UInt8], appendingTo output: inout [UInt8]
  ) -> Bool {
    let bytes = sealed.array
    let end = bytes.count - SealFormat.tagLength
    guard end >= 0,
      let box = try? AES.GCM.SealedBox(
        nonce: AES.GCM.Nonce(data: nonce.bytes), ciphertext: bytes[..<end], tag: bytes[end...]),
      let opened = try? AES.GCM.open(box, using: key, authenticating: context)
    else { return false }
    output.append(contentsOf: opened)
    return true
  }
}
