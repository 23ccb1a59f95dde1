// What seals the parts of keyed groups in a log, which has commits of all groups: the database's
// key seals a frame as a whole, and inside of it a group's key what is the group's.

/// What seals the parts of keyed groups in one log.
final class GroupSeals: Sendable {
  /// What may hold no more than the ring lasts.
  private let keyring: Keyring
  private let log: FileNumber
  private let salt: UInt64
  private let known = Guarded<[UInt32: FileSeal]>([:])

  init(_ keyring: Keyring, log: FileNumber, salt: UInt64) {
    self.keyring = keyring
    self.log = log
    self.salt = salt
  }

  /// Whether there may be any such part.
  var mayBeUsed: Bool { keyring.groups.isUsed }

  /// What opens the part of a group; nil where its key is not here, or the group is no more.
  func opening(of group: UInt32) -> FileSeal? {
    keyring.groups.isGone(group) ? nil : seal(of: group)
  }

  /// Whether a part that could not be opened may yet be, and so must not be left out of a log that
  /// takes the place of another.
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
