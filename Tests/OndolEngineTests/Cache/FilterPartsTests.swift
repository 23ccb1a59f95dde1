// Filters that do not fit in the cache as a whole. Their parts come and go like blocks, answer as
// the whole would, and are read only if that is likely to save a read. Filters once could not be
// evicted, and those of a hundred million rows have twice the bytes of the usual cache. Filters
// that fit are read at their first use.

import Testing

@testable import OndolEngine

@Suite struct FilterPartsTests {
  /// Rows whose keys are even numbers.
  private func evenRows(_ count: Int) -> [TestRow] {
    (0..<count).map { TestRow(kind: .put, key: key(2 * $0), value: [1, 2, 3, 4]) }
  }

  private func key(_ number: Int) -> [UInt8] {
    [0, 0, 0, 1, UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)]
  }

  private static let segmentName = FileNumber(rawValue: 7).segmentName

  @Test(arguments: [0, 30_000, 100_000, 1 << 22], [true, false])
  func `keys are found and missed rightly under every budget`(
    _ budget: Int, _ isYoung: Bool
  ) throws {
    let rows = evenRows(20_000)
    let directory = MemoryDirectory()
    let metadata = try writeSegment(rows, to: directory)
    let cache = BlockCache(budgetBytes: budget)
    let run = Run([openSegment(metadata, in: directory, cache: cache)])
    let options = ReadOptions(asksFilterFirst: isYoung)
    var random = SeededRandom(seed: 3)
    for _ in 0..<4_000 {
      let number = Int.random(in: 0..<40_000, using: &random)
      let found = try find(key(number), in: run, options)
      #expect(found == (number.isMultiple(of: 2) ? rows[number / 2] : nil), "key \(number)")
    }
    #expect(cache.usedBytes <= max(budget, 60_000) * 9 / 8)
    #expect(run.segments[0].findings().isEmpty)
  }

  @Test func `for keys that are not there a young run reads its filter and no blocks`() throws {
    let rows = evenRows(20_000)
    let directory = MemoryDirectory()
    let metadata = try writeSegment(rows, to: directory)
    // Room for single parts, but not for the whole.
    let cache = BlockCache(budgetBytes: 90_000)
    let run = Run([openSegment(metadata, in: directory, cache: cache)])
    for number in stride(from: 1, to: 40_000, by: 2) {
      #expect(try find(key(number), in: run, ReadOptions(asksFilterFirst: true)) == nil)
    }
    let parts = (20_000 * 10 / 512 + 1) / Filter.partLines + 1
    // All parts, and blocks only for the keys that the filter does not exclude.
    #expect(cache.loadCount < parts + 20_000 / 30)
  }

  @Test func `the oldest run reads its filter only if most keys are absent`() throws {
    let rows = evenRows(20_000)
    let directory = MemoryDirectory()
    let metadata = try writeSegment(rows, to: directory)
    let file = try #require(directory.file(Self.segmentName))
    func reads(_ numbers: [Int]) throws -> Int {
      // No room for anything: every lookup reads what it needs.
      let run = Run([openSegment(metadata, in: directory, cache: BlockCache(budgetBytes: 0))])
      _ = try find(key(0), in: run)
      let before = file.reads
      for number in numbers { _ = try find(key(number), in: run) }
      return file.reads - before
    }
    let present = try reads((0..<1_000).map { 2 * $0 })
    // An index block and a data block each.
    #expect(present == 2 * 1_000)
    let absent = try reads((0..<1_000).map { 2 * $0 + 1 })
    // Mostly one part of the filter each.
    #expect(absent < 1_000 + 200)
  }

  @Test func `a whole filter is read by the first whom it may spare a block`() throws {
    let rows = evenRows(20_000)
    let directory = MemoryDirectory()
    let metadata = try writeSegment(rows, to: directory)
    func isRead(asking numbers: [Int], _ options: ReadOptions) throws -> Bool {
      let run = Run([openSegment(metadata, in: directory, cache: BlockCache(budgetBytes: 1 << 22))])
      for number in numbers {
        let found = try find(key(number), in: run, options)
        #expect(found == (number.isMultiple(of: 2) ? rows[number / 2] : nil), "key \(number)")
      }
      return try !run.segments[0].open().table.filter.isToLoad
    }
    let oldest = ReadOptions()
    #expect(try !isRead(asking: (0..<20_000).map { 2 * $0 }, oldest))
    #expect(try isRead(asking: (0..<500).map { 40 * $0 + 1 }, oldest))
    #expect(try isRead(asking: [0], ReadOptions(asksFilterFirst: true)))
  }

  @Test func `a damaged filter is an error only for gets that use it`() throws {
    let rows = evenRows(20_000)
    let directory = MemoryDirectory()
    let metadata = try writeSegment(rows, to: directory)
    let file = try #require(directory.file(Self.segmentName))
    let reader = try SegmentFileReader.open(file, SegmentErrors(file: Self.segmentName))
    let section = try #require(try reader.filter(try reader.sections(try reader.footer())))
    var bytes = file.bytes
    bytes[Int(section.offset)] ^= 1
    try file.write(bytes.bytes, at: 0)
    let cache = BlockCache(budgetBytes: 1 << 22)
    let run = Run([openSegment(metadata, in: directory, cache: cache)])
    for number in stride(from: 0, to: 40_000, by: 2) {
      #expect(try find(key(number), in: run) == rows[number / 2])
    }
    #expect(throws: EngineError.self) {
      try find(key(2), in: run, ReadOptions(asksFilterFirst: true))
    }
    #expect(run.segments[0].findings().count == 1)
    #expect(run.segments[0].structureFindings().count == 1)
  }

  @Test func `a changed part is refused`() throws {
    let rows = evenRows(20_000)
    let directory = MemoryDirectory()
    let metadata = try writeSegment(rows, to: directory)
    let file = try #require(directory.file(Self.segmentName))
    let run = Run([openSegment(metadata, in: directory, cache: BlockCache(budgetBytes: 0))])
    let options = ReadOptions(asksFilterFirst: true)
    #expect(try find(key(1), in: run, options) == nil)
    // The filter is the largest section, directly after the blocks. Everything after the blocks is
    // damaged.
    let reader = try SegmentFileReader.open(file, SegmentErrors(file: Self.segmentName))
    let footer = try reader.footer()
    let sections = try reader.sections(footer)
    let filter = try #require(
      sections.first { $0.kind == SegmentSection.Kind.filter.rawValue })
    var bytes = file.bytes
    for offset in Int(filter.offset)..<Int(filter.offset + filter.length) { bytes[offset] ^= 0x55 }
    try file.write(bytes.bytes, at: 0)
    var refusals = 0
    for number in stride(from: 1, to: 2_001, by: 2) {
      do throws(EngineError) {
        _ = try find(key(number), in: run, options)
      } catch {
        guard case .corrupt(Self.segmentName, _, _) = error else { throw error }
        refusals += 1
      }
    }
    #expect(refusals == 1_000)
  }
}
