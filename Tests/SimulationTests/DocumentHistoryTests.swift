// Do documents under many tasks behave as if these had run one after another? Under the orders of
// seeds, on real threads, and with planted mistakes that must be found.

import OndolTestKit
import Testing

@Suite struct `A history of documents` {
  @Test(arguments: Seeds.first(30))
  func `is serializable whatever the order of steps`(seed: UInt64) throws {
    #expect(try HistoryTrial.runInOrder(seed: seed) == nil, "SEED=\(seed)")
  }

  @Test(arguments: Seeds.first(4))
  func `is serializable on real threads`(seed: UInt64) async throws {
    #expect(try await HistoryTrial.runOnThreads(seed: seed) == nil, "SEED=\(seed)")
  }

  @Test(arguments: DocumentHistory.Mistake.allCases)
  func `is seen not to be when a task makes a mistake`(mistake: DocumentHistory.Mistake) throws {
    let isFound = try (1...60 as ClosedRange<UInt64>).contains { seed in
      try HistoryTrial.runInOrder(seed: seed, mistake: mistake) != nil
    }
    #expect(isFound, "\(mistake) went unnoticed")
  }
}
