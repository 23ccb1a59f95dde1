// Keyed groups for the upper floor: creating and dropping them, and naming and sealing bytes under
// their keys in rows outside the groups.

extension Engine {
  /// The groups, and whether the key of each is available.
  package var keyedGroups: [UInt32: Bool] {
    guard !isOnStore, let keys = storage.groupKeys else { return [:] }
    return keys.live
  }

  /// Whether the key of a group is available; nil when there is no such group.
  package func hasKey(ofGroup number: UInt32) -> Bool? {
    guard !isOnStore, let keys = storage.groupKeys else { return nil }
    return keys.hasKey(of: number)
  }

  /// Makes a group with a new key, which is on the device once this returns, and returns its
  /// number. Rows belong to the group if their keyspace has this number above the low twelve bits.
  ///
  /// - Throws: `.invalid` when the database is not encrypted, or already has the maximum number of
  ///   groups.
  package func makeKeyedGroup() async throws(EngineError) -> UInt32 {
    try refuseWhenReadOnly()
    if isOnStore { throw .unsupported(reason: Self.noFiles) }
    let made = try await storage.perform {
      (storage) throws(EngineError) -> Result<UInt32, EngineError> in
      if let refusal = storage.refusalOfGroup { return .failure(refusal) }
      return .success(try storage.makeGroup())
    }
    return try made.get()
  }

  /// Erases a group's key: nothing that was sealed under it can be read any more, not even in
  /// copies. Call it once the group's keyspaces are dropped, and again until it returns: the group
  /// may be gone while its key is not. Does nothing when there is neither.
  ///
  /// - Throws: when the key may still be in `KEYS`; `.invalid` when that file cannot be written
  ///   without losing the keys of others.
  package func dropKeyedGroup(_ number: UInt32) async throws(EngineError) {
    try refuseWhenReadOnly()
    if isOnStore { return }
    let refusal = try await storage.perform { (storage) throws(EngineError) in
      try storage.dropGroup(number)
    }
    if let refusal { throw refusal }
  }

  /// Names and seals bytes under the keys of groups.
  package var groupNaming: GroupNaming { GroupNaming(storage.keyed, storage.environment.random) }

  /// Throws when a batch has rows of groups whose keys are missing.
  func refuseMissingKeys(_ batch: borrowing Batch) throws(EngineError) {
    guard let keys = storage.groupKeys else { return }
    for part in batch.keyed {
      guard let absence = keys.absence(of: part.group) else { continue }
      throw .locked(
        path: storage.directory.path, reason: "the collection's key is not here: \(absence)")
    }
  }
}

/// Names and seals bytes of keyed groups, for rows outside the groups.
package struct GroupNaming: Sendable {
  private let directory: KeyedDirectory
  private let random: @Sendable () -> UInt64

  init(_ directory: KeyedDirectory, _ random: @escaping @Sendable () -> UInt64) {
    self.directory = directory
    self.random = random
  }

  private func key(of group: UInt32) -> (any MasterKey)? {
    directory.keyring?.groups.namingKey(of: group)
  }

  /// Thirty-two bytes that represent `bytes`. They stay the same as long as the group exists, and
  /// reveal nothing without its key. Nil when the key is missing.
  package func name(of bytes: [UInt8], in group: UInt32) -> [UInt8]? {
    key(of: group)?.proof(of: bytes)
  }

  private static let saltLength = 32

  /// `bytes` sealed under the group's key; nil when that is missing.
  package func seal(_ bytes: [UInt8], in group: UInt32) -> [UInt8]? {
    guard let key = key(of: group) else { return nil }
    var sealed: [UInt8] = []
    for _ in 0..<(Self.saltLength / 8) { sealed.appendLittleEndian(random()) }
    let cipher = key.cipher(for: sealed)
    let start = sealed.count
    sealed += bytes
    cipher.seal(&sealed, from: start, nonce: Self.nonce, context: [])
    return sealed
  }

  /// Opens sealed bytes; nil when the key is missing, or they were not sealed with it.
  package func open(_ sealed: [UInt8], in group: UInt32) -> [UInt8]? {
    guard let key = key(of: group), sealed.count >= Self.saltLength + SealFormat.tagLength else {
      return nil
    }
    let cipher = key.cipher(for: Array(sealed.prefix(Self.saltLength)))
    var opened: [UInt8] = []
    let isSealed = cipher.open(
      sealed.bytes.extracting(droppingFirst: Self.saltLength), nonce: Self.nonce, context: [],
      appendingTo: &opened)
    return isSealed ? opened : nil
  }

  /// Each salt makes a key of its own.
  private static let nonce = SealNonce(place: 0, extra: 0)
}
