// Keys of a database that is open. What opens it is exchanged by one small file written: the
// database's own key stays as it is, wrapped anew. Encrypting a database, decrypting it, and
// exchanging its own key write everything anew, while it is in use; the engine's files and the
// contents each see to theirs, again and again until nothing is left from before.

internal import Logging
internal import OndolEngine

/// How far a database is on its way to another key, or to none.
public struct EncryptionProgress: Sendable, Hashable {
  /// Bytes written anew so far.
  public var completedBytes: UInt64
  /// All bytes that are to be written anew, about.
  public var totalBytes: UInt64

  /// From 0 to 1.
  public var fraction: Double {
    totalBytes == 0 ? 1 : Double(completedBytes) / Double(totalBytes)
  }
}

extension Database {
  /// Whether the database takes a key to open. From the moment on at which `encrypt` has begun, up
  /// to the one at which `decrypt` is done.
  ///
  /// - Complexity: O(1).
  public var isEncrypted: Bool { engine.isEncrypted }

  /// Has these keys open the database from now on, and no others: to take another key, or to have a
  /// second one in a safe. Reads and writes go on meanwhile; what is stored is not written again.
  ///
  /// Copies and backups that were made before open with the keys they were made with, and so do
  /// remains of the old file that a device may keep in places nobody can name. Where a key has
  /// become known, use `rekey(with:progress:)`.
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
    try check(keys)
    try await contents.turns.acquire(.keys)
    defer { contents.turns.release(.keys) }
    try await keep(keys)
  }

  // MARK: - Other files

  /// Encrypts a database in the clear, while it is in use. Once this has begun the database opens
  /// with these keys only; when it returns, nothing that is stored can be read in any of its files.
  ///
  /// What is written anew needs room beside what was there: of rows a segment at a time, of blobs a
  /// file. It waits for snapshots, listeners' results and backups that still read a file from
  /// before. When the task is cancelled, the app ends or the power goes, the next opening, which
  /// takes one of the keys, goes on in the background; so does another call of this.
  ///
  /// ```swift
  /// try await database.encrypt(with: [.key(key)]) { progress in
  ///   print("\(Int(100 * progress.fraction)) %")
  /// }
  /// ```
  ///
  /// The device may keep remains of files that were removed, in places that nobody can name; copies
  /// and backups made before stay in the clear, and URLs of files that `downloadURL()` gave lead
  /// nowhere any more.
  ///
  /// - Parameters:
  ///   - keys: 1 to 4 keys, each of which opens the database.
  ///   - progress: called from time to time, and once at the end, on the caller's actor.
  /// - Throws: `.invalidArgument` for another number of keys, or one that cannot be a key;
  ///   `.failedPrecondition` when the database is encrypted, is open for reading only, or is
  ///   closed; `.dataLoss` where a file is damaged, when all others are done; `.cancelled`;
  ///   `.unavailable` when files from before could not be removed; `.unimplemented` on a server.
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

  /// Takes the encryption from a database, while it is in use: when this returns it opens without a
  /// key. Up to then it takes the keys that it has. For the rest as `encrypt(with:progress:)`.
  ///
  /// - Parameter progress: called from time to time, and once at the end, on the caller's actor.
  /// - Throws: `.failedPrecondition` when the database is not encrypted, is open for reading only,
  ///   or is closed, and when a collection has a key of its own: nobody could erase it any more by
  ///   dropping the collection; otherwise as `encrypt(with:progress:)`.
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

  /// Exchanges the key that the files are sealed with, which the app never sees, and has these keys
  /// open the database from the beginning of this on. When it returns, who once had the old key, or
  /// one that opened the database, can read nothing of it. Collections with keys of their own get
  /// other keys, too. For the rest as `encrypt(with:progress:)`.
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

  /// Not on the caller's actor: what a passphrase costs keeps a thread busy.
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

  // MARK: - Going on

  /// Begins a change of keys and sees it through, or goes on with one of the same kind that is
  /// under way. One of another kind is seen through first.
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

  /// Goes on with a change of keys that an earlier life of the database has begun.
  package func goOnChangingKeys() async throws(DatabaseError) {
    guard engine.border != nil else { return }
    try await contents.turns.acquire(.keys)
    defer { contents.turns.release(.keys) }
    options.logger.notice("going on with a change of the database's keys")
    try await finishKeyChange { _ in }
  }

  /// Microseconds between two looks whether files from before are gone, at first and at most.
  private static let firstPause: Int64 = 1_000
  private static let longestPause: Int64 = 200_000
  /// Looks at files that nobody reads and that stay all the same.
  private static let mostLooks = 300

  /// Writes everything anew that is to be, and waits until nothing is left from before.
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
        throw DatabaseError(.cancelled, "the task was cancelled; the next opening goes on")
      }
      looks = engine.metrics.pins.bytes == 0 ? looks + 1 : 0
      guard looks < Self.mostLooks else {
        throw DatabaseError(
          .unavailable, "files from before are still there: \(left.joined(separator: ", "))",
          suggestion: "open the database again, which removes them and goes on", path: path)
      }
      await environment.sleep(pause)
      pause = min(2 * pause, Self.longestPause)
    }
    state.completedBytes = state.totalBytes
    progress(state)
  }
}
