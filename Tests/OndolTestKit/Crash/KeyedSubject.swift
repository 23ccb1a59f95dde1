// The engine with keyed groups as the subject of a crash test: what the workload writes into two of
// its groups of keyspaces goes into keyed ones, and beside it lives a group that every settling
// drops, for another one to take its place. Once something has been written after an opening,
// `KEYS` has the keys of the groups that there are, and no others.

package import OndolEngine

package struct KeyedSubject: CrashSubject {
  /// Groups of the workload that become keyed ones, in this order.
  private static let groups: ClosedRange<UInt32> = 1...2

  package let engine: Engine
  private let base: EngineSubject
  private let directory: any Directory
  /// The keyed groups: those of the workload first, then the one that will be dropped.
  private let keyed: Guarded<[UInt32]>
  /// Who is making or dropping groups, and how often that was begun.
  private let changes = Guarded((active: 0, begun: 0))

  package static func open(
    _ environment: Environment, _ options: SubjectOptions
  ) async throws -> KeyedSubject {
    let base = try await EngineSubject.open(environment, options)
    do {
      let directory = try environment.fileSystem.openDirectory(at: "/db", create: false)
      return KeyedSubject(
        engine: base.engine, base: base, directory: directory,
        keyed: Guarded(base.engine.keyedGroups.keys.sorted()))
    } catch {
      try? await base.close()
      throw error
    }
  }

  package var makesCommitsOfItsOwn: Bool { base.makesCommitsOfItsOwn }

  /// The groups, made now where they are not there.
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

  /// A key of the workload's, as it is stored.
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
    let groups = try await makeGroups()
    if let last = groups.last {
      keyed.withLock { _ = $0.popLast() }
      try await engine.drop(keyspaces: [last << 12])
      try await change { try await engine.dropKeyedGroup(last) }
      guard engine.keyedGroups[last] == nil else {
        throw BrokenInvariant("group \(last) is there after it was dropped")
      }
      try checkKeys()
    }
    try await base.settle()
  }

  package func close() async throws { try await base.close() }

  /// Throws unless `KEYS` has twice the keys of the groups that there are, and nothing else. Says
  /// nothing while others change groups.
  private func checkKeys() throws {
    let before = changes.withLock { $0 }
    guard before.active == 0 else { return }
    let file = try directory.open("KEYS", access: .readOnly)
    let groups = Set(engine.keyedGroups.keys)
    let found = try GroupKeysFile.groups(in: file, of: engine.identity.bytes)
    guard changes.withLock({ $0.begun }) == before.begun else { return }
    guard found.count == 2, found.allSatisfy({ Set($0) == groups }) else {
      throw BrokenInvariant("there are groups \(groups.sorted()), and KEYS has keys of \(found)")
    }
  }
}
