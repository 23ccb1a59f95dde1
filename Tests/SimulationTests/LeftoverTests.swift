// Crashes leave files without references. They must go, and nothing else may.

import OndolEngine
import OndolTestKit
import Testing

private let path = "/db"

private var tinyOptions: SubjectOptions {
  SubjectOptions(
    shardCount: 2, memtableSize: 1 << 10, logSize: 6 << 10, manifestSize: 500,
    segmentSize: 1 << 20, blockSize: 256, deferredBytes: 100, runLimit: 2)
}

/// Opens the engine on `fileSystem`, runs `work` and closes it.
private func withEngine(
  on fileSystem: SimulatedFileSystem, seed: UInt64,
  _ work: @escaping @Sendable (EngineSubject) async throws -> Void
) throws {
  try SimulationExecutor.run(seed: seed) { executor in
    let world = SimulatedWorld(fileSystem: fileSystem, seed: seed, threads: executor)
    let engine = try await EngineSubject.open(world.environment, tinyOptions)
    try await work(engine)
    try await engine.close()
  }
}

/// Forty commits of a few hundred bytes each, on sixteen keys in two shards.
private func writeALot(_ engine: EngineSubject, seed: UInt64) async throws {
  var random = SeededRandom(seed: seed)
  for _ in 0..<40 {
    var key: [UInt8] = []
    key.appendBigEndian(random.pick([0x1000, 0x2000] as [UInt32]))
    key.append(UInt8(random.below(8)))
    let change = Change(key: key, value: random.bytes(random.below(600)))
    _ = try await engine.commit([change], random.pick([.process, .power]))
  }
}

@Suite struct `What crashes leave behind` {
  /// A process was once killed while it created a database, before the superblock's name was on the
  /// device. The next one found all files, trusted them and created a log. Then a power cut removed
  /// that name and not the log's, and no database could be opened there again.
  @Test func `when a database was being made can be opened after a power cut`() throws {
    let first = SimulatedFileSystem()
    first.keepPictures()
    try withEngine(on: first, seed: 1) { _ in }
    var cuts = 0
    for (number, made) in first.takePictures().enumerated() {
      let second = SimulatedFileSystem(storage: made.storage.afterKill())
      second.keepPictures()
      try withEngine(on: second, seed: 2) { engine in
        let change = Change(key: [0, 0, 0x10, 0, 1], value: [1])
        _ = try await engine.commit([change], .process)
      }
      for picture in second.takePictures() {
        for seed in 0..<4 {
          let left = picture.storage.afterPowerCut(seed: UInt64(number * 4 + seed))
          try withEngine(on: SimulatedFileSystem(storage: left), seed: 3) { _ in }
          cuts += 1
        }
      }
    }
    #expect(cuts > 1_000)
  }

  /// After any number of crashes a settled database has a superblock, a manifest, its last log and
  /// one segment for each shard. The reserve for a full disk goes when the database is closed.
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func `is gone after a settle and a reopen`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var fileSystem = SimulatedFileSystem()
    for round in 0..<30 {
      fileSystem.keepPictures()
      try withEngine(on: fileSystem, seed: random.next()) { engine in
        try await writeALot(engine, seed: seed + UInt64(round))
      }
      let picture = random.pick(fileSystem.takePictures())
      fileSystem = SimulatedFileSystem(
        storage: picture.storage.afterPowerCut(seed: random.next()))
    }
    try withEngine(on: fileSystem, seed: random.next()) { try await $0.settle() }
    try withEngine(on: fileSystem, seed: random.next()) { _ in }
    let names = fileSystem.storage.names(in: path)
    let kinds = Dictionary(grouping: names) { FileClass(name: $0) }.mapValues(\.count)
    #expect(kinds[.superblock] == 1)
    #expect(kinds[.manifest] == 1)
    #expect(kinds[.log] == 1, "\(names)")
    #expect(kinds[.segment] ?? 0 <= 2, "\(names)")
    // At most one for each key: a file without live values is gone.
    #expect(kinds[.values] ?? 0 <= 16, "\(names)")
    #expect(names.allSatisfy { FileClass(name: $0) != .other }, "\(names)")
  }

  @Test func `does not grow when nothing is written`() throws {
    let fileSystem = SimulatedFileSystem()
    try withEngine(on: fileSystem, seed: 1) { try await writeALot($0, seed: 1) }
    try withEngine(on: fileSystem, seed: 2) { try await $0.settle() }
    let names = fileSystem.storage.names(in: path)
    let operations = OperationKind.allCases.filter { $0 != .open && $0.isNumbered }
    let before = operations.map(fileSystem.count(of:))
    for seed: UInt64 in 3..<13 {
      try withEngine(on: fileSystem, seed: seed) { _ = try await $0.contents() }
    }
    #expect(fileSystem.storage.names(in: path) == names)
    #expect(operations.map(fileSystem.count(of:)) == before, "opening a closed database writes")
  }

  @Test func `does not touch files of other names`() throws {
    let fileSystem = SimulatedFileSystem()
    try withEngine(on: fileSystem, seed: 1) { try await writeALot($0, seed: 1) }
    let directory = try fileSystem.openDirectory(at: path, create: false)
    let strangers = ["notes.txt", "LOG-x", "00012.seg", "LOG-7.bak", "MANIFEST-", ".seg"]
    for name in strangers { _ = try directory.create(name) }
    for seed: UInt64 in 2..<5 {
      try withEngine(on: fileSystem, seed: seed) { try await writeALot($0, seed: seed) }
    }
    #expect(Set(fileSystem.storage.names(in: path)).isSuperset(of: strangers))
  }
}
