// Clients of dying servers, in a few histories; `ondol-stress serve` has thousands.

#if Server
  import OndolServerTestKit
  import OndolTestKit
  import Testing

  @Suite struct ServeTrialTests {
    @Test func `Whatever breaks, clients were told the truth`() throws {
      var counts = ServeCounts()
      for seed in Seeds.first(60) {
        do {
          counts += try ServeTrial.run(seed: seed)
        } catch {
          Issue.record("SEED=\(seed): \(error)")
          return
        }
      }
      #expect(counts.connections > 60 && counts.moments > 300 && counts.deaths > 30)
    }

    @Test(arguments: ServeSabotage.allCases)
    func `A broken promise is noticed`(_ sabotage: ServeSabotage) {
      let seeds: ClosedRange<UInt64> = 1...60
      let noticed = seeds.contains { seed in
        do {
          _ = try ServeTrial.run(seed: seed, sabotage: sabotage)
          return false
        } catch {
          return true
        }
      }
      #expect(noticed, "\(sabotage.rawValue), and nobody noticed")
    }
  }
#endif
