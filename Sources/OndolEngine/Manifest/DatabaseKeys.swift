// From a directory to its keys: what the superblock keeps of them is opened before anything else is
// read, and a database that is made gets its own.

extension Environment {
  /// `base` with the keys of the database that is there. Where its superblock cannot be read there
  /// are none, and whoever reads on finds out what is wrong.
  ///
  /// - Throws: `.locked` or `.notEncrypted` when the key is not the database's.
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

  /// Keys for a database that is made; nil where it is to be in the clear.
  func makeKeyring(for identity: DatabaseIdentity) throws(EngineError) -> Keyring? {
    guard let vault else { return nil }
    let identity = identity.bytes
    let (key, kept) = try vault.makeKey(for: identity)
    return Keyring(key, kept: kept, identity: identity, random: random)
  }
}
