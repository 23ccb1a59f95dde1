// Keyed groups as the maintenance thread sees them. A group's key is on the device before the
// manifest names the group, and is erased after the manifest has let go of it: so what a crash
// leaves is a key of a group that is not there, which the next opening erases. The manifest names
// the generation of `KEYS` from which on it has all keys that are needed.

extension Storage {
  /// The keys of groups; nil where the database is in the clear.
  var groupKeys: GroupKeys? { keyring?.groups }

  /// Why there can be no other group; nil where there can. Nothing has happened then.
  var refusalOfGroup: EngineError? {
    guard let keyring, keyring.kept != nil else {
      return .invalid(reason: "the database is not encrypted, and so no group can have a key")
    }
    let groups = manifest.state.groups
    if let change = keyring.change, !change.isSealed {
      return .invalid(reason: "the database is being decrypted")
    }
    if let missingKey { return .invalid(reason: "no other key can be added: \(missingKey)") }
    guard groups.live.count < KeyedGroups.mostAtOnce else {
      return .invalid(reason: "there are \(groups.live.count) groups with keys of their own")
    }
    guard KeyedGroups.numbers.contains(groups.next) else {
      return .invalid(reason: "numbers of groups are used up")
    }
    return nil
  }

  /// Makes a group with a key of its own, where nothing stands against it.
  func makeGroup() throws(EngineError) -> UInt32 {
    var groups = manifest.state.groups
    let group = groups.next
    if let keys = try groupKeys?.changed(for: groups.live, { $0.add(group, from: $1) }) {
      try groupKeys?.write(keys, in: directory)
      groups.generation = keys.generation
    }
    groups.next += 1
    groups.live.append(group)
    try manifest.commit([.groups(groups)])
    groupKeys?.note(groups)
    return group
  }

  /// Lets go of a group, all of whose keyspaces are dropped, and erases its key: once this returns,
  /// both copies of `KEYS` were read back without it.
  ///
  /// - Returns: why the key cannot be erased, where that is because of other keys in the file.
  func dropGroup(_ group: UInt32) throws(EngineError) -> EngineError? {
    try letGo(of: group)
    try eraseOtherKeys()
    return groupKeys?.obstacle(for: manifest.state.groups.live).map { obstacle in
      .invalid(reason: "the key of group \(group) cannot be erased: \(obstacle)")
    }
  }

  private func letGo(of group: UInt32) throws(EngineError) {
    var groups = manifest.state.groups
    guard let place = groups.live.firstIndex(of: group) else { return }
    groups.live.remove(at: place)
    var changes: [ManifestChange] = []
    for (index, shard) in manifest.state.shards.enumerated() {
      let segments = shard.segments + shard.locked.map(\.segment)
      changes += segments.filter { $0.group == group }
        .map { .dropSegment(shard: index, number: $0.number) }
    }
    try manifest.commit(changes + [.groups(groups)])
    groupKeys?.note(groups)
    for index in manifest.state.shards.indices { adopt(shard: index) }
  }

  /// Has `KEYS` have the keys of the groups that there are, and no others, in two good copies. What
  /// says which there are must be on the device.
  func eraseOtherKeys() throws(EngineError) {
    guard let groupKeys, let keys = try groupKeys.correction(for: manifest.state.groups.live)
    else { return }
    try groupKeys.write(keys, in: directory)
  }

  /// The same in passing, before other work, which does not wait for a file that cannot be written
  /// for the moment. The call that drops a group throws, and so does the next one.
  func eraseOtherKeysWherePossible() throws(EngineError) {
    if groupKeys?.isPastMending == true { return }
    do throws(EngineError) {
      try eraseOtherKeys()
    } catch {
      // Nothing was written then.
      if case .invalid = error { return }
      guard error.isPassing else { throw error }
    }
  }

  /// Which key of a group is not here, and why; nil where all are.
  var missingKey: String? {
    guard let groupKeys else { return nil }
    let absence = manifest.state.groups.live.lazy.compactMap { groupKeys.absence(of: $0) }.first
    return absence.map { "keys of collections are not here: \($0)" }
  }

  /// Why the database's key cannot become another one, or none; nil where it can.
  func refusalOfKeyChange(toClear: Bool) -> EngineError? {
    if keyring?.change != nil { return .invalid(reason: "another change of keys is under way") }
    let live = manifest.state.groups.live
    if toClear, !live.isEmpty {
      return .invalid(
        reason: "collections have keys of their own, and a database in the clear can keep none:"
          + " drop them first")
    }
    if let missingKey { return .invalid(reason: "the key cannot be exchanged: \(missingKey)") }
    if groupKeys?.hasRoomForEra(behind: manifest.numbers.next) == false {
      return .invalid(reason: "the key was exchanged too often without coming to an end")
    }
    return nil
  }

  /// Has groups forget the keys of files from before the border, and all keys that are kept be
  /// sealed with the newest. The manifest begins anew first: edits of before may name segments that
  /// are gone and were sealed with what is forgotten.
  func finishEras(before border: FileNumber) throws(EngineError) {
    let live = manifest.state.groups.live
    guard let groupKeys, !live.isEmpty else { return }
    let keys = try groupKeys.changed(for: live) { keys, _ in keys.finishEras(before: border) }
    try groupKeys.mend(in: directory)
    try manifest.beginAnew()
    try groupKeys.write(keys, in: directory)
  }
}
