// Impossible numbers from files with correct checksums. Each of these once ended the process while
// it opened a database.

import OndolTestKit
import Testing

@testable import OndolEngine

@Suite struct HostileNumberTests {
  private var empty: ManifestState {
    ManifestState(
      nextFile: .zero, floor: start(base: 0, sequence: 0), newestLog: .zero,
      shards: [ShardState()])
  }

  private func start(base: UInt64, sequence: UInt64) -> LogStart {
    LogStart(
      number: FileNumber(rawValue: 2), base: LogPosition(rawValue: base),
      sequence: SequenceNumber(rawValue: sequence), time: 0)
  }

  /// A manifest whose log begins at the largest possible number made recovery add one to it.
  @Test(arguments: [(UInt64.max, UInt64(0)), (0, .max), (1 << 63, 1 << 63)])
  func `a manifest that counts from the end of all numbers is refused`(
    base: UInt64, sequence: UInt64
  ) {
    var state = empty
    #expect(throws: MalformedBytes.self) {
      try state.apply(
        .logs(floor: start(base: base, sequence: sequence), newest: FileNumber(rawValue: 2)))
    }
    #expect(throws: MalformedBytes.self) {
      try state.apply(.nextFile(FileNumber(rawValue: .max)))
    }
    #expect(state == empty)
  }

  /// The first compaction plan added up two segments of 2^63 bytes each.
  @Test func `segments that together hold more than can be counted are refused`() throws {
    let largest = Bounds.largestAmount
    var shard = ShardState()
    try shard.add(segment(1, sizeBytes: largest), level: 0, run: 1)
    for amount in [largest + 1, 1 << 63, .max] {
      #expect(throws: MalformedBytes.self) {
        try shard.add(segment(2, sizeBytes: amount), level: 0, run: 2)
      }
      #expect(throws: MalformedBytes.self) {
        try shard.add(segment(2, entries: amount), level: 0, run: 2)
      }
      #expect(throws: MalformedBytes.self) {
        try shard.add(segment(2, pointedAt: amount), level: 0, run: 2)
      }
    }
    #expect(shard.sizeBytes == largest)
  }

  private func segment(
    _ number: UInt64, sizeBytes: UInt64 = 1, entries: UInt64 = 1, pointedAt: UInt64 = 1
  ) -> SegmentMetadata {
    SegmentMetadata(
      number: FileNumber(rawValue: number), salt: 0, sizeBytes: sizeBytes, footerChecksum: 0,
      minKey: [1], maxKey: [2], entries: entries, tombstones: 0, rawBytes: 1,
      minSequence: .zero, maxSequence: .zero,
      valueReferences: [ValueReference(file: FileNumber(rawValue: 9), bytes: pointedAt)])
  }

  /// A file named after the largest number made the next number overflow.
  @Test func `a file named after an unassigned number is left alone`() async throws {
    let fileSystem = MemoryFileSystem()
    var environment = Environment.memory()
    environment.fileSystem = fileSystem
    let first = try await Engine.open(at: "/db", environment: environment)
    try await first.close()
    let directory = try fileSystem.openDirectory(at: "/db", create: false)
    for name in ["LOG-\(UInt64.max)", "\(UInt64.max).seg"] {
      #expect(FileNumber.parse(name, prefix: "LOG-") == nil)
      _ = try directory.create(name)
    }
    let second = try await Engine.open(at: "/db", environment: environment)
    var batch = Batch()
    batch.put([0, 0, 16, 1, 7].bytes, [UInt8]([1]).bytes)
    _ = try await second.commit(batch, durability: .power)
    try await second.close()
    #expect(try directory.list().contains("LOG-\(UInt64.max)"))
  }

  /// The largest number in a name could have made every later one impossible: the next edit ended
  /// the process. A number far beyond all assigned numbers belongs to someone else's file.
  @Test(
    arguments: [
      (1 << 62) - 1, 1 << 62, (1 << 56) - 1, 1 << 56, (1 << 56) + 1, 1 << 40, 1 << 33,
    ] as [UInt64])
  func `a file named after a number far ahead is left alone`(_ number: UInt64) async throws {
    var fileSystem = SimulatedFileSystem()
    var environment = Environment.memory()
    environment.fileSystem = fileSystem
    let first = try await Engine.open(at: "/db", environment: environment)
    try await first.close()
    let directory = try fileSystem.openDirectory(at: "/db", create: false)
    let names = [
      "LOG-\(number)", "MANIFEST-\(number)", "\(number).seg", "\(number).val",
      "\(number).pack", "\(number).content",
    ]
    for name in names { _ = try directory.create(name) }
    for round in UInt8(0)..<3 {
      fileSystem = fileSystem.kill()
      environment.fileSystem = fileSystem
      let engine = try await Engine.open(at: "/db", environment: environment)
      var batch = Batch()
      batch.put([0, 0, 16, 1, round].bytes, [UInt8]([1]).bytes)
      _ = try await engine.commit(batch, durability: .power)
      try await engine.flush()
      #expect(try await engine.snapshot().get([0, 0, 16, 1, 0]) == [1])
      #expect(engine.storage.manifest.numbers.next < FileNumber(rawValue: 1_000))
      // The second time the database was not closed in good order.
      if round != 1 { try await engine.close() }
    }
    let found = try fileSystem.openDirectory(at: "/db", create: false).list()
    #expect(Set(found).isSuperset(of: names))
  }

  @Test func `a manifest that names files which cannot be is refused`() throws {
    var state = empty
    for number in [FileNumber.greatest.rawValue + 1, 1 << 62, .max] {
      let number = FileNumber(rawValue: number)
      var segment = segment(1)
      segment.number = number
      segment.valueReferences = []
      let file = ValueFileMetadata(number: number, salt: 1, sizeBytes: 100, values: 1)
      for change: ManifestChange in [
        .nextFile(number), .addSegment(shard: 0, level: 1, run: 0, segment),
        .addValueFile(shard: 0, file),
        .logs(floor: start(base: 0, sequence: 0), newest: number),
      ] {
        #expect(throws: MalformedBytes.self) { try state.apply(change) }
      }
    }
    #expect(state == empty)
  }

  /// The manifest's count of values was allocated before anything was read: 32 GiB at once.
  @Test func `a value file with room for fewer values than are counted is refused`() throws {
    let directory = MemoryDirectory()
    let written = try writeValues([[1, 2, 3], [4]], to: directory)
    for count in [UInt64(1 << 32), .max] {
      var metadata = written.metadata
      metadata.values = count
      let file = openValues(
        metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))
      #expect(throws: EngineError.self) { try file.value(written.pointers[0]) }
      #expect(throws: EngineError.self) { try file.verify() }
    }
  }
}
