// Changing the keys of an open database. Exchanging the keys that open it writes one small file:
// the database's own key stays the same and is only wrapped again. Encrypting a database,
// decrypting it and exchanging its own key rewrite everything while the database is in use. The
// engine rewrites its files and the content store rewrites the contents, in as many passes as it
// takes until nothing from before the change is left.

internal import Logging
internal import OndolEngine

/// How far a database has come in changing its key, or in removing it.
public struct EncryptionProgress: Sendable, Hashable {
  /// Bytes rewritten so far.
  public var completedBytes: UInt64
  /// All bytes to rewrite, approximately.
  public var totalBytes: UInt64

  /// From 0 to 1.
  public var fraction: Double {
    totalBytes == 0 ? 1 : Double(completedBytes) / Double(totalBytes)
  }
}

extension Database {
  /// Whether the database needs a key to open: from the moment `encrypt` has begun until `decrypt`
  /// is done.
  ///
  /// - Complexity: O(1).
  public var isEncrypted: Bool { engine.isEncrypted }

  /// Makes these keys, and no others, open the database from now on: use it to exchange a key, or
  /// to add a second one that you keep in a safe. Reads and writes continue meanwhile, and stored
  /// data is not rewritten.
  ///
  /// Copies and backups made before this call still open with the keys they were made with. So do
  /// remains of the old key file, which a device may keep in places that no program can address. If
  /// a key has leaked, use `rekey(with:progress:)`.
  ///
  /// ```swift
  /// let recovery = Database.Encryption.randomKey()
  /// try await database.setEncryptionKeys([.key(key), .key(recovery)])
  /// ```
  ///
  /// - Parameter keys: 1 to 4 keys.
  /// - Throws: `.invalidArgument` for another number of keys, or for one that cannot be a key;
  ///   `.failedPrecondition` when the database is not encrypted, is open for reading only, or is
  ///   closed; `.unavailable` when a write failed, now or earlier. In that case either the old keys
  ///   or the new ones open the database.
  /// - Complexity: two writes of a few kilobytes, synced.
  @concurrent
  public func setEncryptionKeys(_ keys: [Encryption]) async throws(DatabaseError) {
    try check(keys)
    try await contents.turns.acquire(.keys)
    defer { contents.turns.release(.keys) }
    try await keep(keys)
  }

  // MARK: - Other files

  /// Encrypts an unencrypted database while it is in use. As soon as the encryption has begun, the
  /// database opens with these keys only. When the call returns, none of the database's files holds
  /// unencrypted data.
  ///
  /// The rewritten data needs room beside the old data: one segment at a time for rows, one file at
  /// a time for blobs. The encryption waits for snapshots, listeners' results and backups that
  /// still read an old file. When the task is cancelled, the app ends or the power fails, the next
  /// open resumes the encryption in the background. That open takes one of the keys. Calling this
  /// method again also resumes it.
  ///
  /// ```swift
  /// try await database.encrypt(with: [.key(key)]) { progress in
  ///   print("\(Int(100 * progress.fraction)) %")
  /// }
  /// ```
  ///
  /// The device may keep remains of removed files in places that no program can address. Copies and
  /// backups made earlier stay unencrypted. File URLs that `downloadURL()` returned earlier stop
  /// working.
  ///
  /// - Parameters:
  ///   - keys: 1 to 4 keys, each of which opens the database.
  ///   - progress: called from time to time, and once at the end, on the caller's actor.
  /// - Throws: `.invalidArgument` for another number of keys, or for one that cannot be a key;
  ///   `.failedPrecondition` when the database is encrypted, is open for reading only, or is
  ///   closed; `.dataLoss` when a file is damaged, after all others are done; `.cancelled`;
  ///   `.unavailable` when old files could not be removed; `.unimplemented` on a server.
  /// - Complexity: O(bytes in the database), all of which are read and written once.
  public func encrypt(
    with keys: [Encryption], progress: (EncryptionProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    try check(keys)
    try await changeKeys(.encrypting, progress) { (database) async throws(DatabaseError) in
      guard !database.isEncrypted else {
        throw DatabaseError(
          .failedPrecondition, "the database is encrypted",
          suggestion: "use rekey(with:) for other keys", path: database.path)
      }
      try await database.begin(keys)
    } orGoingOn: { (database) async throws(DatabaseError) in
      try await database.keep(keys)
    }
  }

  /// Removes the encryption of a database while it is in use. When the call returns, the database
  /// opens without a key. Until then it needs one of its current keys. In all other respects this
  /// behaves like `encrypt(with:progress:)`.
  ///
  /// - Parameter progress: called from time to time, and once at the end, on the caller's actor.
  /// - Throws: `.failedPrecondition` when the database is not encrypted, is open for reading only,
  ///   or is closed, and when a collection has a key of its own, because dropping that collection
  ///   could no longer erase it; otherwise as `encrypt(with:progress:)`.
  /// - Complexity: O(bytes in the database), all of which are read and written once.
  public func decrypt(
    progress: (EncryptionProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    try await changeKeys(.decrypting, progress) { (database) async throws(DatabaseError) in
      try database.refuseInTheClear()
      try await database.refuseCollectionsWithOwnKeys()
      try await rethrowing { () async throws(EngineError) in
        try await database.engine.beginKeyChange(to: nil)
      }
    } orGoingOn: { _ in
    }
  }

  /// Exchanges the key that seals the files, which the app never sees. From the beginning of the
  /// call, the given keys open the database. When the call returns, the old key and the keys that
  /// used to open the database can no longer read any of it. Collections with keys of their own
  /// also get new keys. In all other respects this behaves like `encrypt(with:progress:)`.
  ///
  /// - Parameters:
  ///   - keys: 1 to 4 keys; the same as before, or others.
  ///   - progress: called from time to time, and once at the end, on the caller's actor.
  /// - Throws: `.failedPrecondition` when the database is not encrypted, is open for reading only,
  ///   or is closed; otherwise as `encrypt(with:progress:)`.
  /// - Complexity: O(bytes in the database), all of which are read and written once.
  public func rekey(
    with keys: [Encryption], progress: (EncryptionProgress) -> Void = { _ in }
  ) async throws(DatabaseError) {
    try check(keys)
    try await changeKeys(.rekeying, progress) { (database) async throws(DatabaseError) in
      try database.refuseInTheClear()
      try await database.begin(keys)
    } orGoingOn: { (database) async throws(DatabaseError) in
      try await database.keep(keys)
    }
  }

  // MARK: - Beginning

  private func check(_ keys: [Encryption]) throws(DatabaseError) {
    guard (1...Encryption.mostKeys).contains(keys.count) else {
      throw DatabaseError(
        .invalidArgument,
        "a database has 1 to \(Encryption.mostKeys) keys, and these are \(keys.count)", path: path)
    }
    for key in keys { try key.check(for: path) }
  }

  private func refuseInTheClear() throws(DatabaseError) {
    guard !isEncrypted else { return }
    throw DatabaseError(
      .failedPrecondition, "the database is not encrypted", suggestion: "use encrypt(with:)",
      path: path)
  }

  /// Runs off the caller's actor, because deriving a key from a passphrase keeps a thread busy.
  @concurrent
  private func keep(_ keys: [Encryption]) async throws(DatabaseError) {
    try refuseInTheClear()
    guard let secret = engine.secret else { return }
    try await rethrowing { () async throws(EngineError) in
      let kept = try DatabaseVault.keep(
        secret, for: engine.identity.bytes, by: keys.map { DatabaseVault($0) })
      try await engine.keep(kept)
    }
  }

  @concurrent
  private func begin(_ keys: [Encryption]) async throws(DatabaseError) {
    try await rethrowing { () async throws(EngineError) in
      try await engine.beginKeyChange(
        to: DatabaseVault(keys[0], and: Array(keys.dropFirst())))
    }
  }

  // MARK: - Continuing

  /// Begins a change of keys and completes it, or resumes one of the same kind that is under way. A
  /// change of another kind that is under way is completed first.
  private func changeKeys(
    _ kind: KeyChangeKind, _ progress: (EncryptionProgress) -> Void,
    begin: @Sendable (Database) async throws(DatabaseError) -> Void,
    orGoingOn keep: @Sendable (Database) async throws(DatabaseError) -> Void
  ) async throws(DatabaseError) {
    try refuseInTransaction("a change of keys")
    try await contents.turns.acquire(.keys)
    defer { contents.turns.release(.keys) }
    if engine.keyChange == kind {
      try await keep(self)
    } else {
      try await finishKeyChange { _ in }
      try await begin(self)
    }
    try await finishKeyChange(progress)
  }

  /// Resumes a change of keys that began before the database was last closed.
  package func goOnChangingKeys() async throws(DatabaseError) {
    guard engine.border != nil else { return }
    try await contents.turns.acquire(.keys)
    defer { contents.turns.release(.keys) }
    options.logger.notice("continuing a change of the database's keys")
    try await finishKeyChange { _ in }
  }

  /// Microseconds between two checks whether the old files are gone: the first pause and the
  /// longest.
  private static let firstPause: Int64 = 1_000
  private static let longestPause: Int64 = 200_000
  /// How often it checks for files that no read uses and that are still there.
  private static let mostLooks = 300

  /// Rewrites everything that the change requires, and waits until no old file is left.
  private func finishKeyChange(
    _ progress: (EncryptionProgress) -> Void
  ) async throws(DatabaseError) {
    let total = try await rethrowing { () async throws(EngineError) in
      try await engine.bytesBeforeBorder()
    }
    var state = EncryptionProgress(completedBytes: 0, totalBytes: total)
    func note(_ bytes: UInt64) {
      state.completedBytes = min(state.totalBytes, state.completedBytes + bytes)
      progress(state)
    }
    var (pause, looks) = (Self.firstPause, 0)
    while let border = engine.border {
      try await contents.reclaimer.leaveFiles(before: border, note)
      let left = try await rethrowing { () async throws(EngineError) in
        try await engine.leaveFilesBeforeBorder(note)
        return try await engine.finishKeyChange()
      }
      if left.isEmpty { break }
      if Task.isCancelled {
        throw DatabaseError(.cancelled, "the task was cancelled; the next open continues")
      }
      looks = engine.metrics.pins.bytes == 0 ? looks + 1 : 0
      guard looks < Self.mostLooks else {
        throw DatabaseError(
          .unavailable, "files from before are still there: \(left.joined(separator: ", "))",
          suggestion: "open the database again, which removes them and continues", path: path)
      }
      await environment.sleep(pause)
      pause = min(2 * pause, Self.longestPause)
    }
    state.completedBytes = state.totalBytes
    progress(state)
  }
}
