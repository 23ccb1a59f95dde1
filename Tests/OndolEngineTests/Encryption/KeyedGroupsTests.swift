// Groups of keyspaces with keys of their own: present and dropped, with their key and without. The
// file with their keys has tests of its own.

import OndolTestKit
import Testing

@testable import OndolEngine

extension Engine {
  /// Puts a number of rows into each group, some of them large, over several flushes.
  fileprivate func fill(_ groups: [UInt32], _ count: Int, seed: UInt64) async throws {
    var random = OndolTestKit.SeededRandom(seed: seed)
    for number in 0..<count {
      var batch = Batch()
      for group in groups {
        let value = random.bytes(random.chance(1, in: 8) ? 400 : 40)
        batch.put(rowKey("row \(number)", group: group).bytes, value.bytes)
      }
      _ = try await commit(batch, durability: .process)
    }
  }

  fileprivate func annotations(after point: CommitPoint) async throws -> [[[UInt8]]] {
    var history = history(after: point)
    var annotations: [[[UInt8]]] = []
    while case let commits = try await history.next(), !commits.isEmpty {
      annotations += commits.map(\.annotations)
    }
    return annotations
  }
}

@Suite struct KeyedGroupsTests {
  @Test func `Rows of a group are like all others, in every file and after every opening`()
    async throws
  {
    let place = KeyedPlace()
    var engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    #expect(KeyedGroups.numbers.contains(group))
    try await engine.fill([1, group], 200, seed: 5)
    try await engine.compact()
    try await engine.fill([1, group, 2], 120, seed: 6)
    let expected = [try engine.rows(of: 1), try engine.rows(of: group)]
    #expect(expected[0].count == 200 && expected[1].count == 200)
    #expect(try engine.rows(of: 2).count == 120)
    try await engine.close()
    engine = try await place.open()
    #expect(try [engine.rows(of: 1), engine.rows(of: group)] == expected)
    #expect(engine.keyedGroups == [group: true])
    let segments = engine.storage.manifest.state.shards.flatMap(\.segments)
    #expect(segments.contains { $0.group == group })
    for segment in segments {
      #expect(KeyedGroups.group(of: segment.minKey.bytes) == segment.group)
      #expect(KeyedGroups.group(of: segment.maxKey.bytes) == segment.group)
    }
    try await engine.close()
    #expect(place.oracle.repeated == nil)
  }

  @Test func `Without the file of keys a group is locked, all else works, and it comes back`()
    async throws
  {
    let place = KeyedPlace()
    var engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    try await engine.fill([1, group], 150, seed: 7)
    let expected = try engine.rows(of: group)
    try await engine.close()
    let keys = try place.bytes(of: GroupKeysFile.name)
    try place.directory.remove(GroupKeysFile.name)

    engine = try await place.open()
    #expect(engine.keyedGroups == [group: false])
    // An empty result would be a wrong answer.
    #expect(throws: EngineError.self) { try engine.rows(of: group) }
    await #expect(throws: EngineError.self) {
      try await engine.snapshot().get(rowKey("row 1", group: group))
    }
    #expect(try engine.rows(of: 1).count == 150)
    let refusal = await #expect(throws: EngineError.self) {
      try await engine.put([rowKey("x", group: group): [1]])
    }
    guard case .locked? = refusal else {
      Issue.record("\(refusal.map { "\($0)" } ?? "nothing") does not say that it is locked")
      return
    }
    await #expect(throws: EngineError.self) { try await engine.makeKeyedGroup() }
    // Enough to merge the shard's files, and to rewrite the manifest.
    let other = 1 + UInt32(engine.storage.manifest.state.shards.count)
    try await engine.fill([1, other, 2], 300, seed: 8)
    try await engine.compact()
    let names = try await engine.backedUpNames(in: place)
    #expect(!names.contains(GroupKeysFile.name))
    try await engine.close()

    try place.write(keys, to: GroupKeysFile.name)
    engine = try await place.open()
    #expect(engine.keyedGroups == [group: true])
    #expect(try engine.rows(of: group) == expected)
    #expect(try engine.rows(of: 1).count == 300)
    try await engine.compact()
    #expect(try engine.rows(of: group) == expected)
    try await engine.close()
  }

  @Test func `Commits in logs are not let go of because the file of keys is missing`()
    async throws
  {
    var place = KeyedPlace()
    var engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    try await engine.put(
      [rowKey("a", group: group): [1], rowKey("b"): [2]], durability: .power)
    place.fileSystem = place.fileSystem.kill()
    let keys = try place.bytes(of: GroupKeysFile.name)
    try place.directory.remove(GroupKeysFile.name)
    let refusal = await #expect(throws: EngineError.self) { _ = try await place.open() }
    guard case .locked? = refusal else {
      Issue.record("\(refusal.map { "\($0)" } ?? "nothing") does not say that it is locked")
      return
    }
    try place.write(keys, to: GroupKeysFile.name)
    engine = try await place.open()
    #expect(try engine.rows(of: group) == ["a": [1]])
    #expect(try engine.rows(of: 1) == ["b": [2]])
    try await engine.close()
  }

  @Test func `A group that is dropped leaves its key nowhere, and its part of commits unread`()
    async throws
  {
    let place = KeyedPlace()
    var engine = try await place.open(history: true)
    let groups = [try await engine.makeKeyedGroup(), try await engine.makeKeyedGroup()]
    let start = engine.newestCommit
    for number in 0..<3 as Range<UInt8> {
      var batch = Batch()
      batch.put(rowKey("row", group: 1).bytes, [number].bytes)
      batch.annotate(Array("clear \(number)".utf8).bytes)
      for group in groups {
        batch.put(rowKey("row", group: group).bytes, [number].bytes)
        batch.annotate(Array("of \(group) \(number)".utf8).bytes, of: group)
      }
      _ = try await engine.commit(batch, durability: .power)
    }
    func expected(_ groups: [UInt32]) -> [[[UInt8]]] {
      (0..<3).map { number in
        [Array("clear \(number)".utf8)] + groups.map { Array("of \($0) \(number)".utf8) }
      }
    }
    #expect(try await engine.annotations(after: start) == expected(groups))
    try await engine.drop(keyspaces: [groups[0] << 12])
    try await engine.dropKeyedGroup(groups[0])
    #expect(try await engine.annotations(after: start) == expected([groups[1]]))
    #expect(engine.keyedGroups == [groups[1]: true])
    let file = try place.directory.open(GroupKeysFile.name, access: .readOnly)
    let left = try GroupKeysFile.groups(in: file, of: engine.identity.bytes)
    #expect(left == [[groups[1]], [groups[1]]])
    try await engine.close()
    engine = try await place.open(history: true)
    #expect(try engine.rows(of: groups[0]).isEmpty)
    #expect(try engine.rows(of: groups[1]) == ["row": [2]])
    #expect(try await engine.annotations(after: start) == expected([groups[1]]))
    // The number is never used again.
    #expect(try await engine.makeKeyedGroup() == groups[1] + 1)
    try await engine.close()
  }

  /// In one frame, or in two, with the overhead of sealing, and read again from the log alone.
  @Test func `Commits as long as a frame, a little less and a little more, come back`()
    async throws
  {
    let place = KeyedPlace()
    let engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    func batch(_ number: UInt8, length: Int) -> Batch {
      var batch = Batch()
      batch.put(rowKey("clear \(number)").bytes, [number].bytes)
      let value = [UInt8](repeating: number, count: length)
      batch.put(rowKey("\(number)", group: group).bytes, value.bytes)
      return batch
    }
    var expected: [String: [UInt8]] = [:]
    let about = FrameHeader.maximumPayload - 1_000
    let differences = [-80, -49, -48, -47, -33, -32, -31, -17, -16, -15, -1, 0, 1, 16]
    for (number, difference) in differences.enumerated() {
      let number = UInt8(number)
      let target = FrameHeader.maximumPayload + difference
      let length = about + target - batch(number, length: about).payloadLength
      let commit = batch(number, length: length)
      #expect(commit.payloadLength == target)
      _ = try await engine.commit(commit, durability: .power)
      expected["\(number)"] = [UInt8](repeating: number, count: length)
      var copy = place
      copy.fileSystem = place.fileSystem.crash(seed: UInt64(number))
      let again = try await copy.open()
      #expect(try again.rows(of: group) == expected, "\(difference) bytes from a frame's length")
      try await again.close()
    }
    try await engine.close()
  }

  @Test func `Groups are as many as there may be, in encrypted databases only`() async throws {
    let place = KeyedPlace()
    let engine = try await place.open()
    for _ in 0..<KeyedGroups.mostAtOnce { _ = try await engine.makeKeyedGroup() }
    await #expect(throws: EngineError.self) { try await engine.makeKeyedGroup() }
    let first = try #require(engine.keyedGroups.keys.min())
    try await engine.dropKeyedGroup(first)
    _ = try await engine.makeKeyedGroup()
    #expect(engine.keyedGroups.count == KeyedGroups.mostAtOnce)
    await #expect(throws: EngineError.self) { try await engine.beginKeyChange(to: nil) }
    try await engine.close()

    let world = SimulatedWorld(seed: 3)
    var environment = world.environment
    environment.vault = nil
    let clear = try await Engine.open(at: "/db", environment: environment)
    await #expect(throws: EngineError.self) { try await clear.makeKeyedGroup() }
    #expect(clear.keyedGroups.isEmpty)
    try await clear.close()
  }

  @Test func `Names are the same for as long as a group is there, and told by its key only`()
    async throws
  {
    let place = KeyedPlace()
    var engine = try await place.open()
    let groups = [try await engine.makeKeyedGroup(), try await engine.makeKeyedGroup()]
    let name = try #require(engine.groupNaming.name(of: [1, 2], in: groups[0]))
    #expect(name.count == 32 && name != engine.groupNaming.name(of: [1, 2], in: groups[1]))
    let sealed = try #require(engine.groupNaming.seal([5, 6, 7], in: groups[0]))
    try await engine.beginKeyChange(to: place.oracle)
    while engine.border != nil {
      try await engine.leaveFilesBeforeBorder { _ in }
      _ = try await engine.finishKeyChange()
    }
    try await engine.close()
    engine = try await place.open()
    #expect(engine.groupNaming.name(of: [1, 2], in: groups[0]) == name)
    #expect(engine.groupNaming.open(sealed, in: groups[0]) == [5, 6, 7])
    #expect(engine.groupNaming.open(sealed, in: groups[1]) == nil)
    try await engine.close()
  }
}

extension Engine {
  /// The names of a backup's files.
  fileprivate func backedUpNames(in place: KeyedPlace) async throws -> [String] {
    try await backUp(to: "/copy", in: place.fileSystem) { _, _ in }
    return try place.fileSystem.openDirectory(at: "/copy", create: false).list()
  }
}
