// Encrypts the parts of keyed groups in a log, which contains commits of all groups. The database's
// key encrypts a frame as a whole, and within it a group's key encrypts the group's part.

/// Encrypts the parts of keyed groups in one log.
final class GroupSeals: Sendable {
  /// This object may be used only as long as the keyring is.
  private let keyring: Keyring
  private let log: FileNumber
  private let salt: UInt64
  private let known = Guarded<[UInt32: FileSeal]>([:])

  init(_ keyring: Keyring, log: FileNumber, salt: UInt64) {
    self.keyring = keyring
    self.log = log
    self.salt = salt
  }

  /// Whether any such part may exist.
  var mayBeUsed: Bool { keyring.groups.isUsed }

  /// What decrypts the part of a group; nil if its key is missing, or the group no longer exists.
  func opening(of group: UInt32) -> FileSeal? {
    keyring.groups.isGone(group) ? nil : seal(of: group)
  }

  /// Whether a part that could not be decrypted may still be decrypted later. Such a part must not
  /// be omitted from a log that replaces another.
  func mayOpenLater(_ group: UInt32) -> Bool {
    !keyring.groups.isGone(group) && !keyring.groups.isLockedOut(group)
  }

  func seal(of group: UInt32) -> FileSeal? {
    if let seal = known.withLock({ $0[group] }) { return seal }
    let seal = keyring.groupSeal(.log, number: log, salt: salt, of: group)
    if let seal { known.withLock { $0[group] = seal } }
    return seal
  }
}
