// `ondol-stress sabotage`: every promise that is broken on purpose is noticed, and the command says
// so in one line.

import OndolTestKit
import Testing

@Suite struct `What is planted` {
  @Test func `is noticed, each of it`() throws {
    let result = try StressTool(["sabotage", "--rounds", "1", "--seed", "20261121"]).finish()
    #expect(result.status == 0, "\(result.messages)")
    #expect(result.output.split(separator: "\n").count == PlantedFault.all.count + 2)
    #expect(result.output.contains(" 0 unnoticed, seed 20261121\n"), "\(result.output)")
  }

  /// A limit that nothing can keep is what an unnoticed fault looks like.
  @Test func `is told when it goes unnoticed`() throws {
    let found = try PlantedFault.acknowledgesEarly.casesUntilNoticed(seed: 20_261_121, limit: 1)
    #expect(found == nil)
  }
}
