// Tests the crash test itself. A store that keeps its promises passes. Each possible mistake of a
// store, and each sync that a disk can drop, is found.

import OndolTestKit
import Testing

private func crashTest(
  seed: UInt64, _ mistake: TinyStore.Mistake = .none, sabotage: Sabotage? = nil
) -> CrashTest {
  CrashTest(seed: seed, sabotage: sabotage) { environment, _ in
    try TinyStore.open(environment, mistake: mistake)
  }
}

@Suite struct `The crash test` {
  @Test(arguments: Seeds.first(2))
  func `passes a store that keeps its promises`(seed: UInt64) {
    let report = crashTest(seed: seed).run(crashes: 1_500)
    #expect(report.violation == nil, "\(report)")
    #expect(report.crashes >= 1_500)
    #expect(report.points > 300)
  }

  @Test(arguments: TinyStore.Mistake.allCases.filter { $0 != .none && $0 != .retriesSync })
  func `finds each mistake`(mistake: TinyStore.Mistake) throws {
    let report = crashTest(seed: 1, mistake).run(crashes: 5_000)
    let violation = try #require(report.violation)
    #expect(violation.workload.steps.count <= 6, "\(violation)")
  }

  @Test(arguments: [.logSync, .directorySync] as [Sabotage])
  func `finds each sync that is swallowed`(sabotage: Sabotage) {
    let report = crashTest(seed: 1, sabotage: sabotage).run(crashes: 5_000)
    #expect(report.violation != nil)
  }

  @Test func `does the same again from the same seed`() {
    let first = crashTest(seed: 9, .trustsTheTail).run(crashes: 5_000)
    let second = crashTest(seed: 9, .trustsTheTail).run(crashes: 5_000)
    #expect(first.description == second.description)
  }
}

@Suite struct `The fault test` {
  @Test(arguments: Seeds.first(2))
  func `passes a store that stops when something fails`(seed: UInt64) {
    let test = FaultTest(seed: seed) { environment, _ in
      try TinyStore.open(environment, mistake: .none)
    }
    let report = test.run(faults: 300)
    #expect(report.violation == nil, "\(report)")
  }

  @Test func `finds a store that believes the second sync`() {
    let test = FaultTest(seed: 1) { environment, _ in
      try TinyStore.open(environment, mistake: .retriesSync)
    }
    #expect(test.run(faults: 1_000).violation != nil)
  }
}
