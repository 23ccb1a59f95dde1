// Feeds and returning listeners in random histories of several lives: see ChangeTrial.

import OndolTestKit
import Testing

@Suite struct ChangePropertyTests {
  @Test func `Whatever happened meanwhile, who comes back is told all of it`() throws {
    var counts = ChangeCounts()
    for seed in Seeds.first(60) {
      do {
        counts += try ChangeTrial.run(seed: seed)
      } catch {
        Issue.record("SEED=\(seed): \(error)")
        return
      }
    }
    print(
      "Changes: \(counts.lives) lives, \(counts.commits) commits, \(counts.told) told in"
        + " \(counts.resumptions) stretches, \(counts.lost) lost, \(counts.keptLogs) logs kept,"
        + " \(counts.results) results with \(counts.differences) differences")
    #expect(counts.told > counts.commits / 2)
    #expect(counts.differences > counts.results)
  }
}
