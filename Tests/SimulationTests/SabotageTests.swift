// `ondol-stress sabotage`: the suites notice every promise that is broken on purpose, and the
// command reports it in one line.

import OndolTestKit
import Testing

@Suite struct `What is planted` {
  @Test func `is noticed, each of it`() throws {
    let result = try StressTool(["sabotage", "--rounds", "1", "--seed", "20261121"]).finish()
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.output.split(separator: "\n").count == PlantedFault.all.count + 2)
    #expect(result.output.contains(" 0 unnoticed, seed 20261121\n"), "\(result.output)")
  }

  /// A limit that nothing can keep looks like an unnoticed fault.
  @Test func `is reported if it goes unnoticed`() throws {
    let found = try PlantedFault.acknowledgesEarly.casesUntilNoticed(seed: 20_261_121, limit: 1)
    #expect(found == nil)
  }
}
