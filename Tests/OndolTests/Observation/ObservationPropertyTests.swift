// Listeners in random histories, in the writing database and beside its writer: see
// ObservationTrial.

import OndolTestKit
import Testing

@Suite struct ObservationPropertyTests {
  @Test(arguments: [(ObservationTrial.Place.inWriter, 150), (.besideWriter, 40)])
  func `Listeners receive what happened, in any order of events`(
    place: ObservationTrial.Place, histories: Int
  ) throws {
    var counts = ObservationCounts()
    for seed in Seeds.first(histories) {
      do {
        counts += try ObservationTrial.run(seed: seed, place)
      } catch {
        Issue.record("SEED=\(seed), \(place): \(error)")
        return
      }
    }
    print(
      "Observation \(place): \(counts.histories) histories, \(counts.commits) commits,"
        + " \(counts.snapshots) snapshots, \(counts.changes) changes,"
        + " \(counts.withSeveral) snapshots with several, \(counts.schemas) schemas,"
        + " \(counts.drops) drops")
    #expect(counts.snapshots > 5 * counts.histories)
    #expect(counts.withSeveral > counts.histories)
    #expect(place == .besideWriter || min(counts.schemas, counts.drops) > counts.histories / 2)
  }
}
