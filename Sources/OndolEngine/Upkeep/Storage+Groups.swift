// Keyed groups from the maintenance thread's view. A group's key is on the device before the
// manifest lists the group. It is erased after the manifest has removed the group. So a crash can
// leave only the key of a group that does not exist, which the next open erases. The manifest
// records the generation of `KEYS` from which on the file contains all required keys.

extension Storage {
  /// The keys of groups; nil in a database without encryption.
  var groupKeys: GroupKeys? { keyring?.groups }

  /// Why no further group is possible; nil if one is. Nothing has changed in that case.
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

  /// Creates a group with its own key, unless something prevents it.
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

  /// Removes a group whose keyspaces are all dropped, and erases its key. Once this returns, both
  /// copies of `KEYS` were read back without the key.
  ///
  /// - Returns: why the key cannot be erased, if the reason is another key in the file.
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

  /// Makes both copies of `KEYS` valid, with the keys of all existing groups and no others. The
  /// data that says which groups exist must already be on the device.
  func eraseOtherKeys() throws(EngineError) {
    guard let groupKeys, let keys = try groupKeys.correction(for: manifest.state.groups.live)
    else { return }
    try groupKeys.write(keys, in: directory)
  }

  /// The same as preparation for other work, which does not wait if the file temporarily cannot be
  /// written. The call that drops a group throws, and so does the next one.
  func eraseOtherKeysWherePossible() throws(EngineError) {
    if groupKeys?.isPastMending == true { return }
    do throws(EngineError) {
      try eraseOtherKeys()
    } catch {
      // Nothing was written in this case.
      if case .invalid = error { return }
      guard error.isPassing else { throw error }
    }
  }

  /// Which group key is missing, and why; nil if all are available.
  var missingKey: String? {
    guard let groupKeys else { return nil }
    let absence = manifest.state.groups.live.lazy.compactMap { groupKeys.absence(of: $0) }.first
    return absence.map { "keys of collections are not here: \($0)" }
  }

  /// Why the database's key cannot be changed or removed; nil if it can.
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

  /// Makes groups forget the keys of files from before the border, and encrypts all remaining keys
  /// with the newest key. First it rewrites the manifest, because earlier edits may list removed
  /// segments that were encrypted with the forgotten keys.
  func finishEras(before border: FileNumber) throws(EngineError) {
    let live = manifest.state.groups.live
    guard let groupKeys, !live.isEmpty else { return }
    let keys = try groupKeys.changed(for: live) { keys, _ in keys.finishEras(before: border) }
    try groupKeys.mend(in: directory)
    try manifest.beginAnew()
    try groupKeys.write(keys, in: directory)
  }
}
