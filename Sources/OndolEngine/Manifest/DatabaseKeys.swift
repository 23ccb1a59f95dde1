// From a directory to its keys: the keys stored in the superblock are decrypted before anything
// else is read, and a new database gets its own.

extension Environment {
  /// `base` with the keys of the existing database. If the superblock cannot be read, there are no
  /// keys, and a later read reports the problem.
  ///
  /// - Throws: `.locked` or `.notEncrypted` if the key does not belong to the database.
  func unlocked(_ base: any Directory) throws(EngineError) -> KeyedDirectory {
    let superblock: Superblock
    do throws(EngineError) {
      superblock = try Superblock.read(from: try base.open(Superblock.name, access: .readOnly))
    } catch {
      return KeyedDirectory(base)
    }
    return KeyedDirectory(
      base, try superblock.unlock(with: vault, at: base.path, random: random))
  }

  /// Keys for a new database; nil without encryption.
  func makeKeyring(for identity: DatabaseIdentity) throws(EngineError) -> Keyring? {
    guard let vault else { return nil }
    let identity = identity.bytes
    let (key, kept) = try vault.makeKey(for: identity)
    return Keyring(key, kept: kept, identity: identity, random: random)
  }
}
