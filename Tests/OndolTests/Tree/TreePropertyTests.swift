// Random histories of the tree beside a naive one in memory: see TreeTrial.

import OndolTestKit
import Testing

@Suite struct TreePropertyTests {
  @Test func `Whatever is written, the tree reads and tells as the rules say`() throws {
    var counts = TreeCounts()
    for seed in Seeds.first(100) {
      do {
        counts += try TreeTrial.run(seed: seed)
      } catch {
        Issue.record("SEED=\(seed): \(error)")
        return
      }
    }
    print(
      "Tree: \(counts.histories) histories, \(counts.reads) queries, \(counts.events) events,"
        + " \(counts.merged) times several commits at once")
    #expect(counts.events > 5 * counts.histories)
  }
}
