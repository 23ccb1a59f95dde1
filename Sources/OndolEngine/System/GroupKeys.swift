// The keys of keyed groups in an open database. They are read from `KEYS` if the manifest says that
// groups exist or existed, so that a database without any never looks for the file.
//
// The manifest vouches for `KEYS` by recording the smallest acceptable generation. A process that
// finds only an older generation, or no valid copy, has no keys and never writes the file, because
// that would replace keys that may come back. A failed read is an error of the open, and says
// nothing about the contents of the file.
//
// A change is made to a value (GroupKeySet), written, read back, and only then used in memory. An
// erased key stays in memory until the database is closed, for readers of snapshots that contain
// rows of the group.

/// The keys of a database's groups.
final class GroupKeys: Sendable {
  private struct State: Sendable {
    /// The keys of the database that entries may be encrypted with, newest first.
    var masters: [any MasterKey]
    var directory: (any Directory)?
    /// Whether the file was read, or found missing.
    var isRead = false
    /// Whether the file exists.
    var isThere = false
    /// The contents of the file; nil if they are not acceptable.
    var set: GroupKeySet?
    /// The file must be rewritten: its copies differ, or it is encrypted with an older key.
    var isStale = false
    /// A copy in the file was unreadable even after it was written. Another attempt is made for a
    /// requested change, but not as part of other work.
    var isPastMending = false
    /// Why keys that should be in the file are missing.
    var problem: String?
    /// Groups with files that no key decrypts, and the evidence for it.
    var lockedOut: [UInt32: String] = [:]
    /// The keys that decrypt files: the current set and earlier ones.
    var known: [UInt32: GroupKeySet.Entry] = [:]
    /// The groups in the latest known manifest.
    var list = GroupList()
    /// Whether a keyed group has ever existed.
    var isUsed = false
  }

  let identity: [UInt8]
  private let state: Guarded<State>

  init(_ masters: [any MasterKey], identity: [UInt8]) {
    self.identity = identity
    state = Guarded(State(masters: masters))
  }

  // MARK: - Loading

  /// Sets the directory that keys are read from. Only the first call counts.
  func attach(to directory: any Directory) {
    state.withLock { if $0.directory == nil { $0.directory = directory } }
  }

  /// Makes `KEYS` be read again when it is next needed, because another process writes it.
  func lookAgain() {
    state.withLock { state in
      state.isRead = false
      state.lockedOut = [:]
    }
  }

  /// Takes over keys that an earlier keyring of the database has read, for readers that still use
  /// their files.
  func inherit(_ earlier: GroupKeys) {
    let known = earlier.state.withLock { $0.known }
    state.withLock { state in
      state.known.merge(known) { mine, earlier in earlier.followed(by: mine) }
    }
  }

  /// Reads `KEYS` for a manifest with these groups, unless that was already done. Returns false if
  /// keys were discarded because the manifest requires newer ones. Everything decrypted with them
  /// is then invalid.
  ///
  /// - Throws: if it cannot be read. Then nothing is known, and the next call tries again.
  func read(for list: GroupList) throws(EngineError) -> Bool {
    let (isRead, directory, masters) = state.withLock { state in
      state.isUsed = true
      return (state.isRead, state.directory, state.masters)
    }
    if !isRead, let directory {
      let found = try GroupKeysFile.read(
        in: directory, of: identity, needed: list.generation, vouchedForBy: masters)
      state.withLock { state in
        (state.isRead, state.isThere) = (true, found.isThere)
        (state.problem, state.isStale) = (found.problem, found.isStale)
        take(found.newest.map { GroupKeySet($0, openedWith: masters) }, &state)
      }
      return true
    }
    return state.withLock { state in
      guard let set = state.set, set.generation < list.generation else { return true }
      state.problem = GroupKeysFile.isOlder(set.generation, than: list.generation)
      state.set = nil
      state.known = [:]
      return false
    }
  }

  /// Uses the contents of the file.
  private func take(_ set: GroupKeySet?, _ state: inout State) {
    state.set = set
    guard let set else { return }
    if set.isOfOlderKey { state.isStale = true }
    if !set.unopened.isEmpty {
      state.problem = "a key in \(GroupKeysFile.name) was sealed with another key"
    }
    for (group, entry) in set.entries {
      state.known[group] = state.known[group]?.followed(by: entry) ?? entry
    }
  }

  // MARK: - The groups

  /// The existing groups, as far as known.
  var list: GroupList { state.withLock { $0.list } }

  /// Whether a group existed once and no longer does, as far as known.
  func isGone(_ group: UInt32) -> Bool {
    state.withLock { group < $0.list.next && !$0.list.live.contains(group) }
  }

  /// Records the manifest's list.
  func note(_ list: GroupList) {
    state.withLock { state in
      state.list = list
      state.isUsed = state.isUsed || list.isUsed
    }
  }

  /// Records a file of the group that its key does not decrypt. From then on the key of the group
  /// counts as missing, because what can be read is not everything, and it must not be merged.
  /// Returns false if that is already known, or the key is missing anyway.
  func lockOut(_ group: UInt32, because reason: String) -> Bool {
    state.withLock { state in
      guard state.known[group] != nil, state.lockedOut[group] == nil else { return false }
      state.lockedOut[group] = reason
      return true
    }
  }

  /// Whether files of the group have shown that its key is a different one.
  func isLockedOut(_ group: UInt32) -> Bool { state.withLock { $0.lockedOut[group] != nil } }

  /// Groups with files that their keys do not decrypt, and the evidence for it.
  var lockedOut: [UInt32: String] { state.withLock { $0.lockedOut } }

  /// Whether commits may contain bytes of keyed groups.
  var isUsed: Bool { state.withLock { $0.isUsed } }

  // MARK: - Queries

  /// The key of a group for the file with this number; nil if it is missing.
  func key(of group: UInt32, file number: FileNumber) -> (any MasterKey)? {
    entry(of: group)?.key(of: number)
  }

  /// The key for names of a group; nil if it is missing.
  func namingKey(of group: UInt32) -> (any MasterKey)? { entry(of: group)?.naming }

  private func entry(of group: UInt32) -> GroupKeySet.Entry? {
    state.withLock { $0.lockedOut[group] == nil ? $0.known[group] : nil }
  }

  /// The existing groups, and whether the key of each is available.
  var live: [UInt32: Bool] {
    state.withLock { state in
      Dictionary(
        uniqueKeysWithValues: state.list.live.map { ($0, Self.absence(of: $0, state) == nil) })
    }
  }

  /// Whether the key of a group is available; nil if there is no such group.
  func hasKey(of group: UInt32) -> Bool? {
    state.withLock { state in
      guard state.list.live.contains(group) else { return nil }
      return Self.absence(of: group, state) == nil
    }
  }

  /// Why the key of a group is missing; nil if it is available.
  func absence(of group: UInt32) -> String? { state.withLock { Self.absence(of: group, $0) } }

  private static func absence(of group: UInt32, _ state: State) -> String? {
    if let reason = state.lockedOut[group] { return reason }
    if state.set?.entries[group] != nil { return nil }
    return state.problem ?? "there is none of group \(group)"
  }

  // MARK: - Changing

  /// The changed keys of the existing groups, to be written.
  ///
  /// - Parameter live: the existing groups, without new ones.
  /// - Throws: `.invalid` if required keys are missing.
  func changed(
    for live: [UInt32], _ change: (inout GroupKeySet, any MasterKey) -> Void
  ) throws(EngineError) -> GroupKeySet {
    let (set, master, problem, generation) = state.withLock { state in
      (state.set, state.masters.first, state.problem, state.list.generation)
    }
    guard let master, set != nil || live.isEmpty else {
      throw .invalid(
        reason: "keys of collections are not here: \(problem ?? "the database has none")")
    }
    var next = try (set ?? GroupKeySet(generation: generation)).next()
    next.keep(live)
    change(&next, master)
    return next
  }

  /// The keys to write because the file has keys of nonexistent groups, lacks some, or must be
  /// rewritten. It is nil if no write is needed or possible.
  func correction(for live: [UInt32]) throws(EngineError) -> GroupKeySet? {
    let isNeeded = state.withLock { state in
      guard state.isUsed || !live.isEmpty else { return false }
      guard let set = state.set else { return state.isThere && live.isEmpty }
      return state.isStale || !set.groups.isSubset(of: live)
    }
    return isNeeded ? try changed(for: live) { _, _ in } : nil
  }

  /// Why the file may contain keys of nonexistent groups and cannot be written. It is nil if it
  /// contains none, or can be written.
  func obstacle(for live: [UInt32]) -> String? {
    state.withLock { state in
      state.set == nil && state.isThere && !live.isEmpty ? state.problem : nil
    }
  }

  /// Whether groups can be given new keys.
  func hasRoomForEra(behind next: FileNumber) -> Bool {
    state.withLock { $0.set?.hasRoomForEra(behind: next) ?? true }
  }

  /// Encrypts entries with the first of these keys from now on.
  func use(_ masters: [any MasterKey]) {
    state.withLock { state in
      state.masters = masters
      if let set = state.set, !set.groups.isEmpty { state.isStale = true }
    }
  }

  /// The file with these contents; nil if the database has no key.
  func file(_ set: GroupKeySet) -> GroupKeysFile? {
    state.withLock { $0.masters.first }.map { set.file(of: identity, by: $0) }
  }

  /// The file with the keys of these groups, for a copy of the database; nil if they are missing.
  func copy(for groups: [UInt32]) -> GroupKeysFile? {
    guard var set = state.withLock({ $0.set }) else { return nil }
    set.keep(groups)
    return file(set)
  }

  /// Whether the device failed in the last attempt to create two valid copies in the file.
  var isPastMending: Bool { state.withLock { $0.isPastMending } }

  /// Makes both copies in `KEYS` equal, before any work that ends with writing the file.
  ///
  /// - Throws: a temporary error if a copy can neither be read nor made readable. The contents of
  ///   the file and of memory are then unchanged.
  func mend(in directory: any Directory) throws(EngineError) {
    let (masters, needed, latest) = state.withLock { state in
      (state.masters, state.list.generation, state.set?.generation ?? .max)
    }
    let outcome = try GroupKeysFile.mend(
      in: directory, of: identity, needed: needed, upTo: latest, vouchedForBy: masters)
    switch outcome {
    case .done: state.withLock { $0.isPastMending = false }
    case .refused(let error): throw error
    case .failed(let error):
      state.withLock { $0.isPastMending = true }
      throw error
    }
  }

  /// Writes keys to `KEYS`, syncs them to the device, reads them back, and uses them.
  ///
  /// - Throws: a temporary error if nothing was changed yet, otherwise `.poisoned`, because the
  ///   contents of the file are unknown.
  func write(_ set: GroupKeySet, in directory: any Directory) throws(EngineError) {
    guard let file = file(set) else { return }
    try mend(in: directory)
    try file.write(in: directory)
    state.withLock { state in
      (state.isRead, state.isThere) = (true, true)
      (state.isStale, state.problem) = (false, nil)
      take(set, &state)
    }
  }
}
