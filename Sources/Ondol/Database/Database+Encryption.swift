// Keys of an encrypted database that is open: which of them open it. The database's own key stays
// as it is, wrapped anew; so this is one small file written, whatever the database's size.

internal import OndolEngine

extension Database {
  /// Whether the database's files are encrypted.
  ///
  /// - Complexity: O(1).
  public var isEncrypted: Bool { engine.keyring != nil }

  /// Has these keys open the database from now on, and no others: to take another key, or to have a
  /// second one in a safe. Reads and writes go on meanwhile; what is stored is not written again.
  ///
  /// Copies and backups that were made before open with the keys they were made with, and so do
  /// remains of the old file that a device may keep in places nobody can name. Where a key has
  /// become known, put the documents into a new database: a dump, loaded with another key.
  ///
  /// ```swift
  /// let recovery = Database.Encryption.randomKey()
  /// try await database.setEncryptionKeys([.key(key), .key(recovery)])
  /// ```
  ///
  /// - Parameter keys: 1 to 4 keys.
  /// - Throws: `.invalidArgument` for another number of keys, or one that cannot be a key;
  ///   `.failedPrecondition` when the database is not encrypted, is open for reading only, or is
  ///   closed; `.unavailable` when writing failed, now or before, and then either the old keys or
  ///   the new ones open it.
  /// - Complexity: two writes of some kilobytes, synced.
  @concurrent
  public func setEncryptionKeys(_ keys: [Encryption]) async throws(DatabaseError) {
    guard (1...Encryption.mostKeys).contains(keys.count) else {
      throw DatabaseError(
        .invalidArgument,
        "a database has 1 to \(Encryption.mostKeys) keys, and these are \(keys.count)", path: path)
    }
    for key in keys { try key.check(for: path) }
    guard let keyring = engine.keyring else {
      throw DatabaseError(
        .failedPrecondition, "the database is not encrypted",
        suggestion: "load a dump of it into a new one, with a key", path: path)
    }
    try await rethrowing { () async throws(EngineError) in
      let kept = try DatabaseVault.keep(
        keyring.secret, for: keyring.identity, by: keys.map { DatabaseVault($0) })
      try await engine.keep(kept)
    }
  }
}
