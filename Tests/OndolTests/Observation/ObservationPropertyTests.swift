// Listeners in random histories: see ObservationTrial.

import OndolTestKit
import Testing

@Suite struct ObservationPropertyTests {
  @Test func `Whatever happens in whatever order, listeners are told what happened`() throws {
    var counts = ObservationCounts()
    for seed in Seeds.first(400) {
      do {
        counts += try ObservationTrial.run(seed: seed)
      } catch {
        Issue.record("SEED=\(seed): \(error)")
        return
      }
    }
    print(
      "Observation: \(counts.histories) histories, \(counts.commits) commits,"
        + " \(counts.snapshots) snapshots, \(counts.changes) changes,"
        + " \(counts.withSeveral) snapshots with several")
    #expect(counts.snapshots > 5 * counts.histories)
    #expect(counts.withSeveral > counts.histories)
  }
}
