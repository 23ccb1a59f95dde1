// The engine with keyed groups as the subject of a crash test. The workload's writes into two of
// its groups of keyspaces go into keyed ones. Beside it exists a group that every settle drops, and
// that another one replaces. `KEYS` has the keys of the existing groups, and none of a group whose
// drop is complete.

package import OndolEngine

package struct KeyedSubject: CrashSubject {
  /// Groups of the workload that become keyed ones, in this order.
  private static let groups: ClosedRange<UInt32> = 1...2

  package let engine: Engine
  private let base: EngineSubject
  private let directory: any Directory
  /// The keyed groups: those of the workload first, then the one to be dropped.
  private let keyed: Guarded<[UInt32]>
  /// The group whose drop is under way, and the dropped ones.
  private let drops = Guarded((pending: UInt32?.none, done: Set<UInt32>()))
  /// The number of tasks that create or drop groups, and how often that began.
  private let changes = Guarded((active: 0, begun: 0))

  package static func open(
    _ environment: Environment, _ options: SubjectOptions
  ) async throws -> KeyedSubject {
    let base = try await EngineSubject.open(environment, options)
    do {
      let directory = try environment.fileSystem.openDirectory(at: "/db", create: false)
      let subject = KeyedSubject(
        engine: base.engine, base: base, directory: directory,
        keyed: Guarded(base.engine.keyedGroups.keys.sorted()))
      // This happens before any read or write, because two tasks that meet while groups are created
      // would not agree on the assignment of the workload's groups to keyed ones.
      _ = try await subject.makeGroups()
      return subject
    } catch {
      try? await base.close()
      throw error
    }
  }

  package var makesCommitsOfItsOwn: Bool { base.makesCommitsOfItsOwn }

  /// Opens it with keys of its own.
  package static func opening() -> OpenSubject {
    let oracle = SealOracle()
    return { environment, options in
      var environment = environment
      environment.vault = oracle
      return try await open(environment, options)
    }
  }

  /// Opens it with keys that are changed again and again, and with a follower.
  package static func openingToChangeKeys() -> OpenSubject {
    let oracle = SealOracle(keys: [TestedEncryption.key, [UInt8](repeating: 9, count: 32)])
    return { environment, options in
      var environment = environment
      environment.vault = oracle
      let subject = try await open(environment, options)
      let changed = RekeyedSubject(
        subject, subject.engine, oracle, seed: environment.random(), staysSealed: true)
      return FollowedSubject(changed, subject, environment, options)
    }
  }

  /// The view of another engine on the same database.
  package func rows(in other: Engine) async throws -> (sequence: UInt64, rows: Rows) {
    try await KeyedSubject(
      engine: other, base: base.reading(other), directory: directory,
      keyed: Guarded(keyed.withLock { $0 })
    ).contents()
  }

  /// Returns the groups, and creates them if they do not exist.
  private func makeGroups() async throws -> [UInt32] {
    while keyed.withLock({ $0.count }) <= Self.groups.count {
      try await change {
        let made = try await engine.makeKeyedGroup()
        keyed.withLock { $0.append(made) }
      }
    }
    return keyed.withLock { $0 }
  }

  private func change(_ body: () async throws -> Void) async throws {
    changes.withLock { $0 = ($0.active + 1, $0.begun + 1) }
    defer { changes.withLock { $0.active -= 1 } }
    try await body()
  }

  /// A key of the workload in its stored form.
  private static func stored(_ key: [UInt8], _ keyed: [UInt32]) -> [UInt8] {
    let keyspace = key.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    guard groups.contains(keyspace >> 12) else { return key }
    var stored: [UInt8] = []
    let group = keyed[Int(keyspace >> 12 - groups.lowerBound)]
    stored.appendBigEndian(group << 12 | keyspace & 0xFFF)
    return stored + key.dropFirst(4)
  }

  package func commit(
    _ changes: [Change], _ durability: Durability
  ) async throws -> CommitPlace {
    let groups = try await makeGroups()
    var changes = changes.map { change in
      var change = change
      change.key = Self.stored(change.key, groups)
      return change
    }
    if let last = groups.last {
      var key: [UInt8] = []
      key.appendBigEndian(last << 12)
      key.append(UInt8(changes.count & 7))
      changes.append(Change(key: key, value: [UInt8](repeating: 0x77, count: 50)))
    }
    return try await base.commit(changes, durability)
  }

  package func contents() async throws -> (sequence: UInt64, rows: Rows) {
    var (sequence, rows) = try await base.contents()
    let snapshot = try engine.snapshot()
    for (place, group) in keyed.withLock({ $0 }).prefix(Self.groups.count).enumerated() {
      var bounds: [[UInt8]] = [[], []]
      bounds[0].appendBigEndian(group << 12)
      bounds[1].appendBigEndian((group + 1) << 12)
      var cursor = snapshot.cursor(from: bounds[0], to: bounds[1])
      try cursor.seekToFirst()
      while cursor.isValid {
        let key = cursor.key.array
        let keyspace = key.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        var original: [UInt8] = []
        original.appendBigEndian((Self.groups.lowerBound + UInt32(place)) << 12 | keyspace & 0xFFF)
        rows[original + key.dropFirst(4)] = try cursor.value.array
        try cursor.next()
      }
    }
    return (sequence, rows)
  }

  package func synchronize() async throws { try await base.synchronize() }

  package func flush() async throws {
    try await base.flush()
    _ = try await makeGroups()
    try checkKeys()
  }

  package func settle() async throws {
    _ = try await makeGroups()
    // A failed drop is repeated.
    let doomed = drops.withLock { drops in
      drops.pending = drops.pending ?? keyed.withLock { $0.popLast() }
      return drops.pending
    }
    if let doomed {
      try await engine.drop(keyspaces: [doomed << 12])
      try await change { try await engine.dropKeyedGroup(doomed) }
      drops.withLock { drops in
        drops.pending = nil
        drops.done.insert(doomed)
      }
      guard engine.keyedGroups[doomed] == nil else {
        throw BrokenInvariant("group \(doomed) is there after it was dropped")
      }
      try checkKeys()
    }
    try await base.settle()
  }

  package func close() async throws { try await base.close() }

  /// Without failures `KEYS` has twice the keys of the existing groups, and nothing else, once
  /// something was written.
  package func verify() async throws {
    _ = try await commit([], .power)
    try await base.flush()
    let groups = engine.keyedGroups
    let found = try groupsInKeys()
    guard groups.values.allSatisfy(\.self), found.count == 2,
      found.allSatisfy({ $0 == Set(groups.keys) })
    else { throw BrokenInvariant("there are groups \(groups), and KEYS has keys of \(found)") }
    try await base.verify()
  }

  private func groupsInKeys() throws -> [Set<UInt32>] {
    let file = try directory.open("KEYS", access: .readOnly)
    return try GroupKeysFile.groups(in: file, of: engine.identity.bytes).map { Set($0) }
  }

  /// Throws unless a copy of `KEYS` has all keys of the existing groups, and no copy has one of a
  /// group whose drop is complete. It checks nothing while others change groups.
  private func checkKeys() throws {
    let before = changes.withLock { $0 }
    guard before.active == 0 else { return }
    let groups = Set(engine.keyedGroups.keys)
    let done = drops.withLock { $0.done }
    let found = try groupsInKeys()
    guard changes.withLock({ $0.begun }) == before.begun else { return }
    guard found.contains(where: { groups.isSubset(of: $0) }),
      found.allSatisfy({ $0.isDisjoint(with: done) })
    else {
      throw BrokenInvariant(
        "there are groups \(groups.sorted()), \(done.sorted()) were dropped, and KEYS has keys of"
          + " \(found)")
    }
  }
}
