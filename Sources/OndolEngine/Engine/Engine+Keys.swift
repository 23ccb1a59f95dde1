// The keys of an open database: which there are, and how they change while it is in use. When a
// change has begun, everything written is sealed in the new way. Then ordinary merges and moves
// rewrite everything older, and the change ends. Across openings, only the decision to complete the
// change can be lost; the next process that opens the database continues it.

/// The kind of a change of keys.
package enum KeyChangeKind: Sendable {
  case encrypting
  case decrypting
  case rekeying
}

extension Engine {
  /// Whether the database needs a key to open.
  package var isEncrypted: Bool { storage.keyring?.kept != nil }

  /// The superblock's bytes for the key; nil when it has none.
  package var secret: [UInt8]? { storage.keyring?.secret }

  /// Makes the superblock store the database's key in this form instead of the previous one. On the
  /// device once this returns.
  package func keep(_ kept: [UInt8]) async throws(EngineError) {
    try refuseWhenReadOnly()
    try await storage.perform { (storage) throws(EngineError) in try storage.keep(kept) }
  }

  // MARK: - Changing keys

  /// Files with a smaller number must still be rewritten; nil when no change of keys is under way.
  package var border: FileNumber? { storage.keyring?.change?.border }

  /// The change under way.
  package var keyChange: KeyChangeKind? {
    storage.keyring?.change.map { change in
      change.hasTwoKeys ? .rekeying : change.isSealed ? .encrypting : .decrypting
    }
  }

  /// Makes all new files sealed with a new key, or unencrypted. On the device once this returns. No
  /// other change may be under way.
  ///
  /// - Parameter vault: makes and stores the key; nil for unencrypted files.
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

  /// Bytes of the files that must still be rewritten.
  package func bytesBeforeBorder() async throws(EngineError) -> UInt64 {
    guard let border else { return 0 }
    return try await storage.maintenance.perform { [storage] () throws(EngineError) in
      try storage.bytes(before: border)
    }
  }

  /// Rewrites everything in files before the border, except contents. `progress` receives bytes of
  /// rows as they are merged.
  ///
  /// - Throws: `.corrupt` when a file cannot be read, after all others are done; `.locked` while
  ///   keys of groups are missing; `.cancelled`.
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

  /// Ends the change when no old file is left, including files that readers still use. Returns the
  /// names of the old files.
  ///
  /// - Throws: `.locked` while keys of groups are missing.
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
