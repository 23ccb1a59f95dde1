// Determines the key, if any, that encrypts a file of a database. The file's number decides: keys
// and numbers are both consecutive, so each key applies to all numbers from some point on. Files
// need not state their key, and none can lie about it: the superblock's statements about keys are
// authenticated.
//
// Keys can be changed while the database is in use (KeyChange). Then there is a number called the
// *border*: files before it are encrypted with the earlier key or not encrypted, and files from it
// on are encrypted with the new key or not encrypted. Once no file before the border exists, the
// superblock forgets the earlier key. The keyring continues to know it, for readers of a file whose
// name is gone.

/// A change of a database's keys in progress, as recorded in the superblock.
struct KeyChange: Sendable, Equatable {
  /// The first file number with the new state.
  var border: FileNumber
  /// Whether files before the border are encrypted, and those from it on. At least one of them is.
  var wasSealed: Bool
  var isSealed: Bool
  /// The earlier key, encrypted with the new one, if both exist.
  var older: [UInt8] = []

  var hasTwoKeys: Bool { wasSealed && isSealed }

  /// Numbers after the border that are reserved for rewritten logs, so that these stay before the
  /// logs that receive new commits.
  static let logNumbers: UInt64 = 1 << 20

  /// The first number of any other file.
  var firstOfOthers: FileNumber { FileNumber(rawValue: border.rawValue + Self.logNumbers) }

  /// A border for a database that has handed out all numbers below `next`, and may hand out
  /// `margin` more before the superblock records the change.
  static func border(
    behind next: FileNumber, margin: UInt64
  ) throws(EngineError) -> FileNumber {
    let border = FileNumber(rawValue: next.rawValue + margin)
    guard FileNumber(rawValue: border.rawValue + logNumbers).isPossible else {
      throw .invalid(reason: "file numbers are used up")
    }
    return border
  }
}

/// The keys of an open database.
package final class Keyring: Sendable {
  /// Files from a number on, and the key that encrypts them; nil without encryption.
  private struct Era: Sendable {
    var first: FileNumber
    var key: (any MasterKey)?
  }

  /// What the superblock stores about the newest key. It is nil if it stores nothing, and the
  /// database opens without a key.
  let kept: [UInt8]?
  /// The change in progress.
  let change: KeyChange?
  /// The database's sixteen bytes.
  package let identity: [UInt8]
  /// Sorted by their first numbers, of which the first is 0; never empty.
  private let eras: [Era]
  /// The keys of keyed groups.
  let groups: GroupKeys
  private let random: @Sendable () -> UInt64

  /// - Parameter groups: those of the keyring that this one is derived from, if any.
  private init(
    _ eras: [Era], kept: [UInt8]?, _ change: KeyChange?, identity: [UInt8],
    groups: GroupKeys? = nil, random: @escaping @Sendable () -> UInt64
  ) {
    self.eras = eras
    self.groups = groups ?? GroupKeys(Self.masters(eras), identity: identity)
    self.kept = kept
    self.change = change
    self.identity = identity
    self.random = random
  }

  /// The keys of a database whose files are all encrypted with the same key.
  convenience init(
    _ key: any MasterKey, kept: [UInt8], identity: [UInt8],
    random: @escaping @Sendable () -> UInt64
  ) {
    self.init(
      [Era(first: .zero, key: key)], kept: kept, nil, identity: identity, random: random)
  }

  /// The keys during a change. The result is nil if the superblock has not stored the older key
  /// although one exists.
  convenience init?(
    _ key: any MasterKey, kept: [UInt8], _ change: KeyChange, identity: [UInt8],
    random: @escaping @Sendable () -> UInt64
  ) {
    var older = change.wasSealed ? key : nil
    if change.hasTwoKeys {
      guard let other = key.unwrap(change.older, for: identity) else { return nil }
      older = other
    }
    let eras = [
      Era(first: .zero, key: older),
      Era(first: change.border, key: change.isSealed ? key : nil),
    ]
    self.init(eras, kept: kept, change, identity: identity, random: random)
  }

  /// Keys that decrypt nothing, for a database whose files are all encrypted.
  static func unopened(of identity: DatabaseIdentity) -> Keyring {
    Keyring(UnopenedKey(), kept: [], identity: identity.bytes) { 0 }
  }

  // MARK: - Files

  private func key(of number: FileNumber) -> (any MasterKey)? {
    // Usually there is only one.
    eras.count == 1 ? eras[0].key : eras.last { $0.first <= number }?.key
  }

  /// Whether a file with this number is encrypted.
  func seals(_ number: FileNumber) -> Bool { key(of: number) != nil }

  /// Whether a file with this number has the key of the newest files, or no key if they have none.
  func isCurrent(_ number: FileNumber) -> Bool { number >= eras.last?.first ?? .zero }

  /// What encrypts the file with this number and salt; nil without encryption.
  ///
  /// - Parameter group: the keyed group that all of its rows belong to, if any.
  func seal(
    _ file: SealedFile, number: FileNumber, salt: UInt64, group: UInt32? = nil
  ) -> FileSeal? {
    guard let key = key(of: number) else { return nil }
    let context = context(file, number, salt)
    if let group, !(key is UnopenedKey) {
      return groupSeal(file, number: number, salt: salt, of: group)
        ?? FileSeal(AbsentCipher(), random: random)
    }
    let groups = file == .log ? GroupSeals(self, log: number, salt: salt) : nil
    return FileSeal(key.cipher(for: context), random: random, groups: groups)
  }

  /// What encrypts a group's part of a file; nil if its key is missing.
  func groupSeal(
    _ file: SealedFile, number: FileNumber, salt: UInt64, of group: UInt32
  ) -> FileSeal? {
    groups.key(of: group, file: number).map {
      FileSeal($0.cipher(for: context(file, number, salt)), random: random)
    }
  }

  private func context(_ file: SealedFile, _ number: FileNumber, _ salt: UInt64) -> [UInt8] {
    var context = identity
    context.appendLittleEndian(number.rawValue)
    context.appendLittleEndian(salt)
    context.append(file.rawValue)
    return context
  }

  /// The keys, newest first.
  private static func masters(_ eras: [Era]) -> [any MasterKey] {
    eras.reversed().compactMap(\.key)
  }

  /// The same.
  var masters: [any MasterKey] { Self.masters(eras) }

  // MARK: - The superblock

  /// The key that authenticates the superblock; nil if none does.
  private var proving: (any MasterKey)? {
    kept == nil ? nil : eras.last { $0.key != nil }?.key
  }

  /// Proof that the writer of `bytes` had the key.
  func proof(of bytes: [UInt8]) -> [UInt8] { proving?.proof(of: bytes) ?? [] }

  // MARK: - Other keys

  /// The bytes of the key that the superblock stores, for wrapping it; nil if it stores none.
  package var secret: [UInt8]? { proving?.secret }

  /// The same keys in another stored form.
  func keeping(_ kept: [UInt8]) -> Keyring {
    Keyring(eras, kept: kept, change, identity: identity, groups: groups, random: random)
  }

  /// The keys of `ring` (nil for no encryption), plus another key or no key for files from `border`
  /// on. No other change may be in progress.
  ///
  /// - Parameter new: a key and what the superblock is to store about it; nil for no encryption.
  static func changing(
    _ ring: Keyring?, to new: (key: any MasterKey, kept: [UInt8])?, from border: FileNumber,
    identity: [UInt8], random: @escaping @Sendable () -> UInt64
  ) -> Keyring {
    precondition(ring?.change == nil, "another change of keys is under way")
    let eras = ring?.eras ?? [Era(first: .zero, key: nil)]
    let older = eras.last?.key
    var change = KeyChange(border: border, wasSealed: older != nil, isSealed: new != nil)
    if let older, let new { change.older = new.key.wrap(older, for: identity) }
    return Keyring(
      eras + [Era(first: border, key: new?.key)], kept: new?.kept ?? ring?.kept, change,
      identity: identity, groups: ring?.groups, random: random)
  }

  /// The same once no file before the border is left.
  func finishingChange() -> Keyring {
    let isSealed = eras.last?.key != nil
    return Keyring(
      eras, kept: isSealed ? kept : nil, nil, identity: identity, groups: groups, random: random)
  }

  /// The same with what an earlier keyring of the database knows about older files.
  func remembering(_ earlier: Keyring?) -> Keyring {
    guard let earlier, let last = earlier.eras.last else { return self }
    groups.inherit(earlier.groups)
    var eras = earlier.eras
    if change?.isSealed ?? true, last.key != nil, last.key?.secret == secret {
      // The new state of this keyring is the state of that one.
    } else if let change, let newest = self.eras.last {
      eras = eras.filter { $0.first < change.border } + [newest]
    } else {
      return self
    }
    return Keyring(
      eras, kept: kept, change, identity: identity, groups: groups, random: random)
  }
}
