// The crash tests are as good as their disk: it must keep every promise that it makes, and break
// everything else.

import OndolEngine
import OndolTestKit
import Testing

/// A file system with an empty, open directory.
private func makeDirectory(
  _ fileSystem: SimulatedFileSystem = SimulatedFileSystem()
) throws -> (SimulatedFileSystem, any Directory) {
  let directory = try fileSystem.openDirectory(at: "/db", create: true)
  try directory.syncName()
  return (fileSystem, directory)
}

private func contents(_ fileSystem: SimulatedFileSystem, _ name: String) -> [UInt8]? {
  fileSystem.storage.contents(of: name, in: "/db")
}

@Suite struct `A simulated disk that keeps its power` {
  @Test func `gives back what was written, with zeros where nothing was`() throws {
    let (_, directory) = try makeDirectory()
    let file = try directory.create("LOG-1")
    try file.write([1, 2, 3].bytes, at: 5_000)
    try file.write([9].bytes, at: 5_001)
    #expect(try file.size() == 5_003)
    #expect(try file.read(at: 4_998, count: 10) == [0, 0, 1, 9, 3])
    #expect(try file.read(at: 6_000, count: 10) == [])
    #expect(try file.read(at: .max, count: 10) == [])
  }

  @Test func `refuses a name twice, a missing name, and writing to a file opened for reading`()
    throws
  {
    let (_, directory) = try makeDirectory()
    _ = try directory.create("1.seg")
    #expect(throws: EngineError.io(operation: "create", file: "1.seg", offset: nil, errno: 17)) {
      try directory.create("1.seg")
    }
    #expect(throws: EngineError.io(operation: "open", file: "2.seg", offset: nil, errno: 2)) {
      try directory.open("2.seg", access: .readOnly)
    }
    #expect(throws: EngineError.io(operation: "remove", file: "2.seg", offset: nil, errno: 2)) {
      try directory.remove("2.seg")
    }
    let file = try directory.open("1.seg", access: .readOnly)
    #expect(throws: EngineError.io(operation: "write", file: "1.seg", offset: 0, errno: 9)) {
      try file.write([1].bytes, at: 0)
    }
  }

  @Test func `still reads a removed file through an open handle`() throws {
    let (_, directory) = try makeDirectory()
    let file = try directory.create("1.seg")
    try file.write([7].bytes, at: 0)
    try directory.remove("1.seg")
    #expect(try directory.list() == [])
    #expect(try file.read(at: 0, count: 1) == [7])
  }

  @Test func `lends its lock to one holder until it is released, dropped or power is lost`() throws
  {
    let (fileSystem, directory) = try makeDirectory()
    do {
      let lock = try directory.lock(owner: "first")
      #expect(throws: EngineError.inUse(path: "/db", holder: "first")) {
        try directory.lock(owner: "second")
      }
      lock.release()
      let second = try directory.lock(owner: "second")
      lock.release()
      #expect(throws: EngineError.inUse(path: "/db", holder: "second")) {
        try directory.lock(owner: "third")
      }
      _ = second
    }
    let kept = try directory.lock(owner: "third")
    for next in [fileSystem.crash(seed: 1), fileSystem.kill()] {
      let again = try next.openDirectory(at: "/db", create: false)
      _ = try again.lock(owner: "fourth")
    }
    _ = kept
  }

  @Test func `fails every operation after the one before which power was cut`() throws {
    for cut in 0..<7 {
      let fileSystem = SimulatedFileSystem()
      fileSystem.cutPower(before: cut)
      var succeeded = 0
      do {
        let directory = try fileSystem.openDirectory(at: "/db", create: true)
        succeeded += 1
        try directory.syncName()
        succeeded += 1
        let file = try directory.create("LOG-1")
        succeeded += 1
        for step in 0..<2 {
          try file.write([UInt8(step)].bytes, at: 0)
          succeeded += 1
          try file.sync()
          succeeded += 1
        }
      } catch {
        guard case EngineError.io(_, _, _, errno: 5) = error else {
          Issue.record("\(error)")
          continue
        }
      }
      #expect(succeeded == cut)
      #expect(fileSystem.operations == cut)
    }
  }

  @Test func `fails the operation a fault names, once or for ever`() throws {
    let (fileSystem, directory) = try makeDirectory()
    let file = try directory.create("LOG-1")
    for isSticky in [false, true] {
      fileSystem.inject([
        Fault(failing: [.write], of: .log, after: 1, errno: 28, isSticky: isSticky)
      ])
      let outcomes = (0..<4).map { _ in
        (try? file.write([1].bytes, at: 0)) != nil
      }
      #expect(outcomes == (isSticky ? [true, false, false, false] : [true, false, true, true]))
    }
    fileSystem.inject([])
  }

  @Test func `after a failed sync shows bytes that the next sync does not save`() throws {
    let (fileSystem, directory) = try makeDirectory()
    let file = try directory.create("LOG-1")
    try directory.sync()
    try file.write([1].bytes, at: 0)
    try file.sync()
    try file.write([2].bytes, at: 0)
    fileSystem.inject([Fault(failing: [.sync], errno: 5)])
    #expect(throws: EngineError.self) { try file.sync() }
    #expect(try file.read(at: 0, count: 1) == [2])
    try file.sync()
    for seed in 0..<50 {
      #expect(contents(fileSystem.crash(seed: UInt64(seed)), "LOG-1") == [1], "SEED=\(seed)")
    }
  }
}

@Suite struct `A simulated disk that loses its power` {
  /// Random writes and syncs on a few files. The last synced bytes must exist after any cut. Every
  /// byte must be one that was written at its place since, or a zero or noise beyond the old end.
  @Test(arguments: Seeds.first(16))
  func `always keeps what was synced`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let (fileSystem, directory) = try makeDirectory()
    var synced: [String: [UInt8]] = [:]
    var overwritten: [String: Set<Int>] = [:]
    var files: [String: any File] = [:]
    for name in ["LOG-1", "2.seg", "MANIFEST-3"] {
      files[name] = try directory.create(name)
      synced[name] = []
      overwritten[name] = []
    }
    try directory.sync()
    for step in 0..<60 {
      let name = random.pick(synced.keys.sorted())
      let file = try #require(files[name])
      if random.chance(1, in: 4) {
        try file.sync()
        synced[name] = contents(fileSystem, name)
        overwritten[name] = []
      } else {
        let offset = random.below(9_000)
        let bytes = random.bytes(1 + random.below(3_000))
        try file.write(bytes.bytes, at: UInt64(offset))
        overwritten[name]?.formUnion(offset..<(offset + bytes.count))
      }
      let after = fileSystem.crash(seed: UInt64(step))
      for (name, old) in synced {
        let new = try #require(contents(after, name))
        #expect(new.count >= old.count)
        let changed = overwritten[name] ?? []
        let wrong = old.indices.first { new[$0] != old[$0] && !changed.contains($0) }
        #expect(wrong == nil, "SEED=\(seed) step \(step) \(name)")
      }
    }
  }

  @Test func `may keep, lose or tear every sector by itself`() throws {
    let (fileSystem, directory) = try makeDirectory()
    let file = try directory.create("LOG-1")
    try directory.sync()
    try file.write([UInt8](repeating: 1, count: 1_024).bytes, at: 0)
    try file.sync()
    try file.write([UInt8](repeating: 2, count: 1_024).bytes, at: 0)
    var whole: Set<[UInt8]> = []
    var torn = 0
    for seed in 0..<400 {
      let bytes = try #require(contents(fileSystem.crash(seed: UInt64(seed)), "LOG-1"))
      #expect(bytes.count == 1_024)
      let sectors = [Set(bytes[..<512]), Set(bytes[512...])]
      if sectors.allSatisfy({ $0.count == 1 }) {
        whole.insert(sectors.flatMap { $0 })
      } else {
        torn += 1
      }
    }
    #expect(whole == [[1, 1], [1, 2], [2, 1], [2, 2]])
    #expect(torn > 10)
  }

  @Test func `may hold any of the contents a sector had since the sync`() throws {
    let (fileSystem, directory) = try makeDirectory()
    let file = try directory.create("LOG-1")
    try directory.sync()
    for value: UInt8 in 0..<4 {
      try file.write([UInt8](repeating: value, count: 512).bytes, at: 0)
      if value == 0 { try file.sync() }
    }
    var seen: Set<UInt8> = []
    for seed in 0..<400 {
      let bytes = try #require(contents(fileSystem.crash(seed: UInt64(seed)), "LOG-1"))
      seen.insert(bytes[0])
    }
    #expect(seen == [0, 1, 2, 3])
  }

  @Test func `may grow a file without its bytes, and lose bytes with the size`() throws {
    let (fileSystem, directory) = try makeDirectory()
    let file = try directory.create("LOG-1")
    try directory.sync()
    try file.write([UInt8](repeating: 1, count: 512).bytes, at: 0)
    try file.sync()
    try file.write([UInt8](repeating: 2, count: 1_024).bytes, at: 512)
    var outcomes: Set<String> = []
    for seed in 0..<600 {
      let bytes = try #require(contents(fileSystem.crash(seed: UInt64(seed)), "LOG-1"))
      #expect(bytes[..<512] == [UInt8](repeating: 1, count: 512)[...])
      switch bytes.count {
      case 512: outcomes.insert("old size")
      case 1_536:
        let tail = Set(bytes[1_024...])
        outcomes.insert(
          tail == [2] ? "all" : tail == [0] ? "zeros" : tail == [1] ? "stale" : "noise")
      default: outcomes.insert("in between")
      }
    }
    #expect(outcomes.isSuperset(of: ["old size", "all", "zeros", "noise", "in between"]))
  }

  @Test func `makes and removes names independently until the directory is synced`() throws {
    let (fileSystem, directory) = try makeDirectory()
    for name in ["old", "kept"] {
      try directory.create(name).sync()
    }
    try directory.sync()
    for name in ["new", "newer"] {
      try directory.create(name).sync()
    }
    try directory.remove("old")
    var seen: Set<[String]> = []
    for seed in 0..<400 {
      let names = fileSystem.crash(seed: UInt64(seed)).storage.names(in: "/db")
      #expect(names.contains("kept"))
      seen.insert(names)
    }
    #expect(seen.count == 8)
    try directory.sync()
    for seed in 0..<100 {
      let names = fileSystem.crash(seed: UInt64(seed)).storage.names(in: "/db")
      #expect(names == ["kept", "new", "newer"])
    }
  }

  @Test func `keeps everything when only the process is killed, until a power cut`() throws {
    let (fileSystem, directory) = try makeDirectory()
    let file = try directory.create("LOG-1")
    try file.write([1].bytes, at: 0)
    let killed = fileSystem.kill()
    #expect(contents(killed, "LOG-1") == [1])
    let outcomes = Set((0..<100).map { contents(killed.crash(seed: $0), "LOG-1") })
    #expect(outcomes.isSuperset(of: [nil, [], [1]]))
  }

  @Test func `comes out the same for the same seed`() throws {
    let (fileSystem, directory) = try makeDirectory()
    var random = SeededRandom(seed: 3)
    for number in 0..<5 {
      let file = try directory.create("\(number).seg")
      try file.write(random.bytes(5_000).bytes, at: 0)
    }
    for seed: UInt64 in 0..<50 {
      let one = fileSystem.crash(seed: seed).storage
      let two = fileSystem.crash(seed: seed).storage
      #expect(one.names(in: "/db") == two.names(in: "/db"))
      for name in one.names(in: "/db") {
        #expect(one.contents(of: name, in: "/db") == two.contents(of: name, in: "/db"))
      }
    }
  }

  @Test func `saves with a synced write its own bytes, and those before it perhaps not`() throws {
    var losses = 0
    for seed: UInt64 in 0..<60 {
      let (fileSystem, directory) = try makeDirectory()
      let file = try directory.create("LOG-1")
      try file.write([UInt8](repeating: 0, count: 10_000).bytes, at: 0)
      try file.sync()
      try directory.sync()
      try file.write([1].bytes, at: 100)
      try file.writeSynced([UInt8](repeating: 2, count: 6_000).bytes, at: 3_000)
      let found = try #require(contents(fileSystem.crash(seed: seed), "LOG-1"), "SEED=\(seed)")
      #expect(found.count == 10_000)
      #expect(found[3_000..<9_000].allSatisfy { $0 == 2 }, "SEED=\(seed)")
      if found[100] == 0 { losses += 1 }
    }
    #expect((10..<55).contains(losses))
  }

  @Test func `may lose a directory whose name was not synced`() throws {
    let fileSystem = SimulatedFileSystem()
    _ = try fileSystem.openDirectory(at: "/db", create: true)
    let survivors = (0..<60).filter { seed in
      (try? fileSystem.crash(seed: seed).openDirectory(at: "/db", create: false)) != nil
    }
    #expect((10..<55).contains(survivors.count))
  }

  @Test func `keeps a picture from before each operation`() throws {
    let (fileSystem, directory) = try makeDirectory()
    fileSystem.keepPictures()
    let file = try directory.create("LOG-1")
    fileSystem.note(1)
    try file.write([1].bytes, at: 0)
    try file.sync()
    let pictures = fileSystem.takePictures()
    #expect(pictures.map(\.kind) == [.create, .write, .sync])
    #expect(pictures.map(\.note) == [0, 1, 1])
    #expect(pictures.map(\.operation) == [2, 3, 4])
    #expect(
      pictures.map { $0.storage.contents(of: "LOG-1", in: "/db") } == [nil, [], [1]])
  }

  @Test(arguments: Sabotage.allCases)
  func `saves nothing in a sync that it must ignore`(sabotage: Sabotage) throws {
    let (fileSystem, directory) = try makeDirectory(SimulatedFileSystem(sabotage: sabotage))
    let names = ["LOG-1", "2.seg", "MANIFEST-3", "4.val", "5.pack"]
    for name in names {
      let file = try directory.create(name)
      try file.write([1].bytes, at: 0)
      try file.sync()
    }
    try directory.sync()
    var lost: Set<String> = []
    for seed: UInt64 in 0..<100 {
      let after = fileSystem.crash(seed: seed)
      lost.formUnion(names.filter { contents(after, $0) != [1] })
    }
    let expected: [Sabotage: Set<String>] = [
      .logSync: ["LOG-1"], .segmentSync: ["2.seg"], .manifestSync: ["MANIFEST-3"],
      .valueSync: ["4.val"], .contentSync: ["5.pack"], .directorySync: Set(names),
    ]
    #expect(lost == expected[sabotage])
  }
}
