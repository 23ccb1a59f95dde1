// Devices and dying servers, in a few histories; `ondol-stress sync` has thousands.

#if Server && Sync
  import OndolServerTestKit
  import OndolTestKit
  import Testing

  @Suite struct SyncTrialTests {
    @Test func `Whatever breaks, devices and server end equal`() throws {
      var counts = SyncCounts()
      for seed in Seeds.first(50) {
        do {
          counts += try SyncTrial.run(seed: seed)
        } catch {
          Issue.record("SEED=\(seed): \(error)")
          return
        }
      }
      #expect(counts.increments > 200 && counts.transactions > 40 && counts.rejections > 20)
      #expect(counts.connections > 100 && counts.deaths > 60 && counts.results > 400)
      #expect(counts.contents > 100)
    }

    @Test func `A server that records no names has every acknowledged write at least once`() throws
    {
      var counts = SyncCounts()
      for seed in Seeds.first(30) {
        do {
          counts += try SyncTrial.run(seed: seed, isGoogles: true)
        } catch {
          Issue.record("SEED=\(seed): \(error)")
          return
        }
      }
      #expect(counts.increments > 100 && counts.connections > 50 && counts.deaths > 30)
    }

    @Test(arguments: SyncSabotage.allCases)
    func `A broken promise is noticed`(_ sabotage: SyncSabotage) {
      let seeds: ClosedRange<UInt64> = 1...60
      let noticed = seeds.contains { seed in
        do {
          _ = try SyncTrial.run(seed: seed, sabotage: sabotage)
          return false
        } catch {
          return true
        }
      }
      #expect(noticed, "\(sabotage.rawValue), and nobody noticed")
    }
  }
#endif
