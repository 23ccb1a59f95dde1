// Declarations of collections, in random histories, compared with a model: see DeclarationTrial.

import OndolTestKit
import Testing

@Suite struct DeclarationPropertyTests {
  @Test func `Whatever is declared and dropped, every answer is the model's`() throws {
    var counts = DeclarationCounts()
    let seeds = Seeds.first(50)
    for seed in seeds {
      do {
        counts += try DeclarationTrial.run(seed: seed)
      } catch {
        Issue.record("SEED=\(seed): \(error)")
        return
      }
    }
    print(
      "Declarations: \(counts.schemas) schemas, \(counts.drops) drops, \(counts.answers) answers,"
        + " \(counts.pastAnswers) from earlier snapshots, \(counts.unreadable) documents unreadable"
    )
    guard seeds.count > 1 else { return }
    #expect(min(counts.schemas, counts.drops) > seeds.count)
    #expect(counts.unreadable > seeds.count / 4)
  }
}
