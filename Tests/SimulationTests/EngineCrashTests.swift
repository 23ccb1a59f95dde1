// The engine under power cuts, kills and failing disks.

import OndolTestKit
import Testing

private func crashTest(seed: UInt64, sabotage: Sabotage? = nil) -> CrashTest {
  CrashTest(seed: seed, sabotage: sabotage) { environment, options in
    try await EngineSubject.open(environment, options)
  }
}

@Suite struct `The engine` {
  @Test(arguments: [1, 2] as [UInt64])
  func `keeps every promise when the power goes`(seed: UInt64) {
    let report = crashTest(seed: seed).run(crashes: 5_000)
    #expect(report.violation == nil, "\(report)")
  }
}
