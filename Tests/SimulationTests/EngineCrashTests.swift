// The engine under power cuts, kills and failing disks. A violation prints the seed, the workload
// and the operation, and a history as small as the crash test could make it.

import OndolTestKit
import Testing

private let openEngine: OpenSubject = { environment, options in
  try await EngineSubject.open(environment, options)
}

@Suite struct `The engine` {
  @Test(arguments: Seeds.first(2))
  func `keeps every promise in a power cut`(seed: UInt64) {
    let report = CrashTest(seed: seed, open: openEngine).run(crashes: 2_500)
    #expect(report.violation == nil, "\(report)")
    #expect(report.crashes >= 2_500)
    #expect(report.points >= 500)
  }

  @Test(arguments: Seeds.first(1))
  func `tells the truth when a disk fails`(seed: UInt64) {
    let report = FaultTest(seed: seed, open: openEngine).run(faults: 500)
    #expect(report.violation == nil, "\(report)")
    #expect(report.points >= 500)
  }

  /// Each sync is necessary: a disk that drops one of them loses promised data.
  @Test(arguments: Sabotage.ofRows)
  func `is seen to lose data on a disk that lies`(sabotage: Sabotage) {
    let report = CrashTest(seed: 1, sabotage: sabotage, open: openEngine).run(crashes: 5_000)
    #expect(report.violation != nil, "\(sabotage.rawValue) went unnoticed in \(report)")
  }

  @Test func `does the same again from the same seed`() {
    let reports = (0..<2).map { _ in
      CrashTest(seed: 5, sabotage: .manifestSync, open: openEngine).run(crashes: 5_000).description
    }
    #expect(reports[0] == reports[1])
  }
}
