// Where a database's keys come from, and how they encrypt bytes. These are protocols, because the
// engine has no cryptography of its own. The layer above supplies AES-GCM, and a test supplies an
// implementation that observes it.
//
// There are three kinds of keys. An app opens a database with a *vault*, which unwraps the
// database's own key; the superblock stores that key in wrapped form. The database's key is never
// applied to bytes directly. A separate key is derived from it for every file, from the file's
// number, its salt and its type. So positions in a file are sufficient as nonces, and data
// encrypted for one position, file or database cannot be decrypted as any other.

/// What a database was opened with: a key, or something that produces one.
package protocol Vault: Sendable {
  /// A new key for a database with this identity, and what the superblock is to store about it:
  /// `SealFormat.keptLength` bytes.
  func makeKey(for identity: [UInt8]) throws(EngineError) -> (key: any MasterKey, kept: [UInt8])

  /// The key in `kept`; nil if this vault does not unwrap it.
  func openKey(
    _ kept: [UInt8], for identity: [UInt8]
  ) throws(EngineError) -> (any MasterKey)?
}

/// A database's own key.
package protocol MasterKey: AnyObject, Sendable {
  /// What encrypts the bytes of one file. `context` identifies the file among all files.
  func cipher(for context: [UInt8]) -> any FileCipher

  /// Its bytes, for wrapping it.
  var secret: [UInt8] { get }

  /// Thirty-two bytes that only a holder of the key can compute from `bytes`.
  func proof(of bytes: [UInt8]) -> [UInt8]

  /// Wraps another key of the database with this one: `SealFormat.wrappedLength` bytes.
  func wrap(_ other: any MasterKey, for identity: [UInt8]) -> [UInt8]

  /// The key in such bytes; nil if they were not made with this key and for this database.
  func unwrap(_ wrapped: [UInt8], for identity: [UInt8]) -> (any MasterKey)?

  /// A new key that is independent of this one.
  func makeOther() -> any MasterKey
}

/// Encrypts the bytes of one file. A nonce has twelve bytes and is used once.
package protocol FileCipher: AnyObject, Sendable {
  /// Encrypts the bytes from `start` to the end in place, and appends the tag.
  func seal(_ bytes: inout [UInt8], from start: Int, nonce: SealNonce, context: [UInt8])

  /// Appends the plain form of `sealed`, which ends with the tag. Returns false and appends nothing
  /// if it was not encrypted this way.
  func open(
    _ sealed: RawSpan, nonce: SealNonce, context: [UInt8], appendingTo output: inout [UInt8]
  ) -> Bool
}

/// Distinguishes an encryption from all others with the same key.
package struct SealNonce: Sendable, Hashable {
  package static let length = 12

  var place: UInt64
  var extra: UInt32

  package init(place: UInt64, extra: UInt32) {
    self.place = place
    self.extra = extra
  }

  /// The twelve bytes, little-endian.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.length)
    bytes.appendLittleEndian(place)
    bytes.appendLittleEndian(extra)
    return bytes
  }
}

/// Sizes in encrypted files.
package enum SealFormat {
  /// The length of a tag.
  package static let tagLength = 16
  /// The space in the superblock for stored keys.
  package static let keptLength = 960
  /// The length of a database's key encrypted with another: a nonce, the key and the tag.
  package static let wrappedLength = SealNonce.length + 32 + tagLength
  /// The length of a proof.
  package static let proofLength = 32
}

/// The purpose of a file's key. The numbers are part of the format.
enum SealedFile: UInt8, Sendable {
  case log = 1
  case manifest = 2
  case segment = 3
  case values = 4
  case pack = 5
  case content = 6
  /// The first and the last key of a segment of a keyed group, which are in the manifest.
  case bounds = 7
  /// Intermediate rows of a read, which no later one uses.
  case scratch = 8
}

/// The type of an encrypted unit in a file of blocks. The numbers are part of the format.
enum SealedUnit: UInt32, Sendable {
  case block = 0
  case section = 1
  case value = 2
  case piece = 3
  /// A page of a filter. It has its own type, so that no other section can pass as one.
  case filter = 4
}

/// Encrypts and decrypts the contents of one file, each unit by its position.
final class FileSeal: Sendable {
  private let cipher: any FileCipher
  private let chance: @Sendable () -> UInt64
  /// Encrypts the parts of keyed groups, in a log.
  let groups: GroupSeals?

  init(
    _ cipher: any FileCipher, random: @escaping @Sendable () -> UInt64, groups: GroupSeals? = nil
  ) {
    self.cipher = cipher
    chance = random
    self.groups = groups
  }

  /// Sixty-four random bits for units that may be written to one position twice, because a power
  /// cut has erased the first without a trace.
  func random() -> UInt64 { chance() }

  /// Encrypts the bytes from `start` on, which will be at `offset` of the file.
  func seal(
    _ bytes: inout [UInt8], from start: Int, _ unit: SealedUnit, at offset: UInt64,
    context: [UInt8] = []
  ) {
    seal(
      &bytes, from: start, SealNonce(place: offset, extra: unit.rawValue), context: context)
  }

  /// Appends the plain form of bytes encrypted for this position. Throws if they were not.
  func open(
    _ sealed: RawSpan, _ unit: SealedUnit, at offset: UInt64, context: [UInt8] = [],
    appendingTo output: inout [UInt8]
  ) throws(MalformedBytes) {
    let nonce = SealNonce(place: offset, extra: unit.rawValue)
    guard open(sealed, nonce, context: context, appendingTo: &output) else {
      throw FileSeal.forged
    }
  }

  func seal(
    _ bytes: inout [UInt8], from start: Int, _ nonce: SealNonce, context: [UInt8]
  ) {
    cipher.seal(&bytes, from: start, nonce: nonce, context: context)
  }

  func open(
    _ sealed: RawSpan, _ nonce: SealNonce, context: [UInt8], appendingTo output: inout [UInt8]
  ) -> Bool {
    sealed.byteCount >= SealFormat.tagLength
      && cipher.open(sealed, nonce: nonce, context: context, appendingTo: &output)
  }

  /// Bytes with a valid checksum that were not encrypted with the key of their file.
  static var forged: MalformedBytes {
    MalformedBytes(at: 0, "it was not written with the key of this file and for this place")
  }

  /// Unencrypted bytes in a file that is encrypted.
  static var unsealed: MalformedBytes {
    MalformedBytes(at: 0, "it is not encrypted, in a database that is")
  }
}

/// A directory whose files are encrypted once its keys are known.
final class KeyedDirectory: ForwardingDirectory {
  let base: any Directory
  private let held = Guarded<Keyring?>(nil)

  init(_ base: any Directory, _ keyring: Keyring? = nil) {
    self.base = base
    if let keyring { use(keyring) }
  }

  var keyring: Keyring? { held.withLock { $0 } }

  /// Encrypts and decrypts files with these keys from now on.
  func use(_ keyring: Keyring?) {
    keyring?.groups.attach(to: base)
    held.withLock { $0 = keyring }
  }
}
