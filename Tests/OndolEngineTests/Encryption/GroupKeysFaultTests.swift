// The keys of groups when `KEYS` is temporarily unreadable or unwritable, older than the database
// or another database's, or contains what nobody wrote. In each case keys, or a whole database with
// them, were once lost permanently: a failed read was taken for an empty file.

import OndolTestKit
import Testing

@testable import OndolEngine

private let tooManyOpenFiles: Int32 = 24
private let inputOutputError: Int32 = 5

extension KeyedPlace {
  fileprivate func groupsInKeys(_ engine: Engine) throws -> [[UInt32]] {
    let file = try directory.open(GroupKeysFile.name, access: .readOnly)
    return try GroupKeysFile.groups(in: file, of: engine.identity.bytes)
  }

  /// The newest copy in `KEYS`.
  fileprivate func keysFile(_ engine: Engine) throws -> GroupKeysFile {
    let masters = try #require(engine.storage.keyring).masters
    let found = try GroupKeysFile.read(
      in: directory, of: engine.identity.bytes, needed: 0, vouchedForBy: masters)
    return try #require(found.newest)
  }

  fileprivate func rename(_ name: String, to other: String) throws {
    try write(try bytes(of: name), to: other)
    try directory.remove(name)
  }

  /// Writes both copies of a file of keys.
  fileprivate func write(_ file: GroupKeysFile) throws {
    var bytes = [UInt8](repeating: 0, count: 32768 + GroupKeysFile.length)
    for offset in GroupKeysFile.offsets {
      bytes.replaceSubrange(Int(offset)..<(Int(offset) + GroupKeysFile.length), with: file.encode())
    }
    try write(bytes, to: GroupKeysFile.name)
  }
}

extension Engine {
  fileprivate func fill(_ group: UInt32, _ numbers: Range<Int>) async throws {
    var rows: [[UInt8]: [UInt8]?] = [:]
    for number in numbers { rows[rowKey("\(number)", group: group)] = [UInt8(number & 255)] }
    try await put(rows, durability: .power)
  }

  fileprivate func seeKeyChangeThrough() async throws {
    while border != nil {
      try await leaveFilesBeforeBorder { _ in }
      _ = try await finishKeyChange()
    }
  }
}

@Suite struct GroupKeysFaultTests {
  /// A change of keys has rewritten everything and only has to be finished. The open that resumed
  /// it once took one failed open of the file for "there are no keys", and finished without them.
  @Test(arguments: [(OperationKind.open, tooManyOpenFiles), (.open, inputOutputError)])
  func `An opening that cannot open the keys fails, and the next one has them`(
    kind: OperationKind, errno: Int32
  ) async throws {
    let place = KeyedPlace()
    var engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    try await engine.fill(group, 0..<100)
    try await engine.flush()
    try await engine.beginKeyChange(to: place.oracle)
    try await engine.leaveFilesBeforeBorder { _ in }
    try await engine.close()
    place.fileSystem.inject([Fault(failing: [kind], of: .keys, errno: errno)])
    let error = await #expect(throws: EngineError.self) { _ = try await place.open() }
    guard case .io(_, GroupKeysFile.name, _, errno)? = error else {
      Issue.record("\(error.map { "\($0)" } ?? "nothing") does not say what failed")
      return
    }
    engine = try await place.open()
    #expect(engine.keyedGroups == [group: true])
    try await engine.seeKeyChangeThrough()
    try await engine.close()
    engine = try await place.open()
    #expect(try engine.rows(of: group).count == 100)
    try await engine.close()
  }

  @Test func `A change of keys waits for keys that are away, and writes none in their place`()
    async throws
  {
    let place = KeyedPlace()
    var engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    try await engine.fill(group, 0..<100)
    try await engine.flush()
    try await engine.beginKeyChange(to: place.oracle)
    try await engine.leaveFilesBeforeBorder { _ in }
    try await engine.close()
    try place.rename(GroupKeysFile.name, to: "away")
    engine = try await place.open()
    #expect(engine.keyedGroups == [group: false])
    for _ in 0..<2 {
      let error = await #expect(throws: EngineError.self) { try await engine.finishKeyChange() }
      guard case .locked? = error else {
        Issue.record("\(error.map { "\($0)" } ?? "nothing") does not say that keys are away")
        return
      }
      await #expect(throws: EngineError.self) { try await engine.leaveFilesBeforeBorder { _ in } }
    }
    // Everything else continues.
    try await engine.put([rowKey("other"): [1]], durability: .power)
    try await engine.flush()
    try await engine.close()
    #expect(try !place.directory.list().contains(GroupKeysFile.name))
    try place.rename("away", to: GroupKeysFile.name)
    engine = try await place.open()
    try await engine.seeKeyChangeThrough()
    #expect(try engine.rows(of: group).count == 100)
    #expect(try engine.rows(of: 1) == ["other": [1]])
    try await engine.close()
  }

  /// The new key was once in memory from the start, and any file with a number after the border,
  /// long after, was sealed with a key that no device had.
  @Test func `A change of keys that cannot be written has not begun`() async throws {
    let place = KeyedPlace()
    var engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    try await engine.fill(group, 0..<10)
    place.fileSystem.inject([
      Fault(failing: [.open], of: .keys, errno: tooManyOpenFiles)
    ])
    await #expect(throws: EngineError.self) { try await engine.beginKeyChange(to: place.oracle) }
    #expect(engine.border == nil)
    // As if this many files had been created since.
    _ = try await engine.storage.perform { (storage) throws(EngineError) in
      let numbers = storage.manifest.numbers
      let margin = storage.options.keyChangeMargin
      numbers.stepTo(FileNumber(rawValue: numbers.next.rawValue + 2 * margin))
    }
    try await engine.fill(group, 10..<20)
    try await engine.flush()
    try await engine.fill(group, 20..<30)
    try await engine.close()
    engine = try await place.open()
    #expect(try engine.rows(of: group).count == 30)
    // It begins when it can.
    try await engine.beginKeyChange(to: place.oracle)
    try await engine.fill(group, 30..<40)
    try await engine.seeKeyChangeThrough()
    try await engine.close()
    engine = try await place.open()
    #expect(try engine.rows(of: group).count == 40)
    try await engine.close()
  }

  @Test(arguments: 0..<2)
  func `One copy that cannot be read costs nothing, and is written again`(copy: Int) async throws {
    let place = KeyedPlace()
    var engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    try await engine.fill(group, 0..<10)
    try await engine.close()
    let before = try place.keysFile(engine).generation
    place.fileSystem.inject([
      Fault(failing: [.read], of: .keys, after: copy, errno: inputOutputError)
    ])
    engine = try await place.open()
    #expect(place.fileSystem.struck != nil)
    #expect(engine.keyedGroups == [group: true])
    #expect(try engine.rows(of: group).count == 10)
    try await engine.fill(group, 10..<12)
    try await engine.flush()
    #expect(try place.keysFile(engine).generation == before + 1)
    #expect(try place.groupsInKeys(engine) == [[group], [group]])
    try await engine.close()
  }

  /// Dropping once returned although nothing had been written, and the key stayed permanently.
  @Test func `Dropping a group ends when its key is in no copy, and others go on meanwhile`()
    async throws
  {
    let place = KeyedPlace()
    var engine = try await place.open()
    let groups = [try await engine.makeKeyedGroup(), try await engine.makeKeyedGroup()]
    for group in groups { try await engine.fill(group, 0..<10) }
    place.fileSystem.inject([
      Fault(failing: [.open], of: .keys, errno: tooManyOpenFiles, isSticky: true)
    ])
    for _ in 0..<2 {
      await #expect(throws: EngineError.self) { try await engine.dropKeyedGroup(groups[0]) }
    }
    #expect(engine.keyedGroups == [groups[1]: true])
    // Neither a flush nor a merge waits for it.
    try await engine.fill(groups[1], 10..<20)
    try await engine.flush()
    try await engine.compact()
    place.fileSystem.inject([])
    #expect(try place.groupsInKeys(engine) == [groups, groups])
    try await engine.dropKeyedGroup(groups[0])
    #expect(try place.groupsInKeys(engine) == [[groups[1]], [groups[1]]])
    try await engine.close()
    engine = try await place.open()
    #expect(try engine.rows(of: groups[1]).count == 20)
    try await engine.close()
  }

  @Test func `A file of keys that is older than the database locks, and is not written`()
    async throws
  {
    let place = KeyedPlace()
    var engine = try await place.open()
    let first = try await engine.makeKeyedGroup()
    try await engine.fill(first, 0..<10)
    let older = try place.bytes(of: GroupKeysFile.name)
    let second = try await engine.makeKeyedGroup()
    try await engine.fill(second, 0..<10)
    try await engine.flush()
    try await engine.close()
    let newer = try place.bytes(of: GroupKeysFile.name)
    try place.write(older, to: GroupKeysFile.name)
    engine = try await place.open()
    #expect(engine.keyedGroups == [first: false, second: false])
    #expect(throws: EngineError.self) { try engine.rows(of: first) }
    await #expect(throws: EngineError.self) { try await engine.makeKeyedGroup() }
    await #expect(throws: EngineError.self) { try await engine.beginKeyChange(to: place.oracle) }
    await #expect(throws: EngineError.self) { try await engine.dropKeyedGroup(second) }
    try await engine.put([rowKey("other"): [1]], durability: .power)
    try await engine.close()
    #expect(try place.bytes(of: GroupKeysFile.name) == older)
    try place.write(newer, to: GroupKeysFile.name)
    engine = try await place.open()
    #expect(engine.keyedGroups == [first: true])
    #expect(try engine.rows(of: first).count == 10)
    try await engine.close()
  }

  @Test func `A file of keys that was not written with the database's key says nothing`()
    async throws
  {
    let place = KeyedPlace()
    var engine = try await place.open()
    let groups = [try await engine.makeKeyedGroup(), try await engine.makeKeyedGroup()]
    for group in groups { try await engine.fill(group, 0..<10) }
    try await engine.flush()
    try await engine.close()
    let sound = try place.bytes(of: GroupKeysFile.name)
    // Someone without a key removes one, and corrects the checksum.
    var forged = try place.keysFile(engine)
    forged.entries.removeLast()
    try place.write(forged)
    engine = try await place.open()
    #expect(engine.keyedGroups == [groups[0]: false, groups[1]: false])
    try await engine.close()
    try place.write(sound, to: GroupKeysFile.name)
    engine = try await place.open()
    for group in groups { #expect(try engine.rows(of: group).count == 10) }
    try await engine.close()
  }

  /// A database in the state that a change of keys once left when it could not be recorded: from
  /// some file on, a group is sealed with a key that is on no device.
  @Test(arguments: [true, false])
  func `Files and commits sealed with an unknown key lock their group, and all else is whole`(
    isFlushed: Bool
  ) async throws {
    var place = KeyedPlace()
    var engine = try await place.open(history: true)
    let groups = [try await engine.makeKeyedGroup(), try await engine.makeKeyedGroup()]
    for group in groups { try await engine.fill(group, 0..<10) }
    try await engine.flush()
    try await engine.put([rowKey("clear"): [1]], durability: .power)
    try await engine.close()
    engine = try await place.open(history: true)
    let border = engine.storage.manifest.numbers.next
    try await engine.fill(groups[0], 10..<20)
    try await engine.fill(groups[1], 10..<20)
    if isFlushed {
      try await engine.close()
    } else {
      place.fileSystem = place.fileSystem.kill()
    }
    let sound = try place.bytes(of: GroupKeysFile.name)
    // The file has another key for the first group from then on.
    let masters = try #require(engine.storage.keyring).masters
    let original = try place.keysFile(engine)
    var keys = try GroupKeySet(original, openedWith: masters).next()
    keys.beginEra(at: border, behind: border, from: masters[0])
    let changed = keys.file(of: engine.identity.bytes, by: masters[0])
    var mixed = GroupKeysFile(
      generation: changed.generation, identity: changed.identity,
      entries: [changed.entries[0], original.entries[1]])
    mixed.prove(with: masters[0])
    try place.write(mixed)

    if !isFlushed {
      // The rows exist nowhere else, so opening without them would lose them.
      let error = await #expect(throws: EngineError.self) {
        _ = try await place.open(history: true)
      }
      guard case .locked? = error else {
        Issue.record("\(error.map { "\($0)" } ?? "nothing") does not say that it is locked")
        return
      }
    }
    for life in 0..<2 where isFlushed {
      engine = try await place.open(history: true)
      #expect(engine.keyedGroups == [groups[0]: false, groups[1]: true], "life \(life)")
      #expect(try engine.rows(of: groups[1]).count == 20)
      #expect(try engine.rows(of: 1).count == 1 + life)
      #expect(throws: EngineError.self) { try engine.rows(of: groups[0]) }
      await #expect(throws: EngineError.self) { try await engine.fill(groups[0], 30..<31) }
      try await engine.put([rowKey("life \(life)"): [1]], durability: .power)
      try await engine.compact()
      try await engine.close()
    }
    // With the correct key everything is there.
    try place.write(sound, to: GroupKeysFile.name)
    engine = try await place.open(history: true)
    #expect(engine.keyedGroups == [groups[0]: true, groups[1]: true])
    #expect(try engine.rows(of: groups[0]).count == 20)
    try await engine.close()
  }

  /// Anyone can correct checksums. Adding to such a number once stopped the process.
  @Test func `The greatest generation and the greatest epoch are damage`() async throws {
    let place = KeyedPlace()
    var engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    try await engine.close()
    let sound = try place.bytes(of: GroupKeysFile.name)
    for generation in [UInt64.max, Bounds.greatestCounter + 1] {
      var bytes = sound
      for start in GroupKeysFile.offsets.map({ Int($0) }) {
        var copy = Array(bytes[start..<(start + GroupKeysFile.length - 8)])
        copy.overwriteLittleEndian(generation, at: 16)
        copy.appendLittleEndian(seededChecksum(0x4F4E_444F_4C4B_4559, copy.bytes))
        bytes.replaceSubrange(start..<(start + GroupKeysFile.length), with: copy)
      }
      try place.write(bytes, to: GroupKeysFile.name)
      engine = try await place.open()
      #expect(engine.keyedGroups == [group: false])
      await #expect(throws: EngineError.self) { try await engine.makeKeyedGroup() }
      try await engine.close()
    }

    let fileSystem = SimulatedFileSystem()
    let environment = SimulatedWorld(fileSystem: fileSystem, seed: 3).environment
    let clear = try await Engine.open(at: "/db", environment: environment)
    try await clear.put([rowKey("a"): [1]])
    try await clear.close()
    let slots = try fileSystem.openDirectory(at: "/db", create: false)
      .open(Superblock.name, access: .readWrite)
    for (slot, offset) in Superblock.slotOffsets.enumerated() {
      var bytes = try slots.read(at: offset, count: Superblock.slotLength)
      guard bytes.contains(where: { $0 != 0 }) else { continue }
      for place in 56..<64 { bytes[place] = 0xFF }
      let seed = 0x4F4E_444F_4C53_4221 ^ UInt64(slot)
      var tail: [UInt8] = []
      tail.appendLittleEndian(seededChecksum(seed, bytes.bytes.extracting(first: 4088)))
      bytes.replaceSubrange(4088..<4096, with: tail)
      try slots.write(bytes.bytes, at: offset)
    }
    await #expect(throws: EngineError.self) {
      _ = try await Engine.open(at: "/db", environment: environment)
    }
  }

  /// Earlier versions wrote no proof, and their manifests name no generation.
  @Test func `A file of keys without a proof is read if the manifest names no generation`()
    async throws
  {
    let place = KeyedPlace()
    var engine = try await place.open()
    let group = try await engine.makeKeyedGroup()
    try await engine.fill(group, 0..<10)
    try await engine.close()
    let proved = try place.keysFile(engine)
    let unproved = GroupKeysFile(
      generation: proved.generation, identity: proved.identity, entries: proved.entries)
    try place.write(unproved)
    engine = try await place.open()
    #expect(engine.keyedGroups == [group: false])
    _ = try await engine.storage.perform { (storage) throws(EngineError) in
      var groups = storage.manifest.state.groups
      groups.generation = 0
      try storage.manifest.commit([.groups(groups)])
      try storage.manifest.beginAnew()
    }
    try await engine.close()
    engine = try await place.open()
    #expect(engine.keyedGroups == [group: true])
    #expect(try engine.rows(of: group).count == 10)
    // The next write has one, and from then on it is required.
    let other = try await engine.makeKeyedGroup()
    #expect(try place.keysFile(engine).proof.count == SealFormat.proofLength)
    #expect(try place.groupsInKeys(engine) == [[group, other], [group, other]])
    try await engine.close()
    try place.write(unproved)
    engine = try await place.open()
    #expect(engine.keyedGroups == [group: false, other: false])
    try await engine.close()
  }
}
