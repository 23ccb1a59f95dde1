// The keys of keyed groups, as an open database has them. Read from `KEYS` when one is first asked
// for, so that a database without such groups never looks for the file.
//
// A group has a key for each stretch of file numbers, as the database itself has: exchanging the
// database's key gives groups others, too. What begins at a number is written down before any file
// has that number. A key that was erased stays in memory until the database is closed, for readers
// of snapshots that have rows of the group.

/// The keys of a database's groups.
final class GroupKeys: Sendable {
  private struct Era: Sendable {
    var first: FileNumber
    var key: any MasterKey

    /// Whether there may be files with the key, where none has the number `next` or a greater one.
    func mayHaveFiles(before next: FileNumber) -> Bool { first < next || first == .zero }
  }

  private struct Entry: Sendable {
    var naming: any MasterKey
    var eras: [Era]
  }

  private struct State: Sendable {
    /// The database's keys that entries may be sealed with, the newest first.
    var masters: [any MasterKey]
    var directory: (any Directory)?
    var isLoaded = false
    var entries: [UInt32: Entry] = [:]
    /// What the file says, as it stands there: also of keys that cannot be opened.
    var written: [UInt32: GroupKeysFile.Entry] = [:]
    var generation: UInt64 = 0
    /// Why keys that should be in the file are not here.
    var problem: String?
    /// The file is to be written again: its copies differ, or it is sealed with an older key.
    var isStale = false
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
  func lookAgain() { state.withLock { $0.isLoaded = false } }

  /// Takes keys over that an earlier ring of the database has read, for who still reads files of
  /// theirs.
  func inherit(_ earlier: GroupKeys) {
    let known = earlier.state.withLock { $0.entries }
    state.withLock { $0.entries.merge(known) { mine, _ in mine } }
  }

  /// Takes note that there are, or were, keyed groups.
  func noteUse() { state.withLock { $0.isUsed = true } }

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

  /// Whether commits may have bytes of keyed groups.
  var isUsed: Bool { state.withLock { $0.isUsed } }

  /// What the key of one group is sealed for.
  private static func context(_ identity: [UInt8], _ group: UInt32, _ first: UInt64) -> [UInt8] {
    var context = identity
    context.appendLittleEndian(group)
    context.appendLittleEndian(first)
    return context
  }

  private static let naming = UInt64.max

  private static func load(_ state: inout State, _ identity: [UInt8]) {
    guard !state.isLoaded, let directory = state.directory else { return }
    state.isLoaded = true
    (state.problem, state.isStale) = (nil, false)
    do throws(EngineError) {
      guard try directory.list().contains(GroupKeysFile.name) else {
        state.problem = "the file \(GroupKeysFile.name) is not here"
        return
      }
      let file = try directory.open(GroupKeysFile.name, access: .readOnly)
      guard let (found, isWhole) = try GroupKeysFile.read(from: file, of: identity) else {
        state.problem = "the file \(GroupKeysFile.name) is damaged"
        return
      }
      state.isStale = !isWhole
      state.generation = found.generation
      state.written = [:]
      for entry in found.entries { take(entry, &state, identity) }
    } catch {
      state.problem = error.description
    }
  }

  private static func take(
    _ entry: GroupKeysFile.Entry, _ state: inout State, _ identity: [UInt8]
  ) {
    let masters = state.masters
    var isOlder = false
    func open(_ wrapped: [UInt8], _ first: UInt64) -> (any MasterKey)? {
      let context = Self.context(identity, entry.group, first)
      for (index, master) in masters.enumerated() {
        guard let key = master.unwrap(wrapped, for: context) else { continue }
        if index > 0 { isOlder = true }
        return key
      }
      return nil
    }
    state.written[entry.group] = entry
    let eras = entry.eras.compactMap { era in
      open(era.key, era.first.rawValue).map { Era(first: era.first, key: $0) }
    }
    guard let naming = open(entry.naming, Self.naming), eras.count == entry.eras.count else {
      state.problem = "a key in \(GroupKeysFile.name) was sealed with another key"
      return
    }
    state.entries[entry.group] = Entry(naming: naming, eras: eras)
    if isOlder { state.isStale = true }
  }

  // MARK: - Asking

  /// The key of a group for the file with this number; nil where it is not here.
  func key(of group: UInt32, file number: FileNumber) -> (any MasterKey)? {
    entry(of: group)?.eras.last { $0.first <= number }?.key
  }

  /// The key that names of a group are made with; nil where it is not here.
  func namingKey(of group: UInt32) -> (any MasterKey)? { entry(of: group)?.naming }

  /// The groups that there are, and whether the key of each is here.
  var live: [UInt32: Bool] {
    state.withLock { state in
      guard !state.list.live.isEmpty else { return [:] }
      Self.load(&state, identity)
      let entries = state.entries
      return Dictionary(uniqueKeysWithValues: state.list.live.map { ($0, entries[$0] != nil) })
    }
  }

  /// Whether the key of a group is here; nil when there is no such group.
  func hasKey(of group: UInt32) -> Bool? {
    state.withLock { state in
      guard state.list.live.contains(group) else { return nil }
      Self.load(&state, identity)
      return state.entries[group] != nil
    }
  }

  /// Why the key of a group is not here; nil where it is.
  func absence(of group: UInt32) -> String? {
    state.withLock { state in
      Self.load(&state, identity)
      guard state.entries[group] == nil else { return nil }
      return state.problem ?? "there is none of group \(group)"
    }
  }

  private func entry(of group: UInt32) -> Entry? {
    state.withLock { state in
      Self.load(&state, identity)
      return state.entries[group]
    }
  }

  // MARK: - Changing

  /// Whether the file has keys of groups other than those that there are, or must be written again.
  func needsWriting(for live: [UInt32]) -> Bool {
    state.withLock { state in
      guard state.isUsed || !live.isEmpty else { return false }
      Self.load(&state, identity)
      return state.isStale || !Set(state.written.keys).isSubset(of: live)
    }
  }

  /// Makes the keys of a new group. They count once they are written.
  func add(_ group: UInt32) {
    state.withLock { state in
      Self.load(&state, identity)
      guard let master = state.masters.first else { return }
      state.entries[group] = Entry(
        naming: master.makeOther(), eras: [Era(first: .zero, key: master.makeOther())])
      state.isUsed = true
    }
  }

  /// Whether groups can be given other keys. Attempts that came to no end leave one each, where
  /// files have been made with it since.
  func hasRoomForEra(behind next: FileNumber, for live: [UInt32]) -> Bool {
    state.withLock { state in
      Self.load(&state, identity)
      return live.allSatisfy { group in
        let eras = state.entries[group]?.eras ?? []
        return eras.count { $0.mayHaveFiles(before: next) } < GroupKeysFile.mostEras
      }
    }
  }

  /// Gives the groups that there are other keys for files from `border` on.
  ///
  /// - Parameter next: no file has this number or a greater one. Stretches that an attempt before
  ///   has begun there are of no use.
  func beginEra(at border: FileNumber, behind next: FileNumber, for live: [UInt32]) {
    state.withLock { state in
      Self.load(&state, identity)
      guard let master = state.masters.first else { return }
      for group in live {
        state.entries[group]?.eras.removeAll { !$0.mayHaveFiles(before: next) }
        state.entries[group]?.eras.append(Era(first: border, key: master.makeOther()))
      }
    }
  }

  /// Forgets what was for files before `border`.
  func finishEras(before border: FileNumber) {
    state.withLock { state in
      for group in state.entries.keys {
        guard let last = state.entries[group]?.eras.last(where: { $0.first <= border }) else {
          continue
        }
        var eras = state.entries[group]?.eras.filter { $0.first > border } ?? []
        eras.insert(Era(first: .zero, key: last.key), at: 0)
        state.entries[group]?.eras = eras
      }
    }
  }

  /// Has entries be sealed with the first of these from now on.
  func use(_ masters: [any MasterKey]) { state.withLock { $0.masters = masters } }

  /// What `KEYS` is to say: the keys of these groups and no others.
  func file(for live: [UInt32], generation: UInt64? = nil) -> GroupKeysFile? {
    state.withLock { state in
      Self.load(&state, identity)
      guard let master = state.masters.first else { return nil }
      var file = GroupKeysFile(
        generation: generation ?? state.generation + 1, identity: identity, entries: [])
      for group in live.sorted() {
        guard let entry = state.entries[group] else {
          if let unopened = state.written[group] { file.entries.append(unopened) }
          continue
        }
        func wrap(_ key: any MasterKey, _ first: UInt64) -> [UInt8] {
          master.wrap(key, for: Self.context(identity, group, first))
        }
        file.entries.append(
          GroupKeysFile.Entry(
            group: group, naming: wrap(entry.naming, Self.naming),
            eras: entry.eras.map { era in
              GroupKeysFile.Era(first: era.first, key: wrap(era.key, era.first.rawValue))
            }))
      }
      return file
    }
  }

  /// Writes the keys of these groups and no others to `KEYS`, and has them be on the device.
  func write(_ live: [UInt32], in directory: any Directory) throws(EngineError) {
    guard let file = file(for: live) else { return }
    let isThere = try directory.list().contains(GroupKeysFile.name)
    let target =
      isThere
      ? try directory.open(GroupKeysFile.name, access: .readWrite)
      : try directory.create(GroupKeysFile.name)
    try file.write(to: target)
    if !isThere { try directory.sync() }
    state.withLock { state in
      state.generation = file.generation
      state.written = Dictionary(uniqueKeysWithValues: file.entries.map { ($0.group, $0) })
      (state.isStale, state.problem, state.isLoaded) = (false, nil, true)
    }
  }
}
