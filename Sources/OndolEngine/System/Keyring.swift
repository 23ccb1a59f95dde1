// Which key a file of a database is sealed with, if it is. A file's number tells: keys come one
// after the other, and so do numbers, so each key has the numbers from some place on. Files need
// not say it, and none can lie about it: what the superblock says of keys is vouched for.
//
// Keys are changed while the database is in use (KeyChange). Then there is a number, the *border*:
// files before it are sealed with the key before, or in the clear, and files from it on with the
// new key, or in the clear. Once there is no file before the border it is forgotten by the
// superblock. The ring goes on knowing it, for who still reads a file whose name is gone.

/// A change of a database's keys that is under way, as the superblock says it.
struct KeyChange: Sendable, Equatable {
  /// The first number of files that have what is new.
  var border: FileNumber
  /// Whether files before the border are sealed, and those from it on. One of the two at least.
  var wasSealed: Bool
  var isSealed: Bool
  /// Where both are, the key before, sealed with the new one.
  var older: [UInt8] = []

  var hasTwoKeys: Bool { wasSealed && isSealed }

  /// Numbers behind the border that go to logs which are written anew, so that they stay before
  /// those that commits go into.
  static let logNumbers: UInt64 = 1 << 20

  /// The first number of any other file.
  var firstOfOthers: FileNumber { FileNumber(rawValue: border.rawValue + Self.logNumbers) }

  /// A border for a database that has given out all numbers below `next`, and may give out `margin`
  /// more before the superblock says so.
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
  /// Files from a number on, and what they are sealed with; nil in the clear.
  private struct Era: Sendable {
    var first: FileNumber
    var key: (any MasterKey)?
  }

  /// What the superblock keeps of the newest key; nil where it keeps none, and the database opens
  /// without.
  let kept: [UInt8]?
  /// What is under way.
  let change: KeyChange?
  /// The database's sixteen bytes.
  package let identity: [UInt8]
  /// By their first numbers, the first one 0; never empty.
  private let eras: [Era]
  /// The keys of keyed groups.
  let groups: GroupKeys
  private let random: @Sendable () -> UInt64

  /// - Parameter groups: those of the ring that this one comes from, if it does.
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

  /// Keys of a database all of whose files are sealed with one.
  convenience init(
    _ key: any MasterKey, kept: [UInt8], identity: [UInt8],
    random: @escaping @Sendable () -> UInt64
  ) {
    self.init(
      [Era(first: .zero, key: key)], kept: kept, nil, identity: identity, random: random)
  }

  /// Keys in the middle of a change; nil where the superblock has not kept the older key although
  /// there is one.
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

  /// Keys that open nothing, for a database all of whose files are sealed.
  static func unopened(of identity: DatabaseIdentity) -> Keyring {
    Keyring(UnopenedKey(), kept: [], identity: identity.bytes) { 0 }
  }

  // MARK: - Files

  private func key(of number: FileNumber) -> (any MasterKey)? {
    // Mostly there is one.
    eras.count == 1 ? eras[0].key : eras.last { $0.first <= number }?.key
  }

  /// Whether a file with this number is sealed.
  func seals(_ number: FileNumber) -> Bool { key(of: number) != nil }

  /// Whether a file with this number has what the newest files have: their key, or none.
  func isCurrent(_ number: FileNumber) -> Bool { number >= eras.last?.first ?? .zero }

  /// What seals the file with this number and salt; nil where it is in the clear.
  ///
  /// - Parameter group: the keyed group all of whose rows it has, if it is one's.
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

  /// What seals what a group has of a file; nil where its key is not here.
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

  /// Its keys, the newest first.
  private static func masters(_ eras: [Era]) -> [any MasterKey] {
    eras.reversed().compactMap(\.key)
  }

  /// The same.
  var masters: [any MasterKey] { Self.masters(eras) }

  // MARK: - The superblock

  /// The key that the superblock is vouched for with; nil where it is not.
  private var proving: (any MasterKey)? {
    kept == nil ? nil : eras.last { $0.key != nil }?.key
  }

  /// What shows that whoever wrote `bytes` had the key.
  func proof(of bytes: [UInt8]) -> [UInt8] { proving?.proof(of: bytes) ?? [] }

  // MARK: - Other keys

  /// The bytes of the key that the superblock keeps, for whoever wraps it; nil where it keeps none.
  package var secret: [UInt8]? { proving?.secret }

  /// The same keys, kept otherwise.
  func keeping(_ kept: [UInt8]) -> Keyring {
    Keyring(eras, kept: kept, change, identity: identity, groups: groups, random: random)
  }

  /// What `ring` has, nil being nothing but files in the clear, and for files from `border` on
  /// another key, or none. No other change may be under way.
  ///
  /// - Parameter new: a key and what the superblock is to keep of it; nil for files in the clear.
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

  /// The same once no file is left before the border.
  func finishingChange() -> Keyring {
    let isSealed = eras.last?.key != nil
    return Keyring(
      eras, kept: isSealed ? kept : nil, nil, identity: identity, groups: groups, random: random)
  }

  /// The same with what an earlier ring of the database knows of files that are older.
  func remembering(_ earlier: Keyring?) -> Keyring {
    guard let earlier, let last = earlier.eras.last else { return self }
    groups.inherit(earlier.groups)
    var eras = earlier.eras
    if change?.isSealed ?? true, last.key != nil, last.key?.secret == secret {
      // What this one calls new is what that one had.
    } else if let change, let newest = self.eras.last {
      eras = eras.filter { $0.first < change.border } + [newest]
    } else {
      return self
    }
    return Keyring(
      eras, kept: kept, change, identity: identity, groups: groups, random: random)
  }
}
