// A block of the device goes bad: an acknowledged commit exists, or the database reports the
// damage.

import OndolTestKit
import Testing

@Suite struct `A lost page` {
  // A log whose first page was lost, with both copies of its header, was once taken for an unused
  // one: the database opened with a handful of its commits, and removed the log.
  @Test(arguments: LostPageTest.Ending.allCases, LostPageTest.Rest.allCases)
  func `takes no acknowledged commit away in silence`(
    ending: LostPageTest.Ending, rest: LostPageTest.Rest
  ) throws {
    for seed in Seeds.first(1) {
      let report = try LostPageTest(seed: seed).run(ending, rest)
      #expect(report.violations.isEmpty, "\(report.violations.prefix(5))")
      #expect(report.pages > 8)
      // If every page were reported as damaged, or none, the test would show little.
      #expect(report.said > 0 && report.said < report.pages, "\(report)")
    }
  }
}
