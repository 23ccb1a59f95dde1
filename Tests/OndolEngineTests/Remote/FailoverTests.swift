// A store whose servers die and are replaced: see FailoverTrial. `ondol-stress failovers` is the
// long form.

import OndolTestKit
import Testing

@Suite struct FailoverTests {
  @Test func `Standbys that take over lose no acknowledged commit, and repeat none`() throws {
    var counts = FailoverCounts()
    for seed in Seeds.first(24) {
      do {
        counts += try FailoverTrial.run(seed: seed, failovers: 40)
      } catch {
        Issue.record("SEED=\(seed): \(error)")
        return
      }
    }
    print(
      "Failovers: \(counts.failovers), \(counts.commits) commits, \(counts.refused) refused,"
        + " \(counts.silences) silences, \(counts.late) groups late,"
        + " \(counts.lostWithServers) commits lost with servers that died")
    // One seed alone need not meet everything.
    guard counts.failovers > 500 else { return }
    #expect(counts.commits > counts.failovers / 2)
    #expect(counts.late > 0 && counts.lostWithServers > 0)
    #expect(counts.silences > counts.failovers / 4)
  }
}
