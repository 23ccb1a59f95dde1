// The way of the floor above to keyed groups: making and dropping them, and what it names and hides
// under their keys in rows that are not theirs.

extension Engine {
  /// The groups that there are, and whether the key of each is here.
  package var keyedGroups: [UInt32: Bool] {
    guard !isOnStore, let keys = storage.groupKeys else { return [:] }
    return keys.live
  }

  /// Whether the key of a group is here; nil when there is no such group.
  package func hasKey(ofGroup number: UInt32) -> Bool? {
    guard !isOnStore, let keys = storage.groupKeys else { return nil }
    return keys.hasKey(of: number)
  }

  /// Makes a group with a new key, which is on the device once this returns, and answers with its
  /// number. Rows are the group's whose keyspace has this number above the low twelve bits.
  ///
  /// - Throws: `.invalid` where the database is in the clear, or has as many groups as there can
  ///   be.
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

  /// Erases a group's key: nothing that was sealed under it can be read any more, in no copy
  /// either. To be called once its keyspaces are dropped, and again until it returns: the group may
  /// be gone and its key not. Does nothing when there is neither.
  ///
  /// - Throws: where the key may still be in `KEYS`; `.invalid` where that cannot be written
  /// without
  ///   losing keys of others.
  package func dropKeyedGroup(_ number: UInt32) async throws(EngineError) {
    try refuseWhenReadOnly()
    if isOnStore { return }
    let refusal = try await storage.perform { (storage) throws(EngineError) in
      try storage.dropGroup(number)
    }
    if let refusal { throw refusal }
  }

  /// What names and hides bytes under the keys of groups.
  package var groupNaming: GroupNaming { GroupNaming(storage.keyed, storage.environment.random) }

  /// Throws where a batch has rows of groups whose keys are not here.
  func refuseMissingKeys(_ batch: borrowing Batch) throws(EngineError) {
    guard let keys = storage.groupKeys else { return }
    for part in batch.keyed {
      guard let absence = keys.absence(of: part.group) else { continue }
      throw .locked(
        path: storage.directory.path, reason: "the collection's key is not here: \(absence)")
    }
  }
}

/// Names and hides bytes of keyed groups, in rows that are not theirs.
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

  /// Thirty-two bytes that stand for `bytes`: the same ones for as long as the group is there, and
  /// nobody without its key can tell of what. Nil where the key is not here.
  package func name(of bytes: [UInt8], in group: UInt32) -> [UInt8]? {
    key(of: group)?.proof(of: bytes)
  }

  private static let saltLength = 32

  /// `bytes` sealed under the group's key; nil where that is not here.
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

  /// What was sealed so; nil where the key is not here, or it was not.
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
