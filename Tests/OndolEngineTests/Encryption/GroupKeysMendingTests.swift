// `KEYS` on a device that cannot read one of its two copies. The other one is the only remaining
// copy of the keys, so it is overwritten only after the first has the same content. Writing repairs
// the first if the device can be repaired. Otherwise changes of keys are refused, and everything
// else continues. Writing once stopped permanently there, although the good copy was intact.

import OndolTestKit
import Testing

@testable import OndolEngine

private let inputOutputError: Int32 = 5

/// A device that treats the copies of `KEYS` specially.
private final class KeysDevice: FileSystem {
  struct State: Sendable {
    /// The offsets where reads fail.
    var unreadable: Set<UInt64> = []
    /// Whether written bytes can be read from then on.
    var isMendedByWriting = false
    /// The places and bytes of writes.
    var writes: [(offset: UInt64, bytes: [UInt8])] = []
  }

  let base: any FileSystem
  let state = Guarded(State())

  init(_ base: any FileSystem) { self.base = base }

  func openDirectory(at path: String, create: Bool) throws(EngineError) -> any Directory {
    KeysDirectory(try base.openDirectory(at: path, create: create), self)
  }

  func fail(at offsets: [UInt64], untilWritten isMendedByWriting: Bool = false) {
    state.withLock { state in
      state = State(unreadable: Set(offsets), isMendedByWriting: isMendedByWriting)
    }
  }

  var writes: [(offset: UInt64, bytes: [UInt8])] { state.withLock { $0.writes } }
}

private final class KeysDirectory: ForwardingDirectory {
  let base: any Directory
  private let device: KeysDevice

  init(_ base: any Directory, _ device: KeysDevice) {
    self.base = base
    self.device = device
  }

  func open(_ name: String, access: FileAccess) throws(EngineError) -> any File {
    let file = try base.open(name, access: access)
    return name == GroupKeysFile.name ? KeysFile(file, device) : file
  }
}

private final class KeysFile: ForwardingFile {
  let base: any File
  private let device: KeysDevice

  init(_ base: any File, _ device: KeysDevice) {
    self.base = base
    self.device = device
  }

  func read(at offset: UInt64, count: Int) throws(EngineError) -> [UInt8] {
    if device.state.withLock({ $0.unreadable.contains(offset) }) {
      throw .io(operation: "pread", file: name, offset: offset, errno: inputOutputError)
    }
    return try base.read(at: offset, count: count)
  }

  func write(_ bytes: RawSpan, at offset: UInt64) throws(EngineError) {
    try base.write(bytes, at: offset)
    let bytes = bytes.array
    device.state.withLock { state in
      state.writes.append((offset, bytes))
      if state.isMendedByWriting { state.unreadable.remove(offset) }
    }
  }
}

/// A database with two keyed groups of ten rows, on such a device.
private struct MendingPlace {
  let place = KeyedPlace()
  let device: KeysDevice

  init() { device = KeysDevice(place.fileSystem) }

  func open() async throws -> Engine {
    var environment = SimulatedWorld(fileSystem: place.fileSystem, seed: 1).environment
    environment.vault = place.oracle
    environment.fileSystem = device
    return try await Engine.open(at: "/db", options: tinyOptions(), environment: environment)
  }

  func make() async throws -> (engine: Engine, groups: [UInt32]) {
    let engine = try await open()
    let groups = [try await engine.makeKeyedGroup(), try await engine.makeKeyedGroup()]
    for group in groups { try await engine.fill(group, 0..<10) }
    return (engine, groups)
  }

  func groupsInKeys(_ engine: Engine) throws -> [[UInt32]] {
    let file = try place.directory.open(GroupKeysFile.name, access: .readOnly)
    return try GroupKeysFile.groups(in: file, of: engine.identity.bytes)
  }

  func copy(_ number: Int) throws -> [UInt8] {
    let file = try place.directory.open(GroupKeysFile.name, access: .readOnly)
    return try file.read(at: GroupKeysFile.offsets[number], count: GroupKeysFile.length)
  }
}

extension Engine {
  fileprivate func fill(_ group: UInt32, _ numbers: Range<Int>) async throws {
    var rows: [[UInt8]: [UInt8]?] = [:]
    for number in numbers { rows[rowKey("\(number)", group: group)] = [UInt8(number & 255)] }
    try await put(rows, durability: .power)
  }

  /// Expects that the call throws a temporary error, and names the unreadable place in `KEYS`.
  fileprivate func expectRefusal(
    at offset: UInt64, _ change: (Engine) async throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    let error = await #expect(throws: EngineError.self, sourceLocation: sourceLocation) {
      try await change(self)
    }
    guard case .io(_, GroupKeysFile.name, offset, inputOutputError)? = error,
      error?.isPassing == true
    else {
      Issue.record(
        "\(error.map { "\($0)" } ?? "nothing") does not say what cannot be read",
        sourceLocation: sourceLocation)
      return
    }
  }
}

@Suite struct GroupKeysMendingTests {
  @Test(arguments: 0..<2)
  func `A copy that cannot be read is readable once it was written`(copy: Int) async throws {
    let world = MendingPlace()
    var (engine, groups) = try await world.make()
    try await engine.close()
    let sound = try world.copy(1 - copy)
    world.device.fail(at: [GroupKeysFile.offsets[copy]], untilWritten: true)
    engine = try await world.open()
    #expect(engine.keyedGroups == [groups[0]: true, groups[1]: true])
    groups.append(try await engine.makeKeyedGroup())
    // The good copy was written only after the other had the same content.
    let first = try #require(world.device.writes.first)
    #expect(first.offset == GroupKeysFile.offsets[copy] && first.bytes == sound)
    #expect(try world.groupsInKeys(engine) == [groups, groups])
    try await engine.close()
  }

  @Test(arguments: 0..<2)
  func `A permanently unreadable copy blocks changes of keys, and all else works`(
    copy: Int
  ) async throws {
    let world = MendingPlace()
    var (engine, groups) = try await world.make()
    try await engine.close()
    let sound = try world.copy(1 - copy)
    let offset = GroupKeysFile.offsets[copy]
    world.device.fail(at: [offset])
    engine = try await world.open()
    #expect(engine.keyedGroups == [groups[0]: true, groups[1]: true])
    for round in 1..<3 {
      await engine.expectRefusal(at: offset) { _ = try await $0.makeKeyedGroup() }
      await engine.expectRefusal(at: offset) {
        try await $0.beginKeyChange(to: world.place.oracle)
      }
      #expect(engine.border == nil)
      #expect(engine.keyedGroups == [groups[0]: true, groups[1]: true])
      for group in groups { try await engine.fill(group, (10 * round)..<(10 * round + 10)) }
      try await engine.flush()
      try await engine.compact()
    }
    await engine.expectRefusal(at: offset) { try await $0.dropKeyedGroup(groups[0]) }
    await engine.expectRefusal(at: offset) { try await $0.dropKeyedGroup(groups[0]) }
    #expect(engine.keyedGroups == [groups[1]: true])
    #expect(try world.copy(1 - copy) == sound)
    #expect(world.device.writes.allSatisfy { $0.offset == offset && $0.bytes == sound })
    #expect(try engine.rows(of: groups[1]).count == 30)

    // When the device reads again, everything is done.
    world.device.fail(at: [])
    try await engine.dropKeyedGroup(groups[0])
    #expect(try world.groupsInKeys(engine) == [[groups[1]], [groups[1]]])
    try await engine.beginKeyChange(to: world.place.oracle)
    while engine.border != nil {
      try await engine.leaveFilesBeforeBorder { _ in }
      _ = try await engine.finishKeyChange()
    }
    try await engine.close()
    engine = try await world.open()
    #expect(try engine.rows(of: groups[1]).count == 30)
    try await engine.close()
    #expect(world.place.oracle.repeated == nil)
  }

  /// Work of all kinds passes here, and must not write each time for nothing.
  @Test func `A copy that cannot be repaired is not rewritten by other work`() async throws {
    let world = MendingPlace()
    var (engine, groups) = try await world.make()
    try await engine.close()
    world.device.fail(at: [GroupKeysFile.offsets[0]])
    engine = try await world.open()
    for round in 0..<20 {
      try await engine.fill(groups[0], round..<(round + 1))
      try await engine.flush()
    }
    #expect(world.device.writes.count == 1)
    await engine.expectRefusal(at: GroupKeysFile.offsets[0]) { _ = try await $0.makeKeyedGroup() }
    #expect(world.device.writes.count == 2)
    try await engine.close()
  }

  @Test func `Without a readable copy nothing is written, and later all of it is`()
    async throws
  {
    let world = MendingPlace()
    var (engine, groups) = try await world.make()
    world.device.fail(at: GroupKeysFile.offsets)
    await engine.expectRefusal(at: 0) { _ = try await $0.makeKeyedGroup() }
    await engine.expectRefusal(at: 0) { try await $0.beginKeyChange(to: world.place.oracle) }
    try await engine.fill(groups[0], 10..<20)
    try await engine.flush()
    #expect(world.device.writes.isEmpty)
    world.device.fail(at: [])
    groups.append(try await engine.makeKeyedGroup())
    #expect(try world.groupsInKeys(engine) == [groups, groups])
    try await engine.close()
    engine = try await world.open()
    #expect(try engine.rows(of: groups[0]).count == 20)
    try await engine.close()
  }

  @Test(arguments: 0..<2)
  func `A change of keys does not end while a copy cannot be read, and ends later`(
    copy: Int
  ) async throws {
    let world = MendingPlace()
    let (engine, groups) = try await world.make()
    try await engine.flush()
    try await engine.beginKeyChange(to: world.place.oracle)
    try await engine.leaveFilesBeforeBorder { _ in }
    let offset = GroupKeysFile.offsets[copy]
    world.device.fail(at: [offset])
    // The first attempt leaves a manifest from before the border.
    await engine.expectRefusal(at: offset) { _ = try await $0.finishKeyChange() }
    let manifest = engine.storage.manifest.superblock.manifest
    for _ in 0..<3 {
      await engine.expectRefusal(at: offset) { _ = try await $0.finishKeyChange() }
    }
    // The others write none for nothing.
    #expect(engine.storage.manifest.superblock.manifest == manifest)
    #expect(engine.border != nil)
    world.device.fail(at: [])
    while engine.border != nil {
      try await engine.leaveFilesBeforeBorder { _ in }
      _ = try await engine.finishKeyChange()
    }
    for group in groups { #expect(try engine.rows(of: group).count == 10) }
    try await engine.close()
  }

  /// A damaged copy used to be written second: a torn write of the first left none.
  @Test(arguments: 0..<2)
  func `A power cut while a damaged copy is overwritten leaves the keys`(
    copy: Int
  ) async throws {
    let world = MendingPlace()
    var (engine, groups) = try await world.make()
    try await engine.close()
    var bytes = try world.place.bytes(of: GroupKeysFile.name)
    bytes[Int(GroupKeysFile.offsets[copy]) + 100] ^= 4
    try world.place.write(bytes, to: GroupKeysFile.name)
    world.device.fail(at: [])
    engine = try await world.open()
    groups.append(try await engine.makeKeyedGroup())
    try await engine.close()
    let writes = world.device.writes
    #expect(writes.count >= 3)
    // Each write torn in its middle.
    for write in writes {
      var torn = bytes
      let start = Int(write.offset)
      torn.replaceSubrange(
        start..<(start + GroupKeysFile.length / 2),
        with: write.bytes.prefix(GroupKeysFile.length / 2))
      // With so few groups, only zeros follow their names, so the end must differ.
      torn[start + GroupKeysFile.length - 1] ^= 1
      let file = try world.place.directory.create("torn")
      try file.write(torn.bytes, at: 0)
      #expect(try !GroupKeysFile.groups(in: file, of: engine.identity.bytes).isEmpty)
      try world.place.directory.remove("torn")
      bytes.replaceSubrange(start..<(start + GroupKeysFile.length), with: write.bytes)
    }
  }
}
