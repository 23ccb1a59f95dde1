// The keys of keyed groups, as an open database has them: read from `KEYS` when the manifest says
// that there are, or were, groups, so that a database without any never looks for the file.
//
// `KEYS` is part of what the manifest says to be true. The manifest names the least generation of
// it that will do. Who finds less, or nothing that is sound, has no key at all, and never writes:
// what he would write would take the place of keys that may come back. A read that fails is an
// error of the opening, and says nothing of what the file has.
//
// A change is made to a value (GroupKeySet), written, read back, and only then in memory. A key
// that was erased stays in memory until the database is closed, for readers of snapshots that have
// rows of the group.

/// The keys of a database's groups.
final class GroupKeys: Sendable {
  private struct State: Sendable {
    /// The database's keys that entries may be sealed with, the newest first.
    var masters: [any MasterKey]
    var directory: (any Directory)?
    /// Whether the file was read, or found not to be there.
    var isRead = false
    /// Whether there is a file.
    var isThere = false
    /// What the file says; nil where it says nothing that will do.
    var set: GroupKeySet?
    /// The file is to be written again: its copies differ, or it is sealed with an older key.
    var isStale = false
    /// A copy in the file could not be read even after it was written: to be tried again when a
    /// change is asked for, and not in passing.
    var isPastMending = false
    /// Why keys that should be in the file are not here.
    var problem: String?
    /// Groups that have files which no key opens, and what shows it.
    var lockedOut: [UInt32: String] = [:]
    /// What files are opened with: what is in the set, and what was before.
    var known: [UInt32: GroupKeySet.Entry] = [:]
    /// The groups, as the manifest was last seen to say.
    var list = GroupList()
    /// There has been a keyed group.
    var isUsed = false
  }

  let identity: [UInt8]
  private let state: Guarded<State>

  init(_ masters: [any MasterKey], identity: [UInt8]) {
    self.identity = identity
    state = Guarded(State(masters: masters))
  }

  // MARK: - Where they are from

  /// Has keys be read from a directory; the first one given counts.
  func attach(to directory: any Directory) {
    state.withLock { if $0.directory == nil { $0.directory = directory } }
  }

  /// Has `KEYS` be read again where it is next needed: somebody else writes it.
  func lookAgain() {
    state.withLock { state in
      state.isRead = false
      state.lockedOut = [:]
    }
  }

  /// Takes keys over that an earlier ring of the database has read, for who still reads files of
  /// theirs.
  func inherit(_ earlier: GroupKeys) {
    let known = earlier.state.withLock { $0.known }
    state.withLock { state in
      state.known.merge(known) { mine, earlier in earlier.followed(by: mine) }
    }
  }

  /// Reads `KEYS`, unless that was done, for a manifest with these groups. False when keys went
  /// that were here, because the manifest wants newer ones: what was opened with them counts no
  /// more.
  ///
  /// - Throws: when it cannot be read. Then nothing is known, and the next call tries again.
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

  /// Goes by what the file says.
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

  /// The groups that there are, as far as is known.
  var list: GroupList { state.withLock { $0.list } }

  /// Whether a group was there once and is no more, as far as is known.
  func isGone(_ group: UInt32) -> Bool {
    state.withLock { group < $0.list.next && !$0.list.live.contains(group) }
  }

  /// Takes note of what the manifest says.
  func note(_ list: GroupList) {
    state.withLock { state in
      state.list = list
      state.isUsed = state.isUsed || list.isUsed
    }
  }

  /// Takes note of a file of the group that its key does not open. From then on the group is one
  /// whose key is not here: what can be read is not all there is, and nobody must merge it. False
  /// when that is known, or the key is not here anyway.
  func lockOut(_ group: UInt32, because reason: String) -> Bool {
    state.withLock { state in
      guard state.known[group] != nil, state.lockedOut[group] == nil else { return false }
      state.lockedOut[group] = reason
      return true
    }
  }

  /// Whether files of the group have shown that its key is another one.
  func isLockedOut(_ group: UInt32) -> Bool { state.withLock { $0.lockedOut[group] != nil } }

  /// Groups that have files which their keys do not open, and what shows it.
  var lockedOut: [UInt32: String] { state.withLock { $0.lockedOut } }

  /// Whether commits may have bytes of keyed groups.
  var isUsed: Bool { state.withLock { $0.isUsed } }

  // MARK: - Asking

  /// The key of a group for the file with this number; nil where it is not here.
  func key(of group: UInt32, file number: FileNumber) -> (any MasterKey)? {
    entry(of: group)?.key(of: number)
  }

  /// The key that names of a group are made with; nil where it is not here.
  func namingKey(of group: UInt32) -> (any MasterKey)? { entry(of: group)?.naming }

  private func entry(of group: UInt32) -> GroupKeySet.Entry? {
    state.withLock { $0.lockedOut[group] == nil ? $0.known[group] : nil }
  }

  /// The groups that there are, and whether the key of each is here.
  var live: [UInt32: Bool] {
    state.withLock { state in
      Dictionary(
        uniqueKeysWithValues: state.list.live.map { ($0, Self.absence(of: $0, state) == nil) })
    }
  }

  /// Whether the key of a group is here; nil when there is no such group.
  func hasKey(of group: UInt32) -> Bool? {
    state.withLock { state in
      guard state.list.live.contains(group) else { return nil }
      return Self.absence(of: group, state) == nil
    }
  }

  /// Why the key of a group is not here; nil where it is.
  func absence(of group: UInt32) -> String? { state.withLock { Self.absence(of: group, $0) } }

  private static func absence(of group: UInt32, _ state: State) -> String? {
    if let reason = state.lockedOut[group] { return reason }
    if state.set?.entries[group] != nil { return nil }
    return state.problem ?? "there is none of group \(group)"
  }

  // MARK: - Changing

  /// The keys of the groups that there are, changed: to be written.
  ///
  /// - Parameter live: the groups that there are, without those that are made.
  /// - Throws: `.invalid` where keys that there should be are not here.
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

  /// What is to be written because the file has keys of groups other than those that there are, or
  /// must be written again; nil where nothing is, or nothing can be.
  func correction(for live: [UInt32]) throws(EngineError) -> GroupKeySet? {
    let isNeeded = state.withLock { state in
      guard state.isUsed || !live.isEmpty else { return false }
      guard let set = state.set else { return state.isThere && live.isEmpty }
      return state.isStale || !set.groups.isSubset(of: live)
    }
    return isNeeded ? try changed(for: live) { _, _ in } : nil
  }

  /// Why the file may have keys of groups other than those that there are, and cannot be written;
  /// nil where it has none, or can be.
  func obstacle(for live: [UInt32]) -> String? {
    state.withLock { state in
      state.set == nil && state.isThere && !live.isEmpty ? state.problem : nil
    }
  }

  /// Whether groups can be given other keys.
  func hasRoomForEra(behind next: FileNumber) -> Bool {
    state.withLock { $0.set?.hasRoomForEra(behind: next) ?? true }
  }

  /// Has entries be sealed with the first of these from now on.
  func use(_ masters: [any MasterKey]) {
    state.withLock { state in
      state.masters = masters
      if let set = state.set, !set.groups.isEmpty { state.isStale = true }
    }
  }

  /// The file that says this; nil where the database has no key.
  func file(_ set: GroupKeySet) -> GroupKeysFile? {
    state.withLock { $0.masters.first }.map { set.file(of: identity, by: $0) }
  }

  /// The file with the keys of these groups, for a copy of the database; nil where they are not
  /// here.
  func copy(for groups: [UInt32]) -> GroupKeysFile? {
    guard var set = state.withLock({ $0.set }) else { return nil }
    set.keep(groups)
    return file(set)
  }

  /// Whether the last attempt to have two good copies in the file failed at the device.
  var isPastMending: Bool { state.withLock { $0.isPastMending } }

  /// Has both copies in `KEYS` say the same, before anything is done that ends with writing it.
  ///
  /// - Throws: what passes where a copy can neither be read nor made readable. The file says the
  ///   same as before, and so does all that is in memory.
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

  /// Writes keys to `KEYS`, has them be on the device, reads them back, and goes by them.
  ///
  /// - Throws: what passes where nothing was changed yet; else `.poisoned`, since nobody knows what
  ///   the file has.
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
