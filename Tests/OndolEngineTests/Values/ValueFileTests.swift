// Value files compared with an array: the same values come out, whatever fits in the cache.

import Testing

@testable import OndolEngine

@Suite struct ValueFileTests {
  @Test(arguments: [0, 100_000, 1 << 30], [true, false])
  func `every value is read back`(_ budget: Int, _ compress: Bool) throws {
    var random = SeededRandom(seed: UInt64(budget) &+ (compress ? 1 : 2))
    let directory = MemoryDirectory()
    let written = try writeValues(
      randomValues(200, upTo: 5_000, &random), to: directory, compress: compress)
    let cache = BlockCache(budgetBytes: budget)
    let file = openValues(written.metadata, in: directory, cache: cache)
    for index in (0..<600).map({ _ in Int.random(in: 0..<200, using: &random) }) {
      let value = try file.value(written.pointers[index], keep: Bool.random(using: &random))
      #expect(value == written.values[index], "value \(index)")
    }
    try file.verify()
    #expect(cache.usedBytes <= max(budget, 10_000))
  }

  @Test func `a value in memory is not read again`() throws {
    var random = SeededRandom(seed: 3)
    let directory = MemoryDirectory()
    let written = try writeValues(randomValues(20, upTo: 5_000, &random), to: directory)
    let file = openValues(
      written.metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))
    let bytes = try #require(directory.file("5.val"))
    for pointer in written.pointers { _ = try file.value(pointer) }
    let reads = bytes.reads
    for (pointer, value) in zip(written.pointers, written.values) {
      let isInMemory = file.pinned(pointer) != nil
      #expect(isInMemory)
      #expect(try file.value(pointer) == value)
    }
    #expect(bytes.reads == reads)
  }

  @Test func `the cache gets back the room of values`() throws {
    var random = SeededRandom(seed: 4)
    let directory = MemoryDirectory()
    let written = try writeValues(randomValues(50, upTo: 5_000, &random), to: directory)
    let cache = BlockCache(budgetBytes: 1 << 20)
    do {
      let file = openValues(written.metadata, in: directory, cache: cache)
      for pointer in written.pointers { _ = try file.value(pointer) }
      #expect(cache.usedBytes > 20_000)
    }
    #expect(cache.usedBytes == 0)
  }

  @Test func `a value that would take much of the cache is not kept`() throws {
    let directory = MemoryDirectory()
    let written = try writeValues(
      [[UInt8](repeating: 7, count: 100_000), [1, 2, 3]], to: directory)
    let file = openValues(
      written.metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 20))
    #expect(try file.value(written.pointers[0]).count == 100_000)
    #expect(try file.value(written.pointers[1]) == [1, 2, 3])
    let isLargeKept = file.pinned(written.pointers[0]) != nil
    let isSmallKept = file.pinned(written.pointers[1]) != nil
    #expect(!isLargeKept)
    #expect(isSmallKept)
  }

  @Test func `a copied value has the same stored bytes`() throws {
    var random = SeededRandom(seed: 5)
    let directory = MemoryDirectory()
    let written = try writeValues(randomValues(40, upTo: 3_000, &random), to: directory)
    let cache = BlockCache(budgetBytes: 1 << 20)
    let source = openValues(written.metadata, in: directory, cache: cache)
    let writer = try makeValueWriter(6, to: directory, salt: 99)
    var copies: [ValuePointer] = []
    for pointer in written.pointers.reversed() {
      let copy = try source.withRecord(pointer) { (record) throws(EngineError) in
        try writer.copy(record)
      }
      #expect(copy.storedLength == pointer.storedLength)
      copies.append(copy)
    }
    let target = openValues(try writer.finish(), in: directory, cache: cache)
    try target.verify()
    for (copy, value) in zip(copies, written.values.reversed()) {
      #expect(try target.value(copy) == value)
    }
  }

  @Test func `more files than may be open are all read`() throws {
    let directory = MemoryDirectory()
    let cache = BlockCache(budgetBytes: 0)
    var shard = ShardState()
    var pointers: [ValuePointer] = []
    for number in UInt64(1)...300 {
      let written = try writeValues(
        [[UInt8(number & 255), 1], [2]], number: number, to: directory)
      shard.add(written.metadata)
      pointers.append(written.pointers[0])
    }
    let files = ValueFiles(identity: testIdentity, directory: directory, cache: cache)
    let start = LogStart(number: .zero, base: .zero, sequence: .zero, time: 0)
    files.follow(
      ManifestState(
        nextFile: .zero, floor: start, newestLog: .zero, shards: [ShardState(), shard]))
    for _ in 0..<2 {
      for pointer in pointers {
        let file = try #require(files.files([pointer.file])[pointer.file])
        let value = try file.value(pointer)
        #expect(value == [UInt8(pointer.file.rawValue & 255), 1])
      }
    }
  }

  @Test func `a pointer is as it was after it was written and read`() throws {
    let pointer = ValuePointer(
      file: FileNumber(rawValue: .max), offset: 1 << 40, storedLength: 7, rawLength: 1 << 26,
      checksum: 0xdead_beef, ordinal: 12)
    let bytes = pointer.encode()
    #expect(bytes.count == ValuePointer.length)
    #expect(try ValuePointer(bytes.bytes) == pointer)
    #expect(throws: MalformedBytes.self) { _ = try ValuePointer((bytes + [0]).bytes) }
  }
}
