// Where a database's keys come from, and what seals bytes with them: protocols, because the engine
// has no cryptography of its own. The floor above brings AES-GCM; a test brings what watches it.
//
// Three kinds of keys. What an app opens with, a *vault*, unwraps the database's own key, which the
// superblock keeps wrapped. That key is never used on bytes: a key of its own is derived from it
// for every file, from the file's number, its salt and what it holds. So places in a file are
// nonces enough, and what was sealed for one place, file or database opens in no other.

/// What a database was opened with: a key, or what makes one.
package protocol Vault: Sendable {
  /// A new key for a database with this identity, and what the superblock is to keep of it:
  /// `SealFormat.keptLength` bytes.
  func makeKey(for identity: [UInt8]) throws(EngineError) -> (key: any MasterKey, kept: [UInt8])

  /// The key that `kept` holds; nil when this vault does not open it.
  func openKey(
    _ kept: [UInt8], for identity: [UInt8]
  ) throws(EngineError) -> (any MasterKey)?
}

/// A database's own key.
package protocol MasterKey: AnyObject, Sendable {
  /// What seals the bytes of one file, whose name among all files is `context`.
  func cipher(for context: [UInt8]) -> any FileCipher

  /// Its bytes, for whoever wraps it.
  var secret: [UInt8] { get }

  /// Thirty-two bytes that only who has the key can make of `bytes`.
  func proof(of bytes: [UInt8]) -> [UInt8]

  /// Another key of the database, for who has this one: `SealFormat.wrappedLength` bytes.
  func wrap(_ other: any MasterKey, for identity: [UInt8]) -> [UInt8]

  /// The key in such bytes; nil when they were not made with this key and for this database.
  func unwrap(_ wrapped: [UInt8], for identity: [UInt8]) -> (any MasterKey)?

  /// A new key, which has nothing to do with this one.
  func makeOther() -> any MasterKey
}

/// Seals the bytes of one file. A nonce is twelve bytes and used once.
package protocol FileCipher: AnyObject, Sendable {
  /// Seals the bytes from `start` to the end, in place, and appends the tag.
  func seal(_ bytes: inout [UInt8], from start: Int, nonce: SealNonce, context: [UInt8])

  /// Appends what was sealed in `sealed`, which ends with the tag. False, and nothing is appended,
  /// when it was not sealed so.
  func open(
    _ sealed: RawSpan, nonce: SealNonce, context: [UInt8], appendingTo output: inout [UInt8]
  ) -> Bool
}

/// What makes a sealing different from all others with the same key.
package struct SealNonce: Sendable, Hashable {
  package static let length = 12

  var place: UInt64
  var extra: UInt32

  package init(place: UInt64, extra: UInt32) {
    self.place = place
    self.extra = extra
  }

  /// The twelve bytes, low byte first.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.length)
    bytes.appendLittleEndian(place)
    bytes.appendLittleEndian(extra)
    return bytes
  }
}

/// Numbers of sealed files.
package enum SealFormat {
  /// Bytes of a tag.
  package static let tagLength = 16
  /// Bytes that the superblock has for what is kept of keys.
  package static let keptLength = 960
  /// Bytes of a database's key that is sealed with another: a nonce, the key and the tag.
  package static let wrappedLength = SealNonce.length + 32 + tagLength
  /// Bytes of a proof.
  package static let proofLength = 32
}

/// What a key of a file is for. The numbers are in the format.
enum SealedFile: UInt8, Sendable {
  case log = 1
  case manifest = 2
  case segment = 3
  case values = 4
  case pack = 5
  case content = 6
  /// The first and the last key of a segment of a keyed group, which stand in the manifest.
  case bounds = 7
}

/// What stands sealed at a place of a file of blocks. The numbers are in the format.
enum SealedUnit: UInt32, Sendable {
  case block = 0
  case section = 1
  case value = 2
  case piece = 3
  /// A page of a filter: of its own, so that no other section can be offered as one.
  case filter = 4
}

/// Seals and opens what is in one file, each unit by its place.
final class FileSeal: Sendable {
  private let cipher: any FileCipher
  private let chance: @Sendable () -> UInt64
  /// What seals the parts of keyed groups, in a log.
  let groups: GroupSeals?

  init(
    _ cipher: any FileCipher, random: @escaping @Sendable () -> UInt64, groups: GroupSeals? = nil
  ) {
    self.cipher = cipher
    chance = random
    self.groups = groups
  }

  /// Sixty-four random bits, for what may be written to one place twice: where a power cut has
  /// taken the first without a trace.
  func random() -> UInt64 { chance() }

  /// Seals the bytes from `start` on, which will stand at `offset` of the file.
  func seal(
    _ bytes: inout [UInt8], from start: Int, _ unit: SealedUnit, at offset: UInt64,
    context: [UInt8] = []
  ) {
    seal(
      &bytes, from: start, SealNonce(place: offset, extra: unit.rawValue), context: context)
  }

  /// Appends what was sealed for this place; throws when it was not.
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

  /// Bytes whose checksum is right and that were not sealed with the key of their file.
  static var forged: MalformedBytes {
    MalformedBytes(at: 0, "it was not written with the key of this file and for this place")
  }

  /// Bytes in the clear where all are sealed.
  static var unsealed: MalformedBytes {
    MalformedBytes(at: 0, "it is not encrypted, in a database that is")
  }
}

/// A directory whose files are sealed once its keys are known.
final class KeyedDirectory: ForwardingDirectory {
  let base: any Directory
  private let held = Guarded<Keyring?>(nil)

  init(_ base: any Directory, _ keyring: Keyring? = nil) {
    self.base = base
    if let keyring { use(keyring) }
  }

  var keyring: Keyring? { held.withLock { $0 } }

  /// Has files be sealed, and opened, with these keys from now on.
  func use(_ keyring: Keyring?) {
    keyring?.groups.attach(to: base)
    held.withLock { $0 = keyring }
  }
}
