// The keys of a database that is open: which there are, and how they become others while it is in
// use. A change has a beginning, after which whatever is written is sealed as it is to be; then
// what is left from before is written anew, by merges and moves as there are anyway; then an end.
// Between two openings nothing is lost of it but the wish to see it through: who has the database
// open next goes on.

/// What becomes of a database's keys.
package enum KeyChangeKind: Sendable {
  case encrypting
  case decrypting
  case rekeying
}

extension Engine {
  /// Whether it takes a key to open the database.
  package var isEncrypted: Bool { storage.keyring?.kept != nil }

  /// The bytes of the key that the superblock keeps; nil where it keeps none.
  package var secret: [UInt8]? { storage.keyring?.secret }

  /// Has the superblock keep the database's key so, and no more as before. On the device once this
  /// returns.
  package func keep(_ kept: [UInt8]) async throws(EngineError) {
    try refuseWhenReadOnly()
    try await storage.perform { (storage) throws(EngineError) in try storage.keep(kept) }
  }

  // MARK: - Changing keys

  /// Files with a smaller number are yet to be written anew; nil when no change of keys is under
  /// way.
  package var border: FileNumber? { storage.keyring?.change?.border }

  /// What is under way.
  package var keyChange: KeyChangeKind? {
    storage.keyring?.change.map { change in
      change.hasTwoKeys ? .rekeying : change.isSealed ? .encrypting : .decrypting
    }
  }

  /// Has all files that are made from now on be sealed with a new key, or be in the clear. On the
  /// device once this returns. No other change may be under way.
  ///
  /// - Parameter vault: makes the key, and keeps it; nil for files in the clear.
  package func beginKeyChange(to vault: (any Vault)?) async throws(EngineError) {
    try refuseWhenReadOnly()
    if isOnStore { throw .unsupported(reason: Self.noFiles) }
    let new = try vault?.makeKey(for: storage.identity.bytes)
    let refusal = try await storage.perform {
      (storage) throws(EngineError) -> EngineError? in
      if let refusal = storage.refusalOfKeyChange(toClear: new == nil) { return refusal }
      try storage.beginKeyChange(to: new)
      return nil
    }
    if let refusal { throw refusal }
  }

  /// Bytes of the files that are yet to be written anew.
  package func bytesBeforeBorder() async throws(EngineError) -> UInt64 {
    guard let border else { return 0 }
    return try await storage.maintenance.perform { [storage] () throws(EngineError) in
      try storage.bytes(before: border)
    }
  }

  /// Writes everything anew that stands in files before the border, but for contents. `progress`
  /// gets bytes of rows as they are merged.
  ///
  /// - Throws: `.corrupt` where a file cannot be read, when all others are done; `.locked` while
  /// keys
  ///   of groups are not here; `.cancelled`.
  package func leaveFilesBeforeBorder(
    _ progress: (UInt64) -> Void
  ) async throws(EngineError) {
    guard let change = storage.keyring?.change else { return }
    if let refusal = try await storage.perform({ (storage) in storage.refusalOfGoingOn }) {
      throw refusal
    }
    while try await !storage.perform({ (storage) throws(EngineError) in
      try storage.leaveLog(change)
    }) {
      _ = try await commit(Batch(), durability: .process)
    }
    try await flush()
    try await storage.perform { (storage) throws(EngineError) in try storage.moveFloor() }
    while try await storage.perform({ (storage) throws(EngineError) in
      try storage.rewriteLogOfHistory(change)
    }) { try refuseWhenCancelled() }
    try await upkeep.rewrite(before: change.border, progress)
  }

  /// Ends the change when no file is left from before, in any reader's hands either. Answers with
  /// the names of those that are.
  ///
  /// - Throws: `.locked` while keys of groups are not here.
  package func finishKeyChange() async throws(EngineError) -> [String] {
    let left = try await storage.perform {
      (storage) throws(EngineError) -> Result<[String], EngineError> in
      if let refusal = storage.refusalOfGoingOn { return .failure(refusal) }
      return .success(try storage.finishKeyChange())
    }
    return try left.get()
  }

  private func refuseWhenCancelled() throws(EngineError) {
    if Task.isCancelled { throw .cancelled }
  }
}
