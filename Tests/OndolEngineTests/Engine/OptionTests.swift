// Derived sizes, which follow from the cache's: the rows that a shard collects before it writes a
// file, and the reserve for a full disk.

import Testing

@testable import OndolEngine

@Suite struct OptionTests {
  @Test(arguments: [
    (cache: 0, usual: 4, largest: 4, reserve: 16), (cache: 16, usual: 4, largest: 4, reserve: 16),
    (cache: 32, usual: 4, largest: 8, reserve: 16), (cache: 64, usual: 4, largest: 16, reserve: 32),
    (cache: 128, usual: 8, largest: 16, reserve: 32),
    (cache: 1_024, usual: 16, largest: 16, reserve: 32),
    (cache: 4_096, usual: 16, largest: 16, reserve: 32),
  ])
  func `Memtable sizes and the reserve follow the cache, in mebibytes`(
    cache: Int, usual: Int, largest: Int, reserve: Int
  ) {
    var options = EngineOptions()
    options.cacheSize = cache << 20
    #expect(options.memtableSize == usual << 20)
    #expect(options.largestMemtableSize == largest << 20)
    #expect(options.memtableBudget == (cache << 20) / 8 * 5)
    #expect(options.reserveSize == reserve << 20)
  }

  @Test func `A database uses half of the process's file limit, within bounds`() {
    #expect((FileLimit.minimum...4_096).contains(FileLimit.ofProcess))
    #expect(FileLimit.minimum == 64)
    #expect(EngineOptions().cacheSize == 64 << 20)
  }
}
